"""`linc-bench run`: trains, scores and evaluates a study, then reports."""

import argparse
from functools import partial
from pathlib import Path

from benchmark.cli.dry_run import print_plan
from benchmark.cli.overrides import Overrides, overridden, plan_pack, with_absolute_paths
from benchmark.cli.terminal import say, terminal
from benchmark.disk.tables import check_tables
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress
from benchmark.report.make_report import make_report
from benchmark.runs import DEMO, Outcome, Plan, Sources, Study, plan_study, study_named
from benchmark.runs.run_study import run_study
from benchmark.upkeep.verify import against_committed
from detectors.own_files import load_files, loaded_files


def run(options: argparse.Namespace) -> int:
    sources = Sources(options.results, options.data_root, options.weights, score_limit=options.score_limit)
    if options.dask is not None:  # workers may run in another folder
        sources = sources.with_absolute_paths()
    check_tables(options.results)
    plan = _plan_study(options, sources) if options.from_pack is None else plan_pack(options, sources, say)
    study = plan.study
    training, workers = study.grids[0].training, workers_for(study, options.workers)
    if not plan.stores_to_compute() and options.dask is None:
        workers = min(workers, max(1, len(plan.units)))
    if options.dry_run:
        print_plan(plan, workers)
        return 0
    options.results.prepare()
    for note in plan.notes():
        say(f"note: {note}")
    progress = Progress(terminal(stderr=True))
    load_own_detectors = partial(load_files, loaded_files())
    is_isolated = study.has_own_detectors or options.score_limit is not None  # a detector may end its process
    place = options.dask, training.device, progress.say, is_isolated
    with make_executor(workers, load_own_detectors, *place) as executor:
        outcomes = run_study(plan, executor, progress)
    evaluate(plan, outcomes)
    runs = {unit.run_id for unit in plan.units}
    trained = sum(outcome.trained for outcome in outcomes)
    failed = sum(outcome.error is not None for outcome in outcomes)
    also = f", {failed} failed" if failed else ""
    say(f"{trained} of {len(outcomes)} runs trained, {len(outcomes) - trained - failed} were there already{also}.")
    if failed < len(outcomes):
        make_report(options.results, study.name, terminal(), runs, options.verbose)
    if not options.results.is_committed and (compared := against_committed(options.results, study.name, runs)):
        say(compared)
    failures = [text for outcome in outcomes for text in _failures(outcome, options.results.log(outcome.run_id))]
    for failure in failures:
        say(failure)
    return int(bool(failures))


def _plan_study(options: argparse.Namespace, sources: Sources) -> Plan:
    name = DEMO.name if options.study is None else options.study
    study = overridden(study_named(name), Overrides.from_options(options))
    if options.dask is not None:
        study = with_absolute_paths(study)
    plan = plan_study(study, sources, options.force)
    plan.check_datasets()
    return plan


def workers_for(study: Study, wanted: int | None) -> int:
    training = study.grids[0].training
    return wanted or default_workers(training.threads, training.device)


def _failures(outcome: Outcome, log: Path) -> list[str]:
    details = f" (details: {log})" if log.exists() else ""
    reasons = [f"{outcome.run_id}: {outcome.error}"] if outcome.error is not None else []
    reasons += [f"{what} on {outcome.run_id}: {why}" for what, why in outcome.failures.items()]
    return [f"failed: {reason}{details}" for reason in reasons]

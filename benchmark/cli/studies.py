"""`linc-bench run`: trains, scores and evaluates a study, then reports.

With `--dry-run` it shows the plan, what the weights are worth for its data sets, and what it takes.
"""

import argparse
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from rich.filesize import decimal

from benchmark.cli.overrides import Overrides, overridden, with_absolute_paths
from benchmark.cli.terminal import print_table, say, terminal
from benchmark.disk import ResultsFolder
from benchmark.disk.tables import check_tables
from benchmark.errors import LincBenchError
from benchmark.evaluation.backbone_checks import quick_check
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress, duration
from benchmark.networks.check import CHECKED
from benchmark.networks.loading import load_backbone
from benchmark.report.make_report import make_report
from benchmark.runs import Outcome, Plan, Sources, Unit, plan_study, study_named
from benchmark.runs.estimate import estimate
from benchmark.runs.run_study import run_study
from benchmark.upkeep.verify import against_committed
from benchmark.wording import dataset_title, network_title
from detectors.own_files import load_files, loaded_files


def run(options: argparse.Namespace) -> int:
    study = overridden(study_named(options.study), Overrides.from_options(options))
    sources = Sources(options.results, options.data_root, options.weights, score_limit=options.score_limit)
    if options.dask is not None:  # workers may run in another folder
        study, sources = with_absolute_paths(study), sources.with_absolute_paths()
    check_tables(options.results)
    plan = plan_study(study, sources, options.force)
    plan.check_datasets()
    training = study.grids[0].training
    workers = options.workers or default_workers(training.threads, training.device)
    if not plan.stores_to_compute() and options.dask is None:
        workers = min(workers, max(1, len(plan.units)))
    if options.dry_run:
        _print_plan(plan, workers)
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
    if not options.results.is_committed and (compared := _compared(options.results, study.name, runs)):
        say(compared)
    failures = [text for outcome in outcomes for text in _failures(outcome, options.results.log(outcome.run_id))]
    for failure in failures:
        say(failure)
    return int(bool(failures))


def _compared(results: ResultsFolder, study: str, runs: Collection[str]) -> str:
    try:
        return against_committed(results, study, runs)
    except (LincBenchError, OSError) as error:  # somebody's other file is no reason to fail
        return f"note: the numbers are not compared with those committed: {error}"


def _failures(outcome: Outcome, log: Path) -> list[str]:
    details = f" (details: {log})" if log.exists() else ""
    reasons = [f"{outcome.run_id}: {outcome.error}"] if outcome.error is not None else []
    reasons += [f"{what} on {outcome.run_id}: {why}" for what, why in outcome.failures.items()]
    return [f"failed: {reason}{details}" for reason in reasons]


def _print_plan(plan: Plan, workers: int) -> None:
    rows = [(unit.run.run_id, plan.to_train.get(unit, "there"), _scoring_state(unit, plan)) for unit in plan.units]
    print_table(f"plan of {plan.study.name}", rows, ["run", "training", "scoring"])
    plan.sources.results.check()
    stores = plan.stores_to_compute()
    if stores and plan.sources.weights_file is not None:  # unsuitable weights are an error now, not in the run
        load_backbone(plan.units[0].run.backbone, 2, plan.sources.weights_file, 0, torch.device("cpu"))
    _print_checks(plan)
    for missing in plan.downloads():
        say(f"To be downloaded: {missing}")
    seconds, size = estimate(plan, workers)
    say(
        f"{len(plan.to_train)} of {len(plan.units)} runs to train, {workers} at a time; feature stores to compute: "
        f"{len(stores)}; about {duration(seconds)} and {decimal(size)} of disk "
        "(from timing one batch here)."
    )


def _print_checks(plan: Plan) -> None:
    """A row per network and data set; where nothing can be said, the reason."""
    rows, heads = [], {unit.run.training.head_init for unit in plan.units}
    for unit in {(unit.info, unit.run.backbone): unit for unit in plan.units}.values():
        network, dataset = network_title(unit.run.backbone.name), dataset_title(unit.run.dataset)
        try:
            check = quick_check(unit, plan.sources)
        except (LincBenchError, OSError) as error:
            say(f"{network} is not checked on {dataset}: {error}")
            continue
        rows.append(
            {"network": f"{network}, {unit.run.backbone.image_size} px", "data set": dataset} | check.as_row(heads)
        )
    if rows:
        print_table(f"what the weights are worth {CHECKED}", pd.DataFrame(rows))


def _scoring_state(unit: Unit, plan: Plan) -> str:
    missing = [
        detector.label
        for detector in unit.detectors
        if unit in plan.to_train or not plan.sources.score_file(unit, detector).exists()
    ]
    there = len(unit.detectors) - len(missing)
    return ", ".join(missing + ([f"{there} there"] if there else [])) or "none"

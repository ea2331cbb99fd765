"""`linc-bench run`: trains, scores and evaluates a study, then reports."""

import argparse

from benchmark.cli.overrides import Overrides, overridden, with_absolute_paths
from benchmark.cli.run_messages import print_failures, print_plan
from benchmark.cli.terminal import say, terminal
from benchmark.disk import ResultsFolder
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress
from benchmark.report.make_report import make_report
from benchmark.runs import Sources, plan_study, study_named
from benchmark.runs.run_study import run_study
from detectors.own_files import load_files, loaded_files


def run(options: argparse.Namespace) -> int:
    study = overridden(study_named(options.study), Overrides.from_options(options))
    results = ResultsFolder(options.results)
    sources = Sources(results, options.data_root, options.weights)
    if options.dask is not None:  # workers may run in another folder
        study, sources = with_absolute_paths(study), sources.with_absolute_paths()
    plan = plan_study(study, sources, options.force)
    training = study.grids[0].training
    workers = options.workers or default_workers(training.threads, training.device)
    if not plan.stores_to_compute() and options.dask is None:
        workers = min(workers, max(1, len(plan.units)))
    if options.dry_run:
        print_plan(plan, workers)
        return 0
    results.prepare()
    for note in plan.notes():
        say(f"note: {note}")
    progress = Progress(terminal(stderr=True))
    with make_executor(workers, load_files, (loaded_files(),), options.dask, training.device, progress.say) as executor:
        outcomes = run_study(plan, executor, progress)
    evaluate(plan, outcomes)
    trained = sum(outcome.trained for outcome in outcomes)
    failed = sum(outcome.error is not None for outcome in outcomes)
    failures = f", {failed} failed" if failed else ""
    say(f"{trained} of {len(outcomes)} runs trained, {len(outcomes) - trained - failed} were there already{failures}.")
    if failed < len(outcomes):
        make_report(results, study.name, terminal(), {unit.run.run_id for unit in plan.units})
    return print_failures(outcomes, results)

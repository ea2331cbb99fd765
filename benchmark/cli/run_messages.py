"""What `linc-bench run` prints: its plan, with the time it would take, and what failed."""

import torch
from rich.filesize import decimal

from benchmark.cli.terminal import print_table, say
from benchmark.data.datasets import missing_file
from benchmark.disk import ResultsFolder
from benchmark.execution.progress import duration
from benchmark.networks.loading import load_backbone
from benchmark.runs import Outcome, Plan, Unit
from benchmark.runs.estimate import estimate


def print_plan(plan: Plan, workers: int) -> None:
    rows = [(unit.run.run_id, plan.to_train.get(unit, "there"), _scoring_state(unit, plan)) for unit in plan.units]
    print_table(f"plan of {plan.study.name}", ("run", "training", "scoring"), rows)
    plan.sources.results.check()
    stores = plan.stores_to_compute()
    if stores and plan.sources.weights_file is not None:  # unsuitable weights are an error now, not in the run
        load_backbone(plan.units[0].run.backbone, 2, plan.sources.weights_file, 0, torch.device("cpu"))
    for argument in plan.study.datasets:
        missing = missing_file(argument, plan.sources.data_root)
        if missing is not None:
            say(f"To be downloaded: {missing}")
    expected = estimate(plan, workers)
    say(
        f"{len(plan.to_train)} of {len(plan.units)} runs to train, {workers} at a time; feature stores to compute: "
        f"{len(stores)}; about {duration(expected.seconds)} and {decimal(expected.bytes_on_disk)} of disk "
        "(from timing one batch here)."
    )


def print_failures(outcomes: list[Outcome], results: ResultsFolder) -> int:
    """Returns the exit code: 1 if anything failed."""
    has_failed = False
    for outcome in outcomes:
        log = results.log(outcome.run_id)
        details = f" (details: {log})" if log.exists() else ""
        reasons = [f"{outcome.run_id}: {outcome.error}"] if outcome.error is not None else []
        reasons += [f"{what} on {outcome.run_id}: {why}" for what, why in outcome.failures.items()]
        for reason in reasons:
            say(f"failed: {reason}{details}")
            has_failed = True
    return int(has_failed)


def _scoring_state(unit: Unit, plan: Plan) -> str:
    missing = [
        detector.label
        for detector in unit.detectors
        if unit in plan.to_train or not plan.sources.score_file(unit, detector).exists()
    ]
    there = len(unit.detectors) - len(missing)
    return ", ".join(missing + ([f"{there} there"] if there else [])) or "none"

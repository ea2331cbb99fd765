"""`linc-bench run --dry-run`: the plan, what the weights are worth for its data sets, and what it takes."""

import pandas as pd
import torch
from rich.filesize import decimal

from benchmark.cli.terminal import print_table, say
from benchmark.errors import LincBenchError
from benchmark.evaluation.backbone_checks import quick_check
from benchmark.execution.progress import duration
from benchmark.networks.check import CHECKED
from benchmark.networks.loading import load_backbone
from benchmark.runs import Plan, Unit
from benchmark.runs.estimate import estimate, without_input_gradients
from benchmark.wording import dataset_title, network_title


def print_plan(plan: Plan, workers: int) -> None:
    rows = [(unit.run.run_id, plan.to_train.get(unit, "there"), _scoring_state(unit, plan)) for unit in plan.units]
    print_table(f"plan of {plan.study.name}", rows, ["run", "training", "scoring"])
    plan.sources.results.check()
    stores = plan.stores_to_compute()
    if stores and plan.sources.weights_file is not None:  # unsuitable weights are an error now, not in the run
        load_backbone(plan.units[0].run.backbone, 2, plan.sources.weights_file, 0, torch.device("cpu"))
    for missing in plan.downloads():
        say(f"To be downloaded: {missing}")
    if plan.to_train:
        _print_checks(plan)
    say(f"{what_it_takes(plan, workers)}; feature stores to compute: {len(stores)} (from timing one batch here).")


def what_it_takes(plan: Plan, workers: int) -> str:
    seconds, size = estimate(plan, workers)
    runs = f"{len(plan.to_train)} of {len(plan.units)} runs to train, {workers} at a time"
    return f"about {duration(seconds)} and {decimal(size)} of disk: {runs}{_slow_part(plan, workers, seconds)}"


def _slow_part(plan: Plan, workers: int, seconds: float) -> str:
    """What gradients of the input take, which a user may want to do without."""
    others, names = without_input_gradients(plan)
    if not names:
        return ""
    rest, _ = estimate(others, workers)
    return (
        f"; {' and '.join(names)}, for gradients through the whole network, about {duration(seconds - rest)} of it "
        "(name the others with --detector to leave it out)"
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

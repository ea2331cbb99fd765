"""Commands that measure: `linc-bench profile`, what detectors cost, and `backbones check`, what weights are worth."""

import argparse
from dataclasses import replace

from benchmark.cli.overrides import Overrides, overridden
from benchmark.cli.terminal import print_table, terminal
from benchmark.data.datasets import load_dataset
from benchmark.disk import provenance_columns
from benchmark.disk.tables import check_tables
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.networks import Backbone
from benchmark.networks.backbone import check_name
from benchmark.overhead.growth import measure_growth
from benchmark.overhead.profiling import ROUNDS, SAMPLES, profile
from benchmark.report.make_report import make_report
from benchmark.runs import Grid, LineUp, Sources, study_named
from benchmark.training import TrainingSettings
from benchmark.wording import dataset_title, network_title

PATHS = {"fast": (False,), "plain": (True,), "both": (False, True)}  # is it the plain path?


def measure(options: argparse.Namespace) -> int:
    overrides, progress = Overrides.from_options(options), Progress(terminal(stderr=True))
    check_tables(options.results)
    if options.growth:
        if overrides.detectors or overrides.datasets or options.samples or options.rounds:
            raise LincBenchError(
                "--growth measures every detector on synthetic features of many sizes; leave --detector, --dataset, "
                "--samples and --rounds out, or leave --growth out."
            )
        options.results.prepare()
        provenance_columns()  # asks git now, before anything can change
        measure_growth(options.results, progress)
    else:
        sources = Sources(options.results, options.data_root, options.weights)
        for is_plain in PATHS[options.path]:
            grid = _measured_grid(options.study, replace(overrides, plain=is_plain))
            options.results.prepare()
            profile(grid, sources, options.rounds or ROUNDS, options.samples or SAMPLES, progress)
    make_report(options.results, "overhead", terminal())
    return 0


def _measured_grid(study: str, overrides: Overrides) -> Grid:
    grid = overridden(study_named(study), overrides).grids[0]
    if not grid.detectors:
        raise LincBenchError(f"The study {study} scores no detectors. Name some with --detector.")
    if not overrides.detectors:
        return grid
    # The cost that a whole line-up shares is not comparable with the cost that a part of it shares.
    parts = (LineUp(f"{line_up.name}-chosen", line_up.detectors) for line_up in grid.line_ups)
    return replace(grid, line_ups=tuple(parts))


def check_backbone(options: argparse.Namespace) -> int:
    from benchmark.networks import check

    check_name(options.backbone)
    backbone = Backbone(options.backbone, options.image_size or Backbone.image_size)
    rows = []
    for name in dict.fromkeys(("digits", *(options.datasets or ()))):
        dataset = load_dataset(name, options.data_root)
        found = check.check_backbone(dataset, backbone, options.weights, TrainingSettings.learning_rate)
        first_steps = (f"{moved:.2f}" for moved in found.first_steps.values())
        accuracies = f"{found.neighbour_accuracy:.3f}", f"{found.largest_class:.3f}"
        norm = f"{found.norm:.1f} ± {found.norm_deviation:.1f}"
        rows.append((dataset_title(dataset.info.name), *accuracies, norm, *first_steps))
    title = (
        f"{network_title(backbone.name)} at {backbone.image_size} px, before any training: accuracy of "
        f"{check.NEIGHBOURS} nearest neighbours, length of what the classifier sees, and how far the first step of "
        "Adam moves a logit, with the classifier initialised in three ways"
    )
    columns = [
        "data set",
        "neighbours",
        "largest class",
        "norm",
        *(f"first step, {head}" for head in found.first_steps),
    ]
    print_table(title, rows, columns)
    return 0

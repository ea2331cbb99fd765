"""Commands that measure: `linc-bench profile`, what detectors cost, and `backbones check`, what weights are worth."""

import argparse
from dataclasses import replace

from benchmark.cli.overrides import Overrides, overridden
from benchmark.cli.terminal import print_table, terminal
from benchmark.disk import provenance_columns
from benchmark.disk.tables import check_tables
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.networks.check import check_table
from benchmark.overhead.growth import measure_growth
from benchmark.overhead.profiling import ROUNDS, SAMPLES, profile
from benchmark.report.make_report import make_report
from benchmark.runs import Grid, LineUp, Sources, study_named

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
    make_report(options.results, "overhead", terminal(), is_verbose=True)
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
    datasets = dict.fromkeys(("digits", *(options.datasets or ())))
    size = options.image_size or Grid.backbone.image_size
    print_table(*check_table(options.backbone, size, options.weights, datasets, options.data_root))
    return 0

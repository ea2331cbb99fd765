"""Commands that take no torch: `linc-bench list` and `report`."""

import argparse

from rich.table import Table

from benchmark.cli.terminal import terminal
from benchmark.data.datasets import known_datasets
from benchmark.data.noise import NOISE_KINDS
from benchmark.disk.results_folder import ResultsFolder
from benchmark.networks import SUGGESTED
from benchmark.runs.studies import STUDIES
from detectors import DETECTORS

PATHS = {
    "path/to/file.npz": "any file in MedMNIST's layout",
    "path/to/folder": "images in one sub-folder per class, or train, val and test folders of such",
    "path/to/file.csv": "columns path and label, optionally split",
}


def show(_: argparse.Namespace) -> int:
    sections = {
        "studies": {study.name: study.summary for study in STUDIES},
        "detectors": {detector.name: detector.summary for detector in DETECTORS},
        "data sets": known_datasets() | PATHS,
        "backbones": SUGGESTED | {"any timm name": "weights from the hub, or from a file with --weights"},
        "noise kinds": {kind.name: kind.summary for kind in NOISE_KINDS},
    }
    console = terminal()
    for title, entries in sections.items():
        table = Table(
            title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2)
        )
        for name, summary in entries.items():
            table.add_row(name, summary)
        console.print(table, "")
    return 0


def report(options: argparse.Namespace) -> int:
    from benchmark.report.make_report import make_report  # takes pandas and matplotlib, which `list` does not need

    make_report(ResultsFolder(options.results), options.study, terminal())
    return 0

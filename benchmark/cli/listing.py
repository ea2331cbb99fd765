"""Commands that take no torch: `linc-bench list` and `report`."""

import argparse
import shutil
import textwrap

from benchmark.data import NOISE_KINDS
from benchmark.data.datasets import known_datasets
from benchmark.networks import SUGGESTED
from benchmark.runs import STUDIES
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
    width = shutil.get_terminal_size(fallback=(120, 24)).columns
    for title, entries in sections.items():
        longest = max(map(len, entries))
        print(title)
        for name, summary in entries.items():
            first = f"  {name:<{longest}}  "
            print(textwrap.fill(summary, width, initial_indent=first, subsequent_indent=" " * len(first)))
        print()
    return 0


def report(options: argparse.Namespace) -> int:
    # pandas, matplotlib and rich, which `list` does not need
    from benchmark.cli.terminal import terminal
    from benchmark.report.make_report import make_report

    options.results.check_exists()
    make_report(options.results, options.study, terminal())
    return 0

"""Commands that train nothing: `linc-bench list`, `check` and `report`."""

import argparse
import shutil
import textwrap
from collections.abc import Mapping

from benchmark.data.datasets import known_datasets
from benchmark.errors import LincBenchError
from benchmark.networks import SUGGESTED
from benchmark.noise import NOISE_KINDS, NoiseKind
from benchmark.runs import STUDIES, Study
from detectors import DETECTORS, Detector

PATHS = {
    "path/to/file.npz": "any file in MedMNIST's layout",
    "path/to/folder": "images in one sub-folder per class, or train, val and test folders of such",
    "path/to/file.csv": "columns path and label, optionally split",
}


MORE = "More: linc-bench list studies | detectors | datasets | backbones | noise"


def show(options: argparse.Namespace) -> int:
    if options.what is None:
        _print({study.name: study.summary for study in STUDIES})
        print(MORE)
        return 0
    _print(
        {
            "studies": lambda: {study.name: _about(study) for study in STUDIES},
            "detectors": lambda: {detector.name: _with_paper(detector) for detector in DETECTORS},
            "datasets": lambda: known_datasets() | PATHS,
            "backbones": lambda: SUGGESTED | {"any timm name": "weights from the hub, or from a file with --weights"},
            "noise": lambda: {kind.name: _with_option(kind) for kind in NOISE_KINDS},
        }[options.what]()
    )
    return 0


def _about(study: Study) -> str:
    rates = sorted({rate for grid in study.grids for rate in grid.rates})
    networks = {f"{grid.backbone.name} at {grid.backbone.image_size} px" for grid in study.grids}
    trainings = {f"{grid.training.epochs} epochs" for grid in study.grids}
    return (
        f"{study.summary}. Data: {', '.join(study.datasets)}. Noise: {', '.join(f'{rate:.0%}' for rate in rates)}. "
        f"{', '.join(sorted(networks))}; {', '.join(sorted(trainings))}; {len(study.detectors)} detectors"
    )


def _with_option(kind: type[NoiseKind]) -> str:
    return f"{kind.summary}{f'; after a colon: {kind.options}' if kind.options else ''}"


def _with_paper(detector: Detector) -> str:
    cited, number = detector.paper
    return f"{detector.summary}{f' ({cited})' if cited else ''}{f', arXiv {number}' if number else ''}"


def _print(entries: Mapping[str, str]) -> None:
    width = shutil.get_terminal_size(fallback=(120, 24)).columns
    longest = max(map(len, entries))
    for name, summary in entries.items():
        first = f"{name:<{longest}}  "
        print(
            textwrap.fill(
                summary or "(it says nothing of itself)",
                width,
                initial_indent=first,
                subsequent_indent=" " * len(first),
                break_on_hyphens=False,
            )
        )


def check(options: argparse.Namespace) -> int:
    from benchmark.training import TrainingSettings
    from detectors import DETECTORS, detector_named
    from detectors.own_files import is_detector_file, load_detector
    from detectors.testing import CHECKS, CheckFailedError, check_detector

    name = options.detector
    detector = load_detector(name, TrainingSettings()) if is_detector_file(name) else detector_named(name)
    if is_detector_file(name) and detector.label in {other.label for other in DETECTORS}:
        raise LincBenchError(f"The suite has a detector called '{detector.label}'; give yours another `name`.")
    try:
        check_detector(detector)
    except CheckFailedError as failed:
        raise LincBenchError(str(failed)) from failed
    print(f"{detector.label} passes all {len(CHECKS)} checks.")
    return 0


def report(options: argparse.Namespace) -> int:
    # pandas, matplotlib and rich, which `list` does not need
    from benchmark.cli.terminal import terminal
    from benchmark.report.make_report import make_report

    options.results.check_exists()
    make_report(options.results, options.study, terminal(), is_verbose=options.verbose)
    return 0

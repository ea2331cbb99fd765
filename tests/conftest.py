"""Shared by all tests: small data in the real formats, and the command line as a function."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from hypothesis import settings
from sklearn.datasets import load_digits

from benchmark.cli.command_line import main
from benchmark.identity import OWN_MODULE
from tests import fuzzing

# Machines differ: speed is measured in benchmarks, never limited in a test. Examples repeat from run to run.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

QUICK_DETECTORS = ("LiNC", "AUM", "DataMaps", "mean loss", "random")
QUICK_VARIANTS = ("AUM (skip_first_epoch=False, until=end)", "DataMaps (moment=end of epoch)")  # of H-CAT's line-up
REAL_DATA = "LINC_BENCH_REAL_DATA"


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A folder with real MedMNIST files, where an environment variable names one."""
    if REAL_DATA not in os.environ:
        pytest.skip(f"{REAL_DATA} does not name a folder with MedMNIST files")
    return Path(os.environ[REAL_DATA])


def medmnist_arrays(labels: np.ndarray, images: np.ndarray, train: int, validation: int) -> dict[str, np.ndarray]:
    """Arrays in MedMNIST's layout, cut in order."""
    cuts = {"train": slice(0, train), "val": slice(train, train + validation), "test": slice(train + validation, None)}
    arrays = {f"{key}_images": images[cut] for key, cut in cuts.items()}
    return arrays | {f"{key}_labels": labels[cut, None].astype(np.uint8) for key, cut in cuts.items()}


@pytest.fixture(scope="session")
def odd_or_even(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-class data set in MedMNIST's layout: is a handwritten digit odd?"""
    digits = load_digits()
    images = (digits.images * 15.9).astype(np.uint8)
    path = tmp_path_factory.mktemp("data") / "odd_or_even.npz"
    np.savez_compressed(path, **medmnist_arrays(digits.target % 2, images, 1200, 200))
    return path


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all processes that run tests."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def quick(shared: Path) -> tuple[str, ...]:
    """A demo in seconds: the real network and weights on 400 small digits, long enough for all of LiNC's phases."""
    digits = load_digits()
    path = shared / "few_digits.npz"
    images = (digits.images * 15.9).astype(np.uint8)
    with FileLock(shared / "data.lock"):
        if not path.exists():
            np.savez_compressed(path, **medmnist_arrays(digits.target[:560], images[:560], 400, 60))
    network = ("--image-size", "32", "--batch-size", "32", "--epochs", "12", "--seed", "0")
    detectors = tuple(word for name in (*QUICK_DETECTORS, *QUICK_VARIANTS) for word in ("--detector", name))
    return ("run", "--dataset", str(path), *network, *detectors)


@pytest.fixture(scope="session")
def quick_run(quick: tuple[str, ...], shared: Path) -> Path:
    """The results folder of a quick, uninterrupted run without worker processes; read it, never write to it."""
    results = shared / "quick" / "results"
    with FileLock(shared / "quick.lock"):
        if not (results / "report.html").exists():
            assert main([*quick, "--workers", "1", "--results", str(results)]) == 0
    return results


@pytest.fixture
def copied(quick_run: Path, tmp_path: Path) -> Path:
    """A results folder of one's own with everything done."""
    return Path(shutil.copytree(quick_run, tmp_path / "results"))


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs make no tables and figures, which take longer than a quick run itself."""
    monkeypatch.setattr("benchmark.cli.studies.make_report", lambda *_: None)


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command line, demands an error in a sentence at the end and no traceback, and returns what it said."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) != 0
        progress, error, said = f"\n{capsys.readouterr().err}".rpartition("\nerror: ")
        assert error
        assert "Traceback" not in progress + said
        return " ".join(said.split())

    return run


def score_bytes(results: Path) -> dict[str, bytes]:
    """Every score file of a results folder, by its name."""
    files = sorted((results / "scores").rglob("*.npy"))
    assert files
    return {str(file.relative_to(results)): file.read_bytes() for file in files}


def forget_own_detectors() -> None:
    """Of users' files, as if the next command were a new process."""
    for name in [name for name in sys.modules if name.startswith(OWN_MODULE)]:
        del sys.modules[name]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", type=int, help="how many faults to inject; default: one of each kind")
    parser.addoption("--faults-seed", type=int, default=0, help="at which moments they come")
    parser.addoption("--fuzz", type=int, default=fuzzing.cases_in_all, help="how many cases of fuzzing to draw in all")


def pytest_configure(config: pytest.Config) -> None:
    fuzzing.cases_in_all = config.getoption("--fuzz")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a test found worth telling, from all processes that run tests."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "told":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")

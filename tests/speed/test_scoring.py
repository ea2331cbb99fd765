"""Seconds and memory of scoring a record of TissueMNIST's size (165,466 samples × 8 classes × 70 epochs).

Not part of `make test`: run with `make bench`.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, RunRecord
from detectors import DETECTORS, Detector
from detectors.linc import TRUST
from tests.speed.conftest import Note

SAMPLES, CLASSES, EPOCHS = 165_466, 8, 70
READS_LOGITS = [
    detector
    for detector in DETECTORS
    if detector.needs and {signal.whole for signal in detector.needs} <= {TRAIN_LOGITS, EVAL_LOGITS, TRUST}
]
MEMORY_ABOVE_IDLE = 500e6

# In a process of its own: what scoring adds to the peak of private memory, beyond the mapped file's own pages.
MEASURE = """
import sys
from pathlib import Path
from benchmark.overhead.memory import peak_memory
from detectors import detector_named
from tests.speed.test_scoring import tissue_record
record, detector = tissue_record(Path(sys.argv[1])), detector_named(sys.argv[2])
detector.score(record.first_epochs(1)) if sys.argv[2] != "LiNC" else None
with peak_memory() as peak:
    detector.score(record)
print(peak.added)
"""


def tissue_record(folder: Path) -> RunRecord:
    arrays = {key: np.load(folder / f"{key}.npy", mmap_mode="r") for key in ("train_logits", "eval_logits", "trust")}
    return RunRecord(np.load(folder / "labels.npy"), CLASSES, EPOCHS, arrays)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, generator = tmp_path_factory.mktemp("tissue"), np.random.default_rng(0)
    np.save(folder / "labels.npy", generator.integers(0, CLASSES, SAMPLES))
    for key, shape in (
        ("train_logits", (EPOCHS, SAMPLES, CLASSES)),
        ("eval_logits", (EPOCHS, SAMPLES, CLASSES)),
        ("trust", (EPOCHS, SAMPLES)),
    ):
        array = np.lib.format.open_memmap(folder / f"{key}.npy", "w+", np.float32, shape)
        for epoch in range(EPOCHS):
            array[epoch] = generator.random(shape[1:], dtype=np.float32)
        array.flush()
    return folder


@pytest.mark.parametrize("detector", READS_LOGITS, ids=lambda detector: detector.name)
def test_scoring_a_record_of_tissuemnists_size(benchmark, folder: Path, detector: Detector, compare: Note) -> None:
    record = tissue_record(folder)
    scores = benchmark.pedantic(detector.score, args=(record,), rounds=1)
    assert scores.shape == (SAMPLES,)
    compare(f"scoring, {detector.name}", "165,466 samples, 8 classes, 70 epochs", benchmark.stats.stats.min)


def test_the_aum_package_on_a_slice_of_the_same_logits(benchmark, folder: Path, tmp_path: Path) -> None:
    """One epoch in seventy, so that it ends; multiply by seventy to compare."""
    import torch
    from aum import AUMCalculator

    record, calculator = tissue_record(folder), AUMCalculator(str(tmp_path))
    logits, labels = torch.from_numpy(np.array(record[TRAIN_LOGITS][1])), torch.from_numpy(record.given_labels)
    benchmark.pedantic(calculator.update, args=(logits, labels, list(range(SAMPLES))), rounds=1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("detector", READS_LOGITS, ids=lambda detector: detector.name)
def test_memory_stays_bounded(benchmark, folder: Path, detector: Detector) -> None:
    command = [sys.executable, "-c", MEASURE, str(folder), detector.name]
    ended = benchmark.pedantic(subprocess.run, args=(command,), kwargs={"capture_output": True, "text": True}, rounds=1)
    assert ended.returncode == 0, ended.stderr
    above_idle = int(ended.stdout)
    benchmark.extra_info["MB above idle"] = above_idle // 1_000_000
    print(f"{detector.name}: {above_idle / 1e6:.0f} MB above idle")
    assert above_idle < MEMORY_ABOVE_IDLE

"""Seconds and memory of scoring a record of TissueMNIST's size (165,466 samples × 8 classes × 70 epochs).

Not part of `make test`: run with `make bench`.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmark.record import EVAL_SUMMARY, TRAIN_SUMMARY, Embedding, Example, RunRecord, RunShape, Signal
from benchmark.record.summary import SUMMARY, summarise
from benchmark.statistics.neighbours import nearest_others, unit_rows
from detectors import DETECTORS, Detector
from detectors.linc import TRUST
from tests.speed.conftest import Note

SAMPLES, CLASSES, EPOCHS, DIMENSIONS = 165_466, 8, 70, 384
SCORED = [detector for detector in DETECTORS if detector.needs]
SIGNALS: dict[str, Signal] = {s.whole.key: s.whole for detector in SCORED for s in detector.needs}
MEMORY_ABOVE_IDLE = 500e6
COPIES = 5  # of the features, in memory, for a detector that reads them

# In a process of its own: what scoring adds to the peak of private memory, beyond the mapped file's own pages.
MEASURE = """
import sys
from pathlib import Path
from benchmark.overhead.memory import peak_memory
from detectors import detector_named
from tests.speed.test_scoring import tissue_record
record, detector = tissue_record(Path(sys.argv[1])), detector_named(sys.argv[2])
if all(signal.kind.endswith(("logits", "summary")) for signal in detector.needs):
    detector.score(record.first_epochs(1))
with peak_memory() as peak:
    detector.score(record)
print(peak.added)
"""


def tissue_record(folder: Path) -> RunRecord:
    arrays = {key: np.load(folder / f"{key}.npy", mmap_mode="r") for key in SIGNALS}
    return RunRecord(np.load(folder / "labels.npy"), CLASSES, EPOCHS, arrays)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, generator = tmp_path_factory.mktemp("tissue"), np.random.default_rng(0)
    labels = generator.integers(0, CLASSES, SAMPLES)
    np.save(folder / "labels.npy", labels)
    shape, logits = RunShape(EPOCHS, SAMPLES, CLASSES), np.broadcast_to(np.float32(0), (EPOCHS, SAMPLES, CLASSES))
    for key, signal in SIGNALS.items():
        is_summary = signal in (TRAIN_SUMMARY, EVAL_SUMMARY)
        if signal == TRUST or is_summary or signal.kind.endswith("logits"):
            size = (EPOCHS, SAMPLES, CLASSES) if signal.kind.endswith("logits") else (EPOCHS, SAMPLES)
            array = np.lib.format.open_memmap(folder / f"{key}.npy", "w+", SUMMARY if is_summary else np.float32, size)
            for epoch in range(EPOCHS):
                values = generator.random((SAMPLES,) if signal == TRUST else (SAMPLES, CLASSES), dtype=np.float32)
                array[epoch] = summarise(values, labels) if is_summary else values
            array.flush()
        elif isinstance(signal, Embedding):
            np.save(folder / f"{key}.npy", features(SAMPLES))
        else:
            suspicion = (generator.random(SAMPLES) < 0.2) * 1.0
            np.save(folder / f"{key}.npy", signal.example(shape, suspicion, Example(labels, logits, generator)))
    return folder


def features(samples: int) -> np.ndarray:
    """Around centres, as features of a network are."""
    generator = np.random.default_rng(1)
    centres = 0.7 * generator.normal(size=(200, DIMENSIONS)).astype(np.float32)
    noise = generator.standard_normal((samples, DIMENSIONS), dtype=np.float32)
    return centres[generator.integers(0, 200, samples)] + noise


@pytest.mark.parametrize("detector", SCORED, ids=lambda detector: detector.name)
def test_scoring_a_record_of_tissuemnists_size(benchmark, folder: Path, detector: Detector, compare: Note) -> None:
    record = tissue_record(folder)
    scores = benchmark.pedantic(detector.score, args=(record,), rounds=1)
    assert scores.shape == (SAMPLES,)
    about = f"165,466 samples, {CLASSES} classes, {EPOCHS} epochs"
    about += f", {DIMENSIONS} features" if any(isinstance(signal, Embedding) for signal in detector.needs) else ""
    compare(f"scoring, {detector.name}", about, benchmark.stats.stats.min)


def test_neighbours_among_100_000(benchmark, compare: Note) -> None:
    points = features(100_000)
    found = benchmark.pedantic(nearest_others, args=(points, 10), rounds=1)
    asked = np.random.default_rng(2).choice(len(points), 300, replace=False)
    similarity = unit_rows(points)[asked] @ unit_rows(points).T
    similarity[np.arange(300), asked] = -2
    exact = np.argpartition(-similarity, 10, axis=1)[:, :10]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact.tolist(), found[asked].tolist(), strict=True)])
    benchmark.extra_info["share of neighbours found"] = round(float(recall), 4)
    print(f"of the 10 nearest neighbours, {recall:.2%} were found")
    assert recall > 0.99
    compare("10 nearest neighbours", "100,000 samples, 384 features", benchmark.stats.stats.min)


def test_the_aum_package_on_a_slice_of_the_same_logits(benchmark, folder: Path, tmp_path: Path) -> None:
    """One epoch in seventy, so that it ends; multiply by seventy to compare."""
    import torch
    from aum import AUMCalculator

    labels, calculator = torch.from_numpy(tissue_record(folder).given_labels), AUMCalculator(str(tmp_path))
    logits = torch.rand((SAMPLES, CLASSES), generator=torch.Generator().manual_seed(0))
    benchmark.pedantic(calculator.update, args=(logits, labels, list(range(SAMPLES))), rounds=1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("detector", SCORED, ids=lambda detector: detector.name)
def test_memory_stays_bounded(benchmark, folder: Path, detector: Detector) -> None:
    command = [sys.executable, "-c", MEASURE, str(folder), detector.name]
    ended = benchmark.pedantic(subprocess.run, args=(command,), kwargs={"capture_output": True, "text": True}, rounds=1)
    assert ended.returncode == 0, ended.stderr
    above_idle = int(ended.stdout)
    benchmark.extra_info["MB above idle"] = above_idle // 1_000_000
    print(f"{detector.name}: {above_idle / 1e6:.0f} MB above idle")
    reads_features = any(isinstance(signal, Embedding) for signal in detector.needs)
    assert above_idle < MEMORY_ABOVE_IDLE + reads_features * COPIES * 4 * SAMPLES * DIMENSIONS

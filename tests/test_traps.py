"""Evaluation traps that peers fell into; each of these fails if we do too. (Signs and ties are in test_metrics.py.)"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from benchmark.disk import checksum, write_json
from benchmark.noise import AnswerKey, Samples, noise_named
from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, RunRecord, Signal
from benchmark.runs.scores import SCORE_DTYPE, read_scores
from benchmark.statistics.metrics import detection_metrics
from detectors import DETECTORS, Detector
from detectors.mean_loss import MeanLoss
from detectors.testing import planted_record


@pytest.mark.parametrize("kind", ["symmetric", "symmetric-inclusive", "pair", "annotators", "annotators:majority"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.66])
@pytest.mark.parametrize("classes", [2, 5])
def test_a_perfect_detector_scores_one_under_every_noise(kind: str, rate: float, classes: int) -> None:
    """Counting redrawn labels that came out right as wrong would cap it at 1 − 1/(2C)."""
    clean = np.arange(2000) % classes
    given = noise_named(kind).corrupt(Samples.of_labels(clean, classes), rate, 0).given["train"]
    is_mislabelled = AnswerKey(clean, clean).is_mislabelled(given)
    oracle = (given != clean).astype(float)
    assert detection_metrics(is_mislabelled, oracle)["auroc"] == 1.0
    assert detection_metrics(is_mislabelled, -oracle)["auroc"] == 0.0


def test_scores_in_a_file_sorted_by_score_come_back_in_sample_order(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).random(50)
    order = np.argsort(scores)
    table = np.empty(50, dtype=SCORE_DTYPE)
    table["sample"], table["score"] = order, scores[order]
    np.save(tmp_path / "sorted.npy", table)
    write_json(tmp_path / "sorted.json", {"seconds": 0.1, "crc32": checksum([table.tobytes()])})
    assert (read_scores(tmp_path / "sorted.npy")[0] == scores).all()


@dataclass(frozen=True)
class ReadsLogits(MeanLoss):
    needs: ClassVar[tuple[Signal, ...]] = (TRAIN_LOGITS, EVAL_LOGITS)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_any_number_of_first_epochs_can_be_judged(detector: Detector) -> None:
    """A baseline looks bad with seventy memorised epochs and good with five: every window must be available."""
    if not all(signal.per_epoch for signal in detector.needs):
        pytest.skip("it does not read a history")
    logits, _ = planted_record(ReadsLogits(), epochs=7)
    known = planted_record(detector, epochs=7)[0].arrays | logits.arrays
    whole = {
        key: known[key]
        for signal in detector.needs
        for key in [next((source.key for source in signal.sources if source.key in logits.arrays), signal.whole.key)]
    }
    record = replace(logits, arrays=whole)
    for count in range(1, 8):
        cut = {key: array[:count].copy() for key, array in whole.items()}
        ended_there = RunRecord(record.given_labels, record.num_classes, count, cut)
        assert (detector.score(record.first_epochs(count)) == detector.score(ended_there)).all()


def test_never_learned_samples_are_the_most_suspicious_not_the_least() -> None:
    from detectors.forgetting import Forgetting

    logits = np.zeros((6, 2, 2))
    logits[:, 0, 0] = logits[:, 1, 1] = 1.0
    record = RunRecord.from_arrays(given_labels=np.array([1, 1]), train_logits=logits)  # the first is never learned
    never, always = Forgetting().score(record)
    assert never > always

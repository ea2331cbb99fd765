"""Six numbers in place of logits: equal to what logits say, to the last digit that is kept, and to every detector."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax

from benchmark.record import (
    EVAL_LOGITS,
    EVAL_SUMMARY,
    TRAIN_LOGITS,
    TRAIN_SUMMARY,
    EvalLogits,
    EvalSummary,
    RunRecord,
    TrainSummary,
)
from benchmark.record import run_record as run_record_module
from benchmark.record.summary import NUMBERS, SUMMARY, summarise
from benchmark.training import Standard
from detectors import DETECTORS, LINE_UPS, Detector
from detectors.testing import planted_record
from tests.test_training import data, listeners, run

ALL = dict.fromkeys(detector for line_up in LINE_UPS.values() for detector in line_up)
READ_SUMMARIES = [d for d in ALL if d.needs and all(isinstance(s, TrainSummary | EvalSummary) for s in d.needs)]


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(2, 6)),
        elements=st.floats(-60, 60, width=32),
    ),
    st.integers(0, 1),
)
def test_every_number_is_what_its_name_says(logits_ENK: np.ndarray, label: int) -> None:
    """Against sums written out in double precision; rounding to 32 bits costs one part in ten million."""
    labels = np.full(logits_ENK.shape[1], label)
    summary = summarise(logits_ENK, labels)
    assert summary.dtype == SUMMARY
    assert summary.shape == logits_ENK.shape[:2]
    for place in np.ndindex(summary.shape):
        z, own = logits_ENK[place].astype(np.float64), summary[place]
        log_p = log_softmax(z)
        others = np.delete(np.arange(len(z)), label)
        assert own["given"] == z[label]
        assert own["best_other"] == z[others].max()
        assert own["loss"] == pytest.approx(-log_p[label], rel=1e-6, abs=1e-12)
        assert own["other_squares"] == pytest.approx(np.exp(2 * log_p[others]).sum(), rel=1e-6, abs=1e-30)
        assert own["entropy"] == pytest.approx(-(np.exp(log_p) * log_p).sum(), rel=1e-6, abs=1e-12)
        assert z[own["predicted"]] == z.max()


def test_small_losses_keep_their_digits() -> None:
    """From a log-sum-exp in 32 bits, the loss of a certain prediction would be 0 or noise."""
    own = summarise(np.array([[0.0, 20.0]], dtype=np.float32), np.array([1]))[0]
    assert own["loss"] == pytest.approx(2.0611536e-09, rel=1e-6)
    assert own["other_squares"] == pytest.approx(np.exp(-40), rel=1e-6)


def test_tensors_and_arrays_are_summarised_alike() -> None:
    logits, labels = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32), np.arange(50) % 4
    tensors = summarise(torch.from_numpy(logits).requires_grad_(), torch.from_numpy(labels))
    assert (tensors == summarise(logits, labels)).all()


def test_nearly_all_detectors_read_summaries() -> None:
    names = {detector.name for detector in READ_SUMMARIES}
    assert {"AUM", "DataMaps", "Data-IQ", "EL2N", "forgetting", "CNLCU-S", "post-hoc trust", "mean loss"} <= names
    assert {"last loss", "loss mixture", "CTRL", "margin", "probability"} <= names


@pytest.mark.parametrize("detector", READ_SUMMARIES, ids=lambda detector: detector.label)
def test_a_detector_scores_summaries_as_it_scores_logits(detector: Detector) -> None:
    logits, _ = planted_record(replace_needs(detector), samples=400, classes=8, epochs=12)
    kept = {
        key: summarise(logits[full], logits.given_labels)
        for key, full in ((TRAIN_SUMMARY.key, TRAIN_LOGITS), (EVAL_SUMMARY.key, EVAL_LOGITS))
    }
    assert detector.score(replace(logits, arrays=kept)) == pytest.approx(detector.score(logits), rel=1e-6, abs=1e-9)


def replace_needs(detector: Detector) -> Detector:
    """Of which made-up records have logits of both moments."""

    class ReadsLogits(type(detector)):  # type: ignore[misc]
        needs = (TRAIN_LOGITS, EVAL_LOGITS)

    return ReadsLogits()


def test_a_run_records_summaries_of_the_very_logits(tmp_path: Path) -> None:
    """Of both moments, all epochs or some, beside the logits and without them."""
    both = (TRAIN_LOGITS, TRAIN_SUMMARY, TrainSummary((2,)), EVAL_LOGITS, EVAL_SUMMARY, EvalLogits((3,)))
    alone = (TrainSummary((2, 5)), EvalSummary((0,)))
    for name, signals in (("both", both), ("alone", alone)):
        (tmp_path / name).mkdir()
        run(Standard(), listeners(tmp_path / name, signals))
    labels = data().train.labels
    for logits, summary in (("train_logits", "train_summary"), ("eval_logits", "eval_summary")):
        expected = summarise(np.load(tmp_path / "both" / f"{logits}.npy"), labels)
        assert (np.load(tmp_path / "both" / f"{summary}.npy") == expected).all()
        rows = [1, 4] if summary == "train_summary" else [-1]
        (file,) = (tmp_path / "alone").glob(f"{summary}-*.npy")
        assert (np.load(file) == expected[rows]).all()
    assert {file.name for file in (tmp_path / "both").iterdir()} == {
        f"{name}.npy" for name in ("train_logits", "train_summary", "eval_logits", "eval_summary")
    }


def test_a_record_of_logits_is_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(3, 100, 5)).astype(np.float32), rng.integers(0, 5, 100)
    record = RunRecord.from_arrays(given_labels=labels, train_logits=logits)
    whole = record[TRAIN_SUMMARY]
    monkeypatch.setattr(run_record_module, "BLOCK_BYTES", 7 * logits.nbytes // 100)
    sizes = []

    def loss(labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
        sizes.append(len(labels_B))
        return summary_EB["loss"].sum(axis=0)

    assert (record.map_samples(loss, TRAIN_SUMMARY) == whole["loss"].sum(axis=0)).all()
    assert sizes == [7] * 14 + [2]
    assert set(whole.dtype.names or ()) == {*NUMBERS, "predicted"}
    some = record.first_epochs(2)[TrainSummary((2,))]
    assert (some == whole[1:2]).all()
    assert EVAL_SUMMARY not in record
    assert EvalLogits((1,)) not in record


def test_every_detector_of_the_suite_has_a_form_of_its_own() -> None:
    """What reads full logits says so; the rest is small however many classes there are."""
    full = {d.name for d in DETECTORS for s in d.needs if s.kind in ("train_logits", "eval_logits")}
    assert full == {"CORES²", "relation graph"}

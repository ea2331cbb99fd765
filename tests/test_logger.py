"""Logging the dynamics of a training loop that is not ours."""

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.errors import LincBenchError
from benchmark.record import EVAL_SUMMARY, TRAIN_LOGITS, TRAIN_SUMMARY, RunRecord
from benchmark.record.logger import DynamicsLogger, EpochNote
from benchmark.record.summary import summarise
from detectors.aum import AUM
from detectors.mean_loss import MeanLoss

N, K, EPOCHS = 40, 5, 4
LABELS = np.arange(N) % K
LOGITS = torch.randn(EPOCHS, N, K, generator=torch.Generator().manual_seed(0))


def log_epochs(log: DynamicsLogger, epochs: range, batches: int = 4) -> None:
    for epoch in epochs:
        order = torch.randperm(N, generator=torch.Generator().manual_seed(epoch))
        for indices in order.chunk(batches):
            log.batch(indices, LOGITS[epoch, indices].requires_grad_())
        log.evaluation(torch.arange(N), LOGITS[epoch] * 2)
        assert log.end_epoch() == EpochNote(epoch + 1)


@pytest.mark.parametrize("full", [False, True])
def test_samples_in_any_order_give_the_record_of_their_logits(full: bool, tmp_path: Path) -> None:
    log = DynamicsLogger(LABELS, K, tmp_path, full)
    log_epochs(log, range(EPOCHS))
    record = log.record()
    whole = RunRecord.from_arrays(given_labels=LABELS, train_logits=LOGITS.numpy(), eval_logits=2 * LOGITS.numpy())
    for detector in (AUM(), MeanLoss()):
        assert detector.score(record) == pytest.approx(detector.score(whole), rel=1e-6)
    assert (TRAIN_LOGITS in record) is full
    if full:
        assert (record[TRAIN_LOGITS] == LOGITS.numpy()).all()
    else:
        assert (record[EVAL_SUMMARY] == summarise(2 * LOGITS, LABELS)).all()
        assert (tmp_path / "train.bin").stat().st_size == 24 * N * (EPOCHS + 1), "one epoch ahead"


def test_missing_and_repeated_samples_are_counted_and_filled(tmp_path: Path) -> None:
    """Sample 7 comes first in epoch 2, sample 3 not in epoch 2, sample 5 twice in epoch 3, and 9 overflows there."""
    log, everyone = DynamicsLogger(LABELS, K, tmp_path), torch.arange(N)
    log.batch(everyone[everyone != 7], LOGITS[0, everyone != 7])
    assert log.end_epoch() == EpochNote(1, missing=1)
    with pytest.raises(LincBenchError, match=r"1 of 40 samples never came \(the first: 7\)"):
        log.record()
    log.batch(everyone[everyone != 3], LOGITS[1, everyone != 3])
    assert log.end_epoch() == EpochNote(2, missing=1)
    overflown = LOGITS[2].clone()
    overflown[9, 0] = torch.inf
    log.batch(everyone, overflown)
    log.batch(torch.tensor([5]), LOGITS[3, [5]])
    note = log.end_epoch()
    assert note == EpochNote(3, missing=1, repeated=1)
    assert str(note) == "epoch 3: 1 samples missing, 1 repeated"
    seen, expected = log.record()[TRAIN_SUMMARY], summarise(LOGITS, LABELS)
    assert (seen[0, 7], seen[1, 7]) == (expected[1, 7], expected[1, 7]), "as in the first epoch in which it came"
    assert (seen[1, 3], seen[2, 9]) == (expected[0, 3], expected[1, 9]), "as in the epoch before"
    assert seen[2, 5] == expected[3, 5], "the last of the two"
    others = np.setdiff1d(np.arange(N), [3, 5, 7, 9])
    assert (seen[:, others] == expected[:3, others]).all()


def test_a_training_is_continued_where_its_model_was_restored(tmp_path: Path) -> None:
    whole = DynamicsLogger(LABELS, K, tmp_path / "whole")
    log_epochs(whole, range(EPOCHS))
    log = DynamicsLogger(LABELS, K, tmp_path / "log")
    log_epochs(log, range(3))
    log.batch(torch.arange(10), LOGITS[3, :10])  # and then it was interrupted
    log = DynamicsLogger(LABELS, K, tmp_path / "log", after_epoch=2)
    assert log.epochs == 2
    log_epochs(log, range(2, EPOCHS))
    for name in ("train.bin", "eval.bin"):
        assert (tmp_path / "log" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert (log.record()[TRAIN_SUMMARY] == whole.record()[TRAIN_SUMMARY]).all()


def die_in_the_third_epoch(folder: Path) -> None:
    torch.set_num_threads(1)
    log = DynamicsLogger(LABELS, K, folder)
    log_epochs(log, range(2))
    log.batch(torch.arange(20), LOGITS[2, :20])
    os._exit(1)


def test_complete_epochs_survive_a_killed_process(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=die_in_the_third_epoch, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 1
    log = DynamicsLogger(LABELS, K, tmp_path, after_epoch=2)
    assert (log.record()[TRAIN_SUMMARY] == summarise(LOGITS[:2], LABELS)).all()
    assert json.loads((tmp_path / "log.json").read_text())["epochs"] == 2


def test_batches_that_wait_on_an_accelerator_are_written_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, repeated = DynamicsLogger(LABELS, K, tmp_path), torch.tensor([0, 1])
    log.batch(torch.arange(2, N), LOGITS[0, 2:])
    moment = log.moments["train"]
    monkeypatch.setattr(moment, "write", lambda: None)
    log.batch(repeated, LOGITS[1, :2])
    log.batch(repeated, LOGITS[0, :2])
    assert len(moment.waiting) == 2
    monkeypatch.undo()
    assert log.end_epoch() == EpochNote(1, repeated=2)
    assert (log.record()[TRAIN_SUMMARY] == summarise(LOGITS[:1], LABELS)).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda log: log.batch(torch.arange(3), torch.zeros(3, K + 1)), r"shape \(3, 6\); expected \(3, 5\)"),
        (lambda log: log.batch(torch.arange(2), torch.zeros(3, K)), r"expected \(2, 5\), a row for each index"),
        (lambda log: log.batch(torch.tensor([N]), torch.zeros(1, K)), "Indices run from 40 to 40; expected 0 to 39"),
        (lambda log: log.batch(torch.tensor([-1]), torch.zeros(1, K)), "Indices run from -1"),
        (lambda log: log.end_epoch(), r"Nothing was logged by `batch\(indices, logits\)` in this epoch"),
        (lambda log: DynamicsLogger(LABELS[:, None], K, log.folder), r"shape \(40, 1\); expected whole numbers"),
        (lambda log: DynamicsLogger(LABELS, K - 1, log.folder), "given_labels run from 0 to 4; expected 0 to 3"),
        (lambda log: log.record(), "No epoch is complete yet"),
        (lambda log: DynamicsLogger(LABELS, K, log.folder, after_epoch=1), "has 0 complete epochs, fewer than 1"),
    ],
)
def test_mistakes_are_told_in_a_sentence(wrong, says: str, tmp_path: Path) -> None:
    with pytest.raises(LincBenchError, match=says):
        wrong(DynamicsLogger(LABELS, K, tmp_path))


def test_a_folder_with_another_log_is_not_touched(tmp_path: Path) -> None:
    log_epochs(DynamicsLogger(LABELS, K, tmp_path), range(2))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for labels, classes, after, says in (
        (LABELS, K, 0, "2 epochs of an earlier training. Choose another folder, or continue"),
        (LABELS, K, 3, "has 2 complete epochs, fewer than 3"),
        ((LABELS + 1) % K, K, 2, "the log of other labels"),
        (LABELS, K + 1, 2, "the log of other labels or settings"),
    ):
        with pytest.raises(LincBenchError, match=says):
            DynamicsLogger(labels, classes, tmp_path, after_epoch=after)
    with pytest.raises(LincBenchError, match="has no log of a training"):
        DynamicsLogger(LABELS, K, tmp_path / "new", after_epoch=1)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_a_log_that_was_cut_is_not_continued(tmp_path: Path) -> None:
    log_epochs(DynamicsLogger(LABELS, K, tmp_path), range(3))
    file = tmp_path / "eval.bin"
    file.write_bytes(file.read_bytes()[: 24 * N + 5])
    with pytest.raises(LincBenchError, match="fewer than its 2 epochs: it was cut"):
        DynamicsLogger(LABELS, K, tmp_path, after_epoch=2)


def test_an_epoch_without_its_evaluation_or_its_steps_is_refused(tmp_path: Path) -> None:
    log = DynamicsLogger(LABELS, K, tmp_path)
    log_epochs(log, range(1))
    log.batch(torch.arange(N), LOGITS[1])
    with pytest.raises(LincBenchError, match=r"`evaluation\(indices, logits\)` after this epoch"):
        log.end_epoch()
    log.evaluation(torch.arange(N), LOGITS[1])
    assert log.end_epoch() == EpochNote(2)
    log.evaluation(torch.arange(N), LOGITS[2])
    with pytest.raises(LincBenchError, match=r"`batch\(indices, logits\)` in this epoch"):
        log.end_epoch()


def test_evaluations_are_logged_from_the_first_epoch_or_never(tmp_path: Path) -> None:
    log = DynamicsLogger(LABELS, K, tmp_path)
    log.batch(torch.arange(N), LOGITS[0])
    log.end_epoch()
    with pytest.raises(LincBenchError, match="Evaluations were not logged in the first 1 epochs"):
        log.evaluation(torch.arange(N), LOGITS[1])

"""What several detectors compute from logits, or from their summary; pure functions over a block of samples."""

from typing import Literal

import numpy as np

from benchmark.record import EvalSummary, RunRecord, Signal, TrainSummary

Moment = Literal["presentation", "end of epoch"]


def summary_at(moment: Moment, at_epochs: tuple[int, ...] | None = None) -> Signal:
    """Of logits that produced the update, or of the evaluation that ends the epoch; of all epochs or of some."""
    return TrainSummary(at_epochs) if moment == "presentation" else EvalSummary(at_epochs)


def given_probability(summary: np.ndarray) -> np.ndarray:
    """p(given label), in double precision."""
    return np.exp(-summary["loss"].astype(np.float64))


def given_margin(summary: np.ndarray) -> np.ndarray:
    """The logit of the given label less the largest other one, in double precision."""
    return summary["given"].astype(np.float64) - summary["best_other"]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, in double precision."""
    from scipy import special

    return special.softmax(logits.astype(np.float64), axis=-1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, in double precision."""
    from scipy import special

    return special.log_softmax(logits.astype(np.float64), axis=-1)


def given_class(values_EBK: np.ndarray, labels_B: np.ndarray) -> np.ndarray:
    """The value of each sample's given class, in every epoch: epochs × samples."""
    return np.take_along_axis(values_EBK, labels_B[None, :, None], axis=2)[..., 0]


def best_other_class(values_EBK: np.ndarray, labels_B: np.ndarray) -> np.ndarray:
    """The largest value among the other classes: epochs × samples."""
    others_EBK = values_EBK.copy()
    np.put_along_axis(others_EBK, labels_B[None, :, None], -np.inf, axis=2)
    return others_EBK.max(axis=2)


def losses_of(record: RunRecord, signal: Signal) -> np.ndarray:
    """Cross-entropy of the given label: samples × epochs."""
    return record.map_samples(lambda labels_B, summary_EB: summary_EB["loss"].T, signal)


def mean_cross_entropy(labels_B: np.ndarray, summary_EB: np.ndarray) -> np.ndarray:
    """Of the given label, over these epochs: samples."""
    return summary_EB["loss"].astype(np.float64).mean(axis=0)

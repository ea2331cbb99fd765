"""What several detectors compute from logits; pure functions over a block of samples."""

from typing import Literal

import numpy as np

from benchmark.record import EvalLogits, Signal, TrainLogits

Moment = Literal["presentation", "end of epoch"]


def logits_at(moment: Moment, at_epochs: tuple[int, ...] | None = None) -> Signal:
    """Logits that produced the update, or those of the evaluation that ends the epoch; of all epochs or of some."""
    return TrainLogits(at_epochs) if moment == "presentation" else EvalLogits(at_epochs)


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


def given_log_probability(logits_EBK: np.ndarray, labels_B: np.ndarray) -> np.ndarray:
    """log p(given label), in every epoch: epochs × samples."""
    return given_class(log_softmax(logits_EBK), labels_B)


def mean_cross_entropy(labels_B: np.ndarray, logits_EBK: np.ndarray) -> np.ndarray:
    """Of the given label, over these epochs: samples."""
    return -given_log_probability(logits_EBK, labels_B).mean(axis=0)

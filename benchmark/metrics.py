"""How well scores find the mislabelled samples, and how well a run classifies; pure functions."""

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score


def detection_metrics(is_mislabelled: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Mislabelled is the positive class, always; ties count half in the AUROC."""
    return {
        "auroc": float(roc_auc_score(is_mislabelled, scores)),
        "auprc": float(average_precision_score(is_mislabelled, scores)),
    }


def why_undefined(is_mislabelled: np.ndarray) -> str | None:
    """Why detection cannot be judged here, or None if it can."""
    if not is_mislabelled.any():
        return "no label was made wrong, so there is nothing to detect"
    if is_mislabelled.all():
        return "every label was made wrong, so there is nothing to tell apart"
    return None


def accuracy_metrics(
    test_accuracy: np.ndarray, noisy_validation_accuracy: np.ndarray, clean_validation_accuracy: np.ndarray
) -> dict[str, float]:
    """Over epochs: the paper's best and last, and what one gets by choosing the epoch on validation labels.

    The best epoch by test accuracy is an oracle, and so is the choice by clean validation labels; a practitioner has
    the noisy ones. The earliest of equally good epochs is chosen.
    """
    return {
        "best_test": float(test_accuracy.max()),
        "last_test": float(test_accuracy[-1]),
        "test_by_noisy_validation": float(test_accuracy[noisy_validation_accuracy.argmax()]),
        "test_by_clean_validation": float(test_accuracy[clean_validation_accuracy.argmax()]),
    }

"""How well scores find the mislabelled samples, and how well a run classifies; pure functions."""

import numpy as np

BUDGETS = (1, 5, 10, 20)  # per cent of the data that somebody looks at again


def detection_metrics(is_mislabelled: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Mislabelled is the positive class, always; ties count half in the AUROC and share their places in a list."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    rate, positives = float(is_mislabelled.mean()), int(is_mislabelled.sum())
    return {
        "auroc": float(roc_auc_score(is_mislabelled, scores)),
        "auprc": float(average_precision_score(is_mislabelled, scores)),
        "auprc_chance": rate,
        "precision_at_rate": _found_in_top(is_mislabelled, scores, rate) / positives,
        **{f"recall_{share}": _found_in_top(is_mislabelled, scores, share / 100) / positives for share in BUDGETS},
        "ties": 1.0 - len(np.unique(scores)) / len(scores),
    }


def _found_in_top(is_mislabelled: np.ndarray, scores: np.ndarray, share: float) -> float:
    """How many mislabelled samples are among the highest scores; of equal scores at the border, the expected number."""
    wanted = round(share * len(scores))
    if wanted == 0:
        return 0.0
    border = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
    above, at_border = scores > border, scores == border
    left = wanted - int(above.sum())
    return float(is_mislabelled[above].sum() + is_mislabelled[at_border].mean() * left)


def why_undefined(is_mislabelled: np.ndarray) -> str | None:
    """Why detection cannot be judged here, or None if it can."""
    if not is_mislabelled.any():
        return "no label was made wrong, so there is nothing to detect"
    if is_mislabelled.all():
        return "every label was made wrong, so there is nothing to tell apart"
    return None


def roc_points(is_mislabelled: np.ndarray, scores: np.ndarray, points: int = 61) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates along the curve, at steps that are denser near zero."""
    from sklearn.metrics import roc_curve

    false_positive, true_positive, _ = roc_curve(is_mislabelled, scores)
    grid = np.linspace(0, 1, points) ** 2
    return grid, np.interp(grid, false_positive, true_positive)


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


def batch_mean_accuracy(is_correct_EN: np.ndarray, batch_size: int) -> np.ndarray:
    """The mean of the batches' accuracies, per epoch, as the paper appears to report it."""
    borders = range(0, is_correct_EN.shape[1], batch_size)
    return np.stack([is_correct_EN[:, start : start + batch_size].mean(axis=1) for start in borders]).mean(axis=0)


def correction_metrics(
    given: np.ndarray, clean: np.ndarray, corrected: np.ndarray, component: np.ndarray
) -> dict[str, float]:
    """LiNC as a corrector: component 0 is the noisy one, 1 the ambiguous one. A share of nothing is NaN."""
    is_wrong, is_noisy, changed = given != clean, component == 0, corrected != given
    return {
        "noisy_share": _share(is_noisy),
        "ambiguous_share": _share(component == 1),
        "noisy_precision": _share(is_wrong[is_noisy]),
        "noisy_recall": _share(is_noisy[is_wrong]),
        "corrected": int(changed.sum()),
        "corrected_right": _share((corrected == clean)[changed]),
        "label_accuracy_before": _share(~is_wrong),
        "label_accuracy_after": _share(corrected == clean),
    }


def _share(flags: np.ndarray) -> float:
    return float(flags.mean()) if len(flags) else float("nan")

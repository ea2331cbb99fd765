"""What the first batches did to trust, and what another mixture would have found; all from the trust of a run."""

import numpy as np

from benchmark.identity import Json
from benchmark.record import RunRecord
from benchmark.statistics.mixture import fit_mixture
from benchmark.training import TrainingSettings
from detectors.linc import COMPONENT, TRUST, LiNCRecipe

FIRST = 10  # batches in which a new head has hardly learned anything
SHOWN = 40  # batches at most


def first_gradients(record: RunRecord, recipe: LiNCRecipe, settings: TrainingSettings) -> list[Json]:
    """The mean trust gradient of each given class in each batch of the first epoch.

    Trust starts at 1 and each sample moves once in an epoch, so that the gradient follows from the trust after the
    first one: α = 1 − η(g/B + λ). Where trust was kept from leaving [0, 1] it is the nearest one.
    """
    if recipe.trust_from_epoch > 1:
        return []
    scale = settings.batch_size if recipe.trust_gradient == "mean" else 1
    moved_N = (1.0 - record[TRUST][0].astype(np.float64)) / recipe.trust_rate
    gradient_N, batch_N = scale * (moved_N - recipe.trust_decay), _first_batch(record, settings)
    return [
        {"class": str(label), "batch": int(batch) + 1, "gradient": round(float(gradient_N[members].mean()), 4)}
        for label in np.unique(record.given_labels)
        for batch in range(min(SHOWN, batch_N.max() + 1))
        if (members := (record.given_labels == label) & (batch_N == batch)).any()
    ]


def first_batches_share(record: RunRecord, settings: TrainingSettings) -> dict[str, float]:
    """Which share of all samples, and of the noisy component, the first batches of the first epoch had, if not all."""
    is_first, is_noisy = _first_batch(record, settings) < FIRST, np.asarray(record[COMPONENT]) == 0
    if is_first.all():
        return {}
    shares = {"in_first_batches": float(is_first.mean())}
    return shares | ({"noisy_in_first_batches": float(is_first[is_noisy].mean())} if is_noisy.any() else {})


def _first_batch(record: RunRecord, settings: TrainingSettings) -> np.ndarray:
    """The number of each sample's batch in the first epoch, from 0."""
    from benchmark.training.loop import sample_orders

    batch_N = np.empty(len(record.given_labels), dtype=np.int64)
    batch_N[next(sample_orders(settings.seed, len(batch_N))).numpy()] = np.arange(len(batch_N)) // settings.batch_size
    return batch_N


def log_mixture(record: RunRecord, recipe: LiNCRecipe, is_mislabelled: np.ndarray) -> dict[str, float]:
    """Precision and recall of the noisy component if the mixture were fitted to log(max α − α), which spreads the
    many samples of high trust; not what the recipe does."""
    trust = record[TRUST][min(recipe.warm_up, record.epochs) - 1].astype(np.float64)
    below = trust.max() - trust
    if not below.any():
        return {}
    mixture = fit_mixture(-np.log(np.maximum(below, below[below > 0].min())), recipe.components)
    if mixture is None:
        return {}
    is_noisy = mixture.assignment == 0
    shares = {"log_precision": float(is_mislabelled[is_noisy].mean())}
    return shares | ({"log_recall": float(is_noisy[is_mislabelled].mean())} if is_mislabelled.any() else {})

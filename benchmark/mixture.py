"""A Gaussian mixture over one number per sample, with an assignment that never jumps back."""

from dataclasses import dataclass

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Mixture:
    """Components in the order of their means, in the units of the data; `assignment` counts them from the lowest."""

    means: np.ndarray
    standard_deviations: np.ndarray
    weights: np.ndarray
    assignment: np.ndarray


def separate(values: np.ndarray, components: int, initialisations: int = 5) -> Mixture | None:
    """Fits the mixture; None where there is nothing to separate (fewer distinct values than components).

    Values are standardised first: a component's variance may otherwise be smaller than the regularisation.
    """
    values = np.asarray(values, dtype=np.float64)
    centre, scale = values.mean(), values.std()
    if len(np.unique(values)) < components or scale <= 1e-12 * max(1.0, abs(centre)):
        return None
    standardised = ((values - centre) / scale)[:, None]
    with threadpool_limits(limits=1):  # k-means sums in the order its threads finish
        model = GaussianMixture(components, n_init=initialisations, random_state=0)
        model.fit(np.sort(standardised, axis=0))  # sorted, so that the order of samples does not matter
        order = np.argsort(model.means_[:, 0])
        rank_of = np.argsort(order)
        # A wide component wins both tails, so the lowest values could count as "clean": below the lowest mean a value
        # is no less noisy than that mean; from there on the assignment may only rise.
        ranks = rank_of[model.predict(standardised)]
        at_lowest_mean = rank_of[model.predict(model.means_[order[:1]])][0]
    ranks = np.where(standardised[:, 0] < model.means_[order[0], 0], np.minimum(ranks, at_lowest_mean), ranks)
    ascending = np.argsort(values, kind="stable")
    assignment = np.empty(len(values), dtype=np.int8)
    assignment[ascending] = np.maximum.accumulate(ranks[ascending])
    return Mixture(
        means=model.means_[order, 0] * scale + centre,
        standard_deviations=np.sqrt(model.covariances_[order, 0, 0]) * scale,
        weights=model.weights_[order],
        assignment=assignment,
    )


def posterior_of_highest(values: np.ndarray, initialisations: int = 5) -> np.ndarray:
    """The probability that a value is of the higher of two components; zero where there is nothing to separate."""
    values = np.asarray(values, dtype=np.float64)
    scale = values.std()
    if len(np.unique(values)) < 2 or scale <= 1e-12 * max(1.0, abs(values.mean())):
        return np.zeros(len(values))
    standardised = ((values - values.mean()) / scale)[:, None]
    with threadpool_limits(limits=1):
        model = GaussianMixture(2, n_init=initialisations, random_state=0).fit(np.sort(standardised, axis=0))
        # Between the means the posterior rises; beyond them a wide component would win both tails.
        within = np.clip(standardised, model.means_.min(), model.means_.max())
        return model.predict_proba(within)[:, model.means_[:, 0].argmax()]

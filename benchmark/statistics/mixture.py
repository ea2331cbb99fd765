"""A Gaussian mixture over one number per sample, with an assignment that never jumps back.

A fit to a million numbers takes scikit-learn ten seconds to a minute, and as many times the memory of the numbers. The
mixture of 16,384 of them, evenly spaced in their order, is the same to three digits and assigns more than 99.9 % of
samples alike (tests/test_mixture.py): so that is what is fitted where there are more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from benchmark.statistics import without_advice

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

INITIALISATIONS = 5
FITTED = 2**14  # numbers at most
BLOCK = 2**13  # numbers at a time when all are assigned


@dataclass(frozen=True)
class Mixture:
    """Components in the order of their means, in the units of the data; `assignment` counts them from the lowest."""

    means: np.ndarray
    standard_deviations: np.ndarray
    weights: np.ndarray
    assignment: np.ndarray


@dataclass(frozen=True)
class _Fit:
    """Of standardised numbers: a component's variance may otherwise be smaller than the regularisation."""

    model: "GaussianMixture"
    centre: float
    scale: float

    def of_each(self, function: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
        """`function` of the standardised values, block by block."""
        blocks = (values[start : start + BLOCK].astype(np.float64) for start in range(0, len(values), BLOCK))
        return np.concatenate([function((block - self.centre) / self.scale) for block in blocks])


def fit_mixture(values: np.ndarray, components: int) -> Mixture | None:
    """Fits the mixture; None where there is nothing to separate (fewer distinct values than components)."""
    values = np.asarray(values)
    with _one_thread():
        fit = _fit(values, components)
        if fit is None:
            return None
        means = fit.model.means_[:, 0]
        order = np.argsort(means)
        rank_of = np.argsort(order).astype(np.int8)
        lowest_mean = means[order[0]]
        at_lowest_mean = rank_of[fit.model.predict([[lowest_mean]])[0]]

        def ranks(values_B: np.ndarray) -> np.ndarray:
            """A wide component wins both tails, so the lowest values could count as "clean": below the lowest mean a
            value is no less noisy than that mean."""
            rank_B = rank_of[fit.model.predict(values_B[:, None])]
            return np.where(values_B < lowest_mean, np.minimum(rank_B, at_lowest_mean), rank_B)

        rank_N = fit.of_each(ranks, values)
    assignment = np.zeros(len(values), dtype=np.int8)
    for rank in range(1, components):  # from its first value on, a rank holds: the assignment may only rise
        if (reached := rank_N >= rank).any():
            assignment[values >= values[reached].min()] = rank
    return Mixture(
        means=means[order] * fit.scale + fit.centre,
        standard_deviations=np.sqrt(fit.model.covariances_[order, 0, 0]) * fit.scale,
        weights=fit.model.weights_[order],
        assignment=assignment,
    )


def posterior_of_highest(values: np.ndarray) -> np.ndarray:
    """The probability that a value is of the higher of two components; zero where there is nothing to separate."""
    values = np.asarray(values)
    with _one_thread():
        fit = _fit(values, 2)
        if fit is None:
            return np.zeros(len(values))
        means = fit.model.means_[:, 0]

        def posterior(values_B: np.ndarray) -> np.ndarray:
            """Between the means it rises; beyond them a wide component would win both tails."""
            within = np.clip(values_B, means.min(), means.max())
            return fit.model.predict_proba(within[:, None])[:, means.argmax()]

        return fit.of_each(posterior, values)


@contextmanager
def _one_thread() -> Iterator[None]:
    """k-means sums in the order its threads finish. A library that is loaded later is not limited."""
    import sklearn.mixture  # noqa: F401

    with threadpool_limits(limits=1):
        yield


@without_advice()
def _fit(values: np.ndarray, components: int) -> _Fit | None:
    from sklearn.mixture import GaussianMixture

    ascending = np.sort(values)  # so that the order of samples does not matter
    centre, scale = ascending.mean(dtype=np.float64), ascending.std(dtype=np.float64)
    distinct = 1 + np.count_nonzero(ascending[1:] != ascending[:-1])
    if distinct < components or scale <= 1e-12 * max(1.0, abs(centre)):
        return None
    if len(ascending) > FITTED:
        ascending = ascending[((np.arange(FITTED) + 0.5) * len(ascending) / FITTED).astype(np.int64)]
    standardised = (ascending.astype(np.float64) - centre) / scale
    model = GaussianMixture(components, n_init=INITIALISATIONS, random_state=0)
    return _Fit(model.fit(standardised[:, None]), float(centre), float(scale))

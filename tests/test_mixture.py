"""The mixture of LiNC and of the loss: monotone, in the units of the data, and fast on a million numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from benchmark.statistics import mixture as module
from benchmark.statistics.mixture import FITTED, fit_mixture, posterior_of_highest


def planted(n: int, means: list[float], deviations: list[float], weights: list[float]) -> np.ndarray:
    """Trust as LiNC leaves it: single precision, within [0, 1]."""
    generator = np.random.default_rng(0)
    component = generator.choice(len(weights), size=n, p=weights)
    values = generator.normal(np.array(means)[component], np.array(deviations)[component])
    return np.clip(values, 0, 1).astype(np.float32)


@given(st.integers(0, 10_000), st.integers(2, 3))
def test_components_never_fall_with_rising_values(seed, components) -> None:
    """Unequal variances would otherwise give the lowest tail to the widest component."""
    generator = np.random.default_rng(seed)
    values = np.concatenate([generator.normal(0.3, 0.01, 60), generator.normal(0.5, generator.uniform(0.01, 0.3), 200)])
    mixture = fit_mixture(values, components)
    assert mixture is not None
    assert (np.diff(mixture.assignment[np.argsort(values)]) >= 0).all()
    assert (np.diff(mixture.means) >= 0).all()


def test_unconstrained_assignment_would_call_the_lowest_tail_clean() -> None:
    """The trap itself: a wide high component around a narrow low one."""
    generator = np.random.default_rng(0)
    values = np.concatenate([generator.normal(0.4, 0.005, 900), generator.normal(0.5, 0.1, 600)])
    plain = GaussianMixture(2, n_init=5, random_state=0).fit(values[:, None])
    lowest = values.argmin()
    assert plain.predict(values[[lowest]][:, None])[0] == plain.means_.argmax()
    mixture = fit_mixture(values, 2)
    assert mixture is not None
    assert mixture.assignment[lowest] == 0


def test_the_lowest_values_are_noisy_even_if_their_component_is_the_wide_one() -> None:
    generator = np.random.default_rng(0)
    values = np.concatenate([generator.normal(0.590, 0.002, 900), generator.normal(0.588, 0.02, 300)])
    mixture = fit_mixture(values, 2)
    assert mixture is not None
    assert mixture.assignment[values.argmin()] == 0
    assert 20 < (mixture.assignment == 0).sum() < 300


def test_mixture_means_are_in_the_units_of_the_data_even_when_tiny() -> None:
    generator = np.random.default_rng(0)
    values = np.concatenate([generator.normal(mean, 1e-5, 300) for mean in (0.5900, 0.5903, 0.5906)])
    mixture = fit_mixture(values, 3)
    assert mixture is not None
    np.testing.assert_allclose(mixture.means, [0.5900, 0.5903, 0.5906], atol=1e-5)


@pytest.mark.parametrize(
    "values",
    [
        planted(60_000, [0.50, 0.56, 0.59], [0.02, 0.02, 0.004], [0.15, 0.15, 0.7]),
        planted(60_000, [0.54, 0.56, 0.58], [0.015, 0.01, 0.01], [0.2, 0.3, 0.5]),
        np.random.default_rng(0).beta(8, 2, 60_000).astype(np.float32),
    ],
    ids=["apart", "overlapping", "not a mixture at all"],
)
def test_many_values_are_assigned_as_by_a_fit_to_all_of_them(values, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(values) > 3 * FITTED
    quick = fit_mixture(values, 3)
    quick_posterior = posterior_of_highest(values)
    monkeypatch.setattr(module, "FITTED", len(values))
    full = fit_mixture(values, 3)
    assert quick is not None
    assert full is not None
    assert (quick.assignment == full.assignment).mean() >= 0.999
    np.testing.assert_allclose(quick.means, full.means, atol=1e-3)
    np.testing.assert_allclose(quick_posterior, posterior_of_highest(values), atol=0.01)


def test_the_assignment_is_that_of_scikit_learn_where_components_lie_apart() -> None:
    values = planted(3000, [0.3, 0.5, 0.7], [0.02, 0.02, 0.02], [0.2, 0.3, 0.5])
    own = fit_mixture(values, 3)
    theirs = GaussianMixture(3, n_init=5, random_state=0).fit(values[:, None].astype(np.float64) * 100)
    rank_of = np.argsort(np.argsort(theirs.means_[:, 0]))
    assert own is not None
    assert (own.assignment == rank_of[theirs.predict(values[:, None].astype(np.float64) * 100)]).all()


def test_the_order_of_samples_does_not_matter() -> None:
    values = planted(2 * FITTED, [0.50, 0.56, 0.59], [0.02, 0.02, 0.004], [0.15, 0.15, 0.7])
    shuffled = np.random.default_rng(1).permutation(len(values))
    one, other = fit_mixture(values, 3), fit_mixture(values[shuffled], 3)
    assert one is not None
    assert other is not None
    assert (one.assignment[shuffled] == other.assignment).all()


@pytest.mark.parametrize("values", [np.full(50, 0.6), np.array([0.5] * 30 + [0.6] * 30), np.full(2 * FITTED, 0.6)])
def test_nothing_to_separate(values: np.ndarray) -> None:
    assert fit_mixture(values, 3) is None

"""Wrong labels: how many, which, and who knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.cli.command_line import command_line
from benchmark.data.noise import NOISE_KINDS, AnswerKey, NoiseSettings, noise_named
from benchmark.errors import LincBenchError

labels_and_classes = st.integers(2, 9).flatmap(
    lambda classes: st.tuples(st.lists(st.integers(0, classes - 1), min_size=1, max_size=200), st.just(classes))
)


@given(labels_and_classes, st.floats(0, 1), st.integers(0, 99))
def test_symmetric_noise_makes_exactly_that_many_labels_wrong(drawn, rate, seed) -> None:
    clean, classes = np.array(drawn[0]), drawn[1]
    given_labels = NoiseSettings("symmetric", rate=rate, seed=seed).corrupt(clean, classes, "train")
    assert (given_labels != clean).sum() == round(rate * len(clean))
    assert ((given_labels >= 0) & (given_labels < classes)).all()


@pytest.mark.parametrize(("kind", "rate"), [("symmetric", 0), ("symmetric", 0.3), ("symmetric-inclusive", 1)])
def test_rates_that_leave_something_to_find_or_are_meant_are_allowed(kind: str, rate: float) -> None:
    NoiseSettings(kind, rate=rate).check(100, "labels")


def test_no_noise_with_a_minus_is_no_noise() -> None:
    assert str(command_line().parse_args(["run", "--rate", "-0"]).rates) == "[0.0]"


@pytest.mark.parametrize("kind", NOISE_KINDS, ids=lambda kind: kind.name)
def test_noise_leaves_its_input_alone_and_repeats_itself(kind) -> None:
    clean = np.arange(100) % 4
    before = clean.copy()
    settings = NoiseSettings(kind.name, rate=0.5, seed=3)
    first, second = settings.corrupt(clean, 4, "train"), settings.corrupt(clean, 4, "train")
    assert (clean == before).all()
    assert (first == second).all()
    assert (first != settings.corrupt(clean, 4, "validation")).any(), "splits draw from streams of their own"
    assert (first != NoiseSettings(kind.name, rate=0.5, seed=4).corrupt(clean, 4, "train")).any()


def test_wrong_classes_are_drawn_uniformly_from_the_others() -> None:
    clean = np.zeros(60_000, dtype=np.int64)
    given_labels = NoiseSettings("symmetric", rate=0.5).corrupt(clean, 4, "train")
    counts = np.bincount(given_labels, minlength=4)
    assert counts[0] == 30_000
    assert (np.abs(counts[1:] - 10_000) < 400).all()


def test_inclusive_noise_keeps_some_labels_right_and_they_do_not_count_as_wrong() -> None:
    """A peer counts every redrawn label as noisy, which caps a perfect detector at 1 − 1/(2C)."""
    clean = np.arange(40_000) % 2
    given_labels = NoiseSettings("symmetric-inclusive", rate=0.5).corrupt(clean, 2, "train")
    is_mislabelled = AnswerKey(clean, clean).is_mislabelled(given_labels)
    assert is_mislabelled.mean() == pytest.approx(0.25, abs=0.01)
    assert (is_mislabelled == (given_labels != clean)).all()


@pytest.mark.parametrize("rate", [-0.1, 1.01, float("nan")])
def test_a_rate_outside_zero_to_one_is_refused(rate: float) -> None:
    with pytest.raises(LincBenchError, match="from 0 to 1"):
        NoiseSettings(rate=rate)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(LincBenchError, match="Did you mean 'symmetric'"):
        noise_named("symetric")

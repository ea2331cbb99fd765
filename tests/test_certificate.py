"""Certificates of a review: bounds hold whenever the reviewer stops, are the best of their set, and follow facts."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from benchmark.counting.certificate import (
    LEVEL,
    RIGHT,
    UNDECIDED,
    UNRESOLVED,
    WRONG,
    bounds,
    certificate,
    estimate,
    farthest,
    places_for,
    profile,
    start_of,
    weight,
)
from benchmark.counting.certificate_words import in_words


@given(st.integers(1, 30), st.data())
def test_a_profile_is_the_hypergeometric_likelihood(size: int, data: st.DataObject) -> None:
    drawn = data.draw(st.integers(0, size))
    wrong = data.draw(st.integers(0, drawn))
    expected = np.array([hypergeom(size, count, drawn).pmf(wrong) for count in range(size + 1)])
    np.testing.assert_allclose(profile(size, drawn, wrong), expected / expected.max(), rtol=1e-9, atol=1e-12)


def test_a_weight_is_the_mean_over_the_prior() -> None:
    from scipy.stats import betabinom

    likelihood = profile(20, 6, 2)
    prior = betabinom(20, 0.5, 0.5).pmf(np.arange(21))
    assert weight(likelihood) == pytest.approx(float(prior @ np.array(likelihood)))
    assert weight(profile(20, 0, 0)) == pytest.approx(1.0), "without decisions, nothing is learned"


def tried(profiles: list[list[float]], lowest: list[int], highest: list[int], moves: list[bool], limit: float) -> list:
    """The sums over the strata that move, of all numbers in the set; brute force."""
    ranges = [range(low, high + 1) for low, high in zip(lowest, highest, strict=True)]
    return [
        sum(count for count, is_moving in zip(counts, moves, strict=True) if is_moving)
        for counts in product(*ranges)
        if np.prod([likelihood[count] for likelihood, count in zip(profiles, counts, strict=True)]) > limit
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3), st.data())
def test_no_other_numbers_of_the_set_lie_farther(strata: list[tuple[int, int, int]], data: st.DataObject) -> None:
    profiles, product = [], 1.0
    for size, drawn, wrong in strata:
        profiles.append(profile(size, min(drawn, size), min(wrong, drawn, size)))
        product /= weight(profiles[-1])
    moves = data.draw(st.lists(st.booleans(), min_size=len(profiles), max_size=len(profiles)))
    lowest, highest = [0] * len(profiles), [len(likelihood) - 1 for likelihood in profiles]
    sums = tried(profiles, lowest, highest, moves, LEVEL / product)
    starts = [start_of(likelihood, 0, len(likelihood) - 1) for likelihood in profiles]
    assert farthest(profiles, starts, product, lowest, highest, moves, -1) == min(sums)
    assert farthest(profiles, starts, product, lowest, highest, moves, 1) == max(sums)


def drawn_order(sizes: tuple[int, ...], generator: random.Random) -> list[int]:
    """Places of two strata, one of the first for two of the second."""
    first, second = list(range(sizes[0])), list(range(sizes[0], sum(sizes)))
    generator.shuffle(first)
    generator.shuffle(second)
    order = []
    while first or second:
        order += [first.pop()] if first else []
        order += [second.pop() for _ in range(min(2, len(second)))]
    return order


@pytest.mark.parametrize(("in_first", "below"), [(30, 0), (5, 40), (38, 120), (0, 0)])
def test_bounds_hold_at_all_times_together(in_first: int, below: int) -> None:
    """A reviewer who looks at the bounds after every decision, and stops when they are wrong, seldom can."""
    sizes, missed, generator = (40, 360), 0, random.Random(0)
    edges, trials = [40, 400], 150
    for _ in range(trials):
        truth = [WRONG] * in_first + [RIGHT] * (40 - in_first) + [WRONG] * below + [RIGHT] * (360 - below)
        order = drawn_order(sizes, generator)
        decisions, is_missed = [UNDECIDED] * 400, False
        for turn, place in enumerate(order[:200], 1):
            decisions[place] = truth[place]
            if turn % 5 == 0:
                (first, total, _), (_, most, rest) = (bounds(decisions, edges, order, turn, step) for step in (-1, 1))
                is_missed |= not (first <= in_first and total <= in_first + below <= most and below <= rest)
        missed += is_missed
    assert missed <= LEVEL * trials


def test_what_is_decided_outside_the_order_counts_as_a_fact() -> None:
    order, edges = list(range(99, 9, -1)), [10, 100]
    decisions = [WRONG] * 10 + [UNDECIDED] * 90
    found = certificate(decisions, edges, order)
    assert (found["sampled"], found["found"], found["low"], found["high"]) == (0, 10, 10, 100)
    assert found["held"][:10] == list(range(1, 11))
    for place in order[:60]:
        decisions[place] = RIGHT
    later = certificate(decisions, edges, order)
    assert later["sampled"] == 60
    assert later["low"] == 10
    assert 10 <= later["high"] < 30


def test_everything_decided_is_known() -> None:
    truth = [WRONG, RIGHT, WRONG, RIGHT, RIGHT, RIGHT, WRONG, RIGHT, RIGHT, RIGHT]
    found = certificate(truth, [1, 10], [3, 1, 2])
    assert (found["low"], found["high"]) == (3, 3)
    assert found["held"] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert found["rest"] == [2, 2, 1, 1, 1, 1, 0, 0, 0, 0]
    assert places_for(found["held"], found["rest"], 0.6) == 3
    assert places_for(found["held"], found["rest"], 1.0) == 7


def test_unresolved_labels_widen_bounds_on_both_sides() -> None:
    generator = random.Random(1)
    order = drawn_order((30, 270), generator)
    decisions = [UNDECIDED] * 300
    for turn, place in enumerate(order[:90]):
        decisions[place] = WRONG if turn % 4 == 0 else RIGHT
    decided = certificate(decisions, [30, 300], order)
    for decision in (WRONG, RIGHT):
        doubted = list(decisions)
        doubted[next(place for place in order[:90] if decisions[place] == decision)] = UNRESOLVED
        wider = certificate(doubted, [30, 300], order)
        assert wider["sampled"] == decided["sampled"]
        assert wider["low"] <= decided["low"] <= decided["high"] <= wider["high"]
        assert (wider["low"], wider["high"]) != (decided["low"], decided["high"])


def test_more_of_the_sample_narrows_the_bounds() -> None:
    generator = random.Random(2)
    order, widths = drawn_order((200, 1800), generator), []
    decisions = [UNDECIDED] * 2000
    for turn, place in enumerate(order[:300], 1):
        decisions[place] = WRONG if place < 120 or place % 40 == 0 else RIGHT
        if turn in (50, 100, 200, 300):
            found = certificate(decisions, [200, 2000], order)
            widths.append(found["high"] - found["low"])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.15 * 2000


def test_facts_that_speak_against_skipped_labels_being_right_do_not_narrow_the_rest() -> None:
    """Skipped in the sample, decided by suspicion: most of the first stratum is wrong, and nothing is learned below."""
    generator = random.Random(3)
    order = drawn_order((100, 900), generator)
    decisions = [UNDECIDED] * 1000
    for turn, place in enumerate(place for place in order[:90] if place < 100):
        decisions[place] = UNRESOLVED if turn < 15 else WRONG
    for turn, place in enumerate(place for place in order[:90] if place >= 100):
        decisions[place] = WRONG if turn < 3 else RIGHT
    before = [bounds(decisions, [100, 1000], order, 90, step) for step in (-1, 1)]
    for number, place in enumerate(place for place in range(100) if decisions[place] == UNDECIDED):
        decisions[place] = WRONG if number < 56 else RIGHT
    after = [bounds(decisions, [100, 1000], order, 90, step) for step in (-1, 1)]
    assert after[0][0] == decisions[:100].count(WRONG)
    assert after[0][2] <= before[0][2] + 3, "the lower bound of the rest stays"
    assert after[1][2] >= before[1][2] - 3, "and so does the upper one"


@pytest.mark.parametrize(("in_first", "below"), [(30, 0), (5, 40), (20, 90)])
def test_the_estimate_is_right_on_average_and_lies_within_the_bounds(in_first: int, below: int) -> None:
    truth = [WRONG] * in_first + [RIGHT] * (40 - in_first) + [WRONG] * below + [RIGHT] * (360 - below)
    generator, found = random.Random(0), []
    for _ in range(200):
        order, decisions = drawn_order((40, 360), generator), [UNDECIDED] * 400
        for place in order[:60]:
            decisions[place] = truth[place]
        proved = certificate(decisions, [40, 400], order)
        assert proved["low"] <= proved["about"] <= proved["high"]
        assert proved["wrong"] == sum(decisions[place] == WRONG for place in order[:60])
        found.append(proved["about"])
    assert np.mean(found) == pytest.approx(in_first + below, abs=3 * np.std(found) / 200**0.5 + 0.5)


def test_the_estimate_weights_strata_by_their_size_and_leaves_out_unresolved_labels() -> None:
    order, edges = [0, 10, 11, 1, 12, 13], [10, 100]
    decisions = [UNDECIDED] * 100
    for place, decision in zip(order, [WRONG, RIGHT, WRONG, UNRESOLVED, RIGHT, RIGHT], strict=True):
        decisions[place] = decision
    assert estimate(decisions, edges, order, 6, 0, 100) == [10 + 22 + 1, 2, 1], "10 of 10, and a quarter of 90: 22.5"
    assert estimate(decisions, edges, order, 1, 0, 100)[0] == -1, "nothing of the second stratum is known"
    assert estimate(decisions, edges, order, 6, 40, 100)[0] == 40, "no estimate contradicts facts"


def test_what_is_said_has_an_estimate_plurals_and_nothing_that_is_empty() -> None:
    order, edges, decisions = drawn_order((90, 810), random.Random(0)), [90, 900], [UNDECIDED] * 900
    (said,) = in_words(decisions, edges, order)
    assert said.endswith("decide on the random sample, in its order: 100 to 200 decisions.")
    decisions[order[0]] = RIGHT
    said = " ".join(in_words(decisions, edges, order))
    assert "after 1 decision on" in said
    assert "Worth planning: 99 to 199 more decisions on the random sample." in said
    for place in order[:29]:
        decisions[place] = RIGHT
    assert "Estimate" not in " ".join(in_words(decisions, edges, order)), "too few decisions"
    for turn, place in enumerate(order[:41]):
        decisions[place] = (WRONG, RIGHT, RIGHT, RIGHT, UNRESOLVED)[turn % 5]
    said = " ".join(in_words(decisions, edges, order))
    found = certificate(decisions, edges, order)
    assert f"Estimate: about {found['about']} of 900, from 9 wrong labels in the sample (8 unsure left out)." in said
    assert "are among the first" not in said, "nearly the whole list"
    assert " 0 %" not in said
    for place in order[:300]:
        decisions[place] = WRONG if place < 70 else RIGHT
    said = " ".join(in_words(decisions, edges, order))
    assert said.endswith(" % of all wrong labels.")
    everything = [WRONG] * 70 + [RIGHT] * 830
    assert "At least 90 % of all wrong labels are among the first 63 of" in in_words(everything, edges, order)[3]
    assert "90 %" not in " ".join(in_words([RIGHT] * 900, edges, order)), "there are none"


def test_facts_that_contradict_the_sample_leave_only_facts() -> None:
    """The sample, of 40, has no wrong label; then all others of the stratum turn out to be wrong."""
    order = list(range(40))
    decisions = [RIGHT] * 40 + [WRONG] * 60 + [UNDECIDED] * 900
    found = certificate(decisions, [100, 1000], order)
    assert (found["low"], found["high"]) == (60, 960)

"""What a review proves about wrong labels, whenever the reviewer stops.

The ranked list is cut into strata, and an order drawn beforehand goes through them at random. After each decision in
that order, every possible number of wrong labels of a stratum is tested by the ratio of a prior to its posterior, a
martingale of sampling without replacement (Waudby-Smith and Ramdas, NeurIPS 2020, arXiv 2006.04347); over strata the
ratios multiply. The numbers whose ratio stays below 1 / LEVEL are a set that contains the true ones, at all times
together, with a probability of at least 1 − LEVEL. All bounds here are bounds of that one set, so they hold at once.
Other decisions are facts: they narrow the set and need no probability. (confseq has no bounds for strata, and needs a
C++ library to install.)

The review page runs this file and certificate_words.py too, translated to JavaScript. So they have numbers, lists and
loops only, and no arithmetic but + − × ÷, which both languages round alike: page and Python agree to the last digit.
"""

from typing import Any

LEVEL = 0.05  # the probability with which any of the bounds may be wrong


def profile(size: int, drawn: int, wrong: int) -> list[float]:
    """The likelihood of each number of wrong labels from 0 to `size`, the largest being 1: hypergeometric.

    Of `drawn` labels `wrong` are wrong.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    likelihood = []
    for _ in range(size + 1):
        likelihood.append(0.0)
    right = drawn - wrong
    best = wrong
    if drawn > 0:
        best = min(max((wrong * (size + 1)) // drawn, wrong), size - right)
    likelihood[best] = 1.0
    for step in range(size - right - best):
        count = best + step
        likelihood[count + 1] = (
            likelihood[count] * (count + 1) / (count + 1 - wrong) * (size - count - right) / (size - count)
        )
    for step in range(best - wrong):
        count = best - step
        likelihood[count - 1] = (
            likelihood[count] * (count - wrong) / count * (size - count + 1) / (size - count + 1 - right)
        )
    return likelihood


def weight(likelihood: list[float]) -> float:
    """The mean of a profile over a prior, beta-binomial (1/2, 1/2).

    The prior decides how narrow bounds are, and not whether they hold.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    size = len(likelihood) - 1
    prior = 1.0
    of_prior = 0.0
    of_both = 0.0
    for count in range(size + 1):
        of_prior = of_prior + prior
        of_both = of_both + prior * likelihood[count]
        if count < size:
            prior = prior * (count + 0.5) / (count + 1) * (size - count) / (size - count - 0.5)
    return of_both / of_prior


def farthest(
    profiles: list[list[float]],
    starts: list[int],
    product: float,
    lowest: list[int],
    highest: list[int],
    moves: list[bool],
    step: int,
) -> int:
    """The least (step −1) or greatest (step 1) sum of wrong labels over the strata that move.

    `product` is that of the ratios of posterior to prior at the starts; where it falls to LEVEL, the set ends. Profiles
    fall ever faster from their peaks, so taking the cheapest step each time goes farthest.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    at = []
    for stratum in range(len(profiles)):
        at.append(starts[stratum])
        if product <= LEVEL and moves[stratum]:  # facts and sample contradict each other: only facts are left
            at[stratum] = highest[stratum]
            if step < 0:
                at[stratum] = lowest[stratum]
    while product > LEVEL:
        cheapest = -1
        best = 0.0
        for stratum in range(len(profiles)):
            to = at[stratum] + step
            if moves[stratum] and lowest[stratum] <= to and to <= highest[stratum]:
                here = profiles[stratum][at[stratum]]
                if here > 0 and profiles[stratum][to] / here > best:
                    best = profiles[stratum][to] / here
                    cheapest = stratum
        if cheapest < 0 or product * best <= LEVEL:
            break
        product = product * best
        at[cheapest] = at[cheapest] + step
    total = 0
    for stratum in range(len(profiles)):
        if moves[stratum]:
            total = total + at[stratum]
    return total


def start_of(likelihood: list[float], lowest: int, highest: int) -> int:
    """The likeliest number of wrong labels that facts allow."""
    PSCRIPT_OVERLOAD = False  # noqa: F841
    peak = 0
    for count in range(len(likelihood)):
        if likelihood[count] > likelihood[peak]:
            peak = count
    return min(max(peak, lowest), highest)


def ratio_at(count: int, size: int, drawn: int, fewest: int, most: int) -> float:
    """The largest ratio of posterior to prior at a number, if from `fewest` to `most` of the drawn labels are wrong.

    Unresolved labels are one or the other. Facts on other labels may speak for either, so all are tried.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    largest = 0.0
    for wrong in range(fewest, most + 1):
        likelihood = profile(size, drawn, wrong)
        ratio = likelihood[count] / weight(likelihood)
        if ratio > largest:
            largest = ratio
    return largest


UNDECIDED, RIGHT, WRONG, UNRESOLVED = 0, 1, 2, 3  # what is decided of a label; ambiguous and skipped are unresolved


def bounds(decisions: list[int], edges: list[int], order: list[int], sampled: int, step: int) -> list[int]:
    """The least (step −1) or most (step 1) wrong labels in the first stratum, in all, and in all but the first."""
    PSCRIPT_OVERLOAD = False  # noqa: F841
    profiles, starts, lowest, highest = [], [], [], []
    product = 1.0
    start = 0
    for end in edges:
        drawn, drawn_wrong, unresolved, wrong, right = 0, 0, 0, 0, 0
        for turn in range(sampled):
            if start <= order[turn] and order[turn] < end:
                drawn = drawn + 1
                decision = decisions[order[turn]]
                if decision == 2:
                    drawn_wrong = drawn_wrong + 1
                if decision == 3:
                    unresolved = unresolved + 1
        for place in range(start, end):
            if decisions[place] == 2:
                wrong = wrong + 1
            if decisions[place] == 1:
                right = right + 1
        likelihood = profile(end - start, drawn, drawn_wrong)
        if step > 0:
            likelihood = profile(end - start, drawn, drawn_wrong + unresolved)
        at = start_of(likelihood, wrong, end - start - right)
        product = product * ratio_at(at, end - start, drawn, drawn_wrong, drawn_wrong + unresolved)
        profiles.append(likelihood)
        starts.append(at)
        lowest.append(wrong)
        highest.append(end - start - right)
        start = end
    first, others, everything = [], [], []
    for stratum in range(len(edges)):
        first.append(stratum == 0)
        others.append(stratum > 0)
        everything.append(True)
    return [
        farthest(profiles, starts, product, lowest, highest, first, step),
        farthest(profiles, starts, product, lowest, highest, everything, step),
        farthest(profiles, starts, product, lowest, highest, others, step),
    ]


def certificate(decisions: list[int], edges: list[int], order: list[int]) -> dict[str, Any]:
    """Bounds from what is decided of the ranked list, place by place.

    `edges` are the places at which strata end, and `order` has places in the order drawn beforehand. An unresolved
    label counts as whatever makes bounds wider. `held` and `rest` have an entry for each number
    of places from the top: the least number of wrong labels in them, and the most below them.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    sampled = 0
    while sampled < len(order) and decisions[order[sampled]] != 0:
        sampled = sampled + 1
    low = bounds(decisions, edges, order, sampled, -1)
    high = bounds(decisions, edges, order, sampled, 1)
    open_below, wrong_below, found = 0, 0, 0
    for decision in decisions:
        if decision == 2:
            wrong_below = wrong_below + 1
        if decision == 0 or decision == 3:
            open_below = open_below + 1
    wrong_in_stratum = 0
    held, rest = [], []
    for place in range(len(decisions)):
        if decisions[place] == 2:
            found = found + 1
            wrong_below = wrong_below - 1
        if decisions[place] == 0 or decisions[place] == 3:
            open_below = open_below - 1
        if place < edges[0]:
            wrong_in_stratum = found
        least = max(found, low[1] - wrong_below - open_below)
        most = min(high[1] - found, wrong_below + open_below)
        if place + 1 >= edges[0]:
            least = max(least, low[0] + found - wrong_in_stratum)
            most = min(most, high[2] - found + wrong_in_stratum)
        held.append(least)
        rest.append(most)
    estimated = estimate(decisions, edges, order, sampled, low[1], high[1])
    return {
        "sampled": sampled,
        "found": found,
        "low": low[1],
        "high": high[1],
        "held": held,
        "rest": rest,
        "about": estimated[0],
        "wrong": estimated[1],
        "unresolved": estimated[2],
    }


def estimate(decisions: list[int], edges: list[int], order: list[int], sampled: int, low: int, high: int) -> list[int]:
    """An estimate of the wrong labels, and how many of the sample are wrong and unresolved.

    Each stratum has as many wrong ones, for its size, as the resolved ones of its sample. The bounds limit the
    estimate, since other decisions are facts; it is −1 while a stratum has none resolved. Whole numbers only, which
    page and Python round alike.
    """
    PSCRIPT_OVERLOAD = False  # noqa: F841
    above, below = 0, 1  # of a fraction
    all_wrong, all_unresolved = 0, 0
    start = 0
    for end in edges:
        wrong, resolved = 0, 0
        for turn in range(sampled):
            if start <= order[turn] and order[turn] < end:
                decision = decisions[order[turn]]
                if decision == 2:
                    wrong = wrong + 1
                if decision == 3:
                    all_unresolved = all_unresolved + 1
                else:
                    resolved = resolved + 1
        above = above * resolved + (end - start) * wrong * below
        below = below * resolved
        all_wrong = all_wrong + wrong
        start = end
    about = -1
    if below > 0:
        about = min(max((2 * above + below) // (2 * below), low), high)
    return [about, all_wrong, all_unresolved]


def places_for(held: list[int], rest: list[int], share: float) -> int:
    """From the top, the fewest places that hold at least this share of all wrong labels, for certain."""
    for place in range(len(held)):
        if held[place] >= share * (held[place] + rest[place]):
            return place + 1
    return len(held)

"""What page and command say of a review: the certificate's numbers in sentences. Also translated to JavaScript."""

from benchmark.counting.certificate import certificate, places_for


def counted(number: int, noun: str) -> str:
    if number == 1:
        return "1 " + noun
    return f"{number} {noun}s"


FEWEST = 30  # decisions on the random sample; an estimate by fewer would be far off too often
FEW, ENOUGH = 100, 200  # decisions on the random sample that are worth planning: see the trials in results/README.md


def worth_planning(sampled: int, drawn: int) -> str:
    """How many more decisions on the random sample, of so many drawn; or nothing."""
    PSCRIPT_OVERLOAD = False  # noqa: F841
    least = min(FEW, drawn) - sampled
    most = min(ENOUGH, drawn) - sampled
    if most <= 0:
        return ""
    if least <= 0 or least == most:
        return f"up to {counted(most, 'more decision')}"
    return f"{least} to {counted(most, 'more decision')}"


def in_words(decisions: list[int], edges: list[int], order: list[int]) -> list[str]:
    """What page and command say of the decisions so far: a sentence each."""
    PSCRIPT_OVERLOAD = False  # noqa: F841
    size = len(decisions)
    proved = certificate(decisions, edges, order)
    held, rest, sampled = proved["held"], proved["rest"], proved["sampled"]
    planned = worth_planning(sampled, len(order))
    if sampled == 0:
        start = "To learn how many labels are wrong, decide on the random sample, in its order: "
        return [start + planned.replace("more ", "") + "."]
    sentences = [
        f"{proved['low']} to {proved['high']} of {size} labels are wrong, with 95 % confidence, after "
        f"{counted(sampled, 'decision')} on the random sample. Found so far: {proved['found']}.",
    ]
    if proved["about"] >= 0 and sampled >= FEWEST:
        unsure = ""
        if proved["unresolved"] > 0:
            unsure = f" ({proved['unresolved']} unsure left out)"
        sentences.append(
            f"Estimate: about {proved['about']} of {size}, from {counted(proved['wrong'], 'wrong label')} in the "
            f"sample{unsure}."
        )
    first = edges[0]
    if held[first - 1] > 0:
        share = (100 * held[first - 1]) // (held[first - 1] + rest[first - 1])
        of_all = ""
        if share > 0:
            of_all = f", and at least {share} % of all wrong labels"
        sentences.append(
            f"The first {first} of the list have at least {counted(held[first - 1], 'wrong label')}{of_all}."
        )
    places = places_for(held, rest, 0.9)
    if proved["low"] > 0 and 5 * places <= 4 * size:
        more = 0
        for place in range(places):
            if decisions[place] == 0:
                more = more + 1
        sentences.append(
            f"At least 90 % of all wrong labels are among the first {places} of the list, {more} of them undecided."
        )
    if planned != "":
        sentences.append(f"Worth planning: {planned} on the random sample.")
    return sentences

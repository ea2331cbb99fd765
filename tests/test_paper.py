"""The paper's numbers, and its claims and tables with the measurements of a study beside them."""

import pandas as pd
import pytest

from benchmark.paper.claims import LEAD, MOST_ACCURATE, claims_table
from benchmark.paper.numbers import AUC_LEAD, DETECTION, OTHERS, averages, best_on_clean, clean_accuracy, noisy_accuracy
from benchmark.paper.tables import clean_table, detection_table, noisy_table
from benchmark.reference import DETECTOR
from tests.paper_rows import Row, accuracy, changed, detection, run, tables

DATASET = "breastmnist_rebuilt"
METRICS = detection("digits", {"LiNC": 0.88, "AUM": 0.9})
ACCURACY = [
    accuracy(DATASET, rate, recipe, best, last, seed) | {"best_batch_mean": best + 0.01}
    for rate in (0.0, 0.2)
    for recipe, best, last in (("standard", 0.90, 0.80), ("linc", 0.91, 0.90))
    for seed in (0, 1)
]


def test_the_papers_tables_are_complete() -> None:
    assert clean_accuracy().shape == (10, 8)
    table = noisy_accuracy()
    assert len(table) == 10 * 5 * 2
    assert (table["best"] >= table["last"]).all()


def test_the_papers_text_follows_from_its_table() -> None:
    """Every average that the text states, from the table alone."""
    computed = {average.claim: average for average in averages(noisy_accuracy())}
    assert len(computed) == 17
    for average in computed.values():
        tolerance = 0.0001 if average.unit == "accuracy" else 0.01
        assert average.value == pytest.approx(average.paper, abs=tolerance), average.claim


def test_the_paper_is_best_on_seven_of_ten_clean_data_sets() -> None:
    assert best_on_clean(clean_accuracy()) == 7


def test_the_lead_over_the_strongest_baseline() -> None:
    assert DETECTION[DETECTOR] - max(DETECTION[name] for name in OTHERS) == pytest.approx(AUC_LEAD)


def test_a_table_without_linc_or_with_few_rates_gives_what_it_can() -> None:
    table = noisy_accuracy()
    assert averages(table[table["recipe"] == "standard"]) == []
    few = averages(table[(table["rate"] == 0.2) & (table["dataset"] == "pathmnist")])
    claims = [average.claim for average in few]
    assert "mean gain at the last epoch, 20% noise" in claims
    assert not any("50%" in claim or "Derma" in claim for claim in claims)


def claims(**rows: list[Row]) -> dict[str, Row]:
    return claims_table(tables(**rows)).set_index("claim").to_dict("index")


def answers(says: str, **rows: list[Row]) -> list[str]:
    """What was measured of a sentence of the paper."""
    table = claims_table(tables(**rows))
    return list(table.loc[table["claim"].str.contains(says), "ours"])


def test_a_claim_stands_beside_ours_with_what_differs() -> None:
    found = claims(accuracy=ACCURACY)
    last = found["BreastMNIST, 20% noise, LiNC, last epoch"]
    assert last["paper"] == "0.8956"
    assert last["ours"] == "0.9000 ± 0.0000"
    assert last["difference"] == "+0.0044"
    assert last["seeds"] == 2
    assert "BreastMNIST (rebuilt) instead of BreastMNIST, ViT-S/14 (DINOv2) at 112 px" in last["what differs"]
    assert "BreastMNIST, 20% noise, LiNC, last epoch, mean of batches" in found
    clean = [row["paper"] for claim, row in found.items() if claim.startswith("BreastMNIST, no noise")]
    assert clean == ["0.9170", "0.9170"]


def test_averages_are_taken_over_our_cells() -> None:
    found = claims(accuracy=ACCURACY)
    assert found["mean gain at the last epoch, 20% noise (points)"]["ours"] == "10"
    over = found["mean gain at the best epoch (points)"]["what differs"]
    assert over.startswith("over 1 cells of BreastMNIST (rebuilt); ")


def test_an_auc_stands_beside_ours_on_any_data_set() -> None:
    found = claims(metrics=METRICS)
    auc = found["AUC of AUM, OrganSMNIST, 20% noise"]
    assert auc["ours"] == "0.9000 ± 0.0000"
    assert auc["what differs"].startswith("digits instead of OrganSMNIST")
    assert found[LEAD]["ours"] == "-0.0200 over AUM"


def test_the_papers_tables_with_ours_beside() -> None:
    rows = tables(accuracy=ACCURACY)["accuracy"]
    table = noisy_table(rows)
    assert len(table) == 3
    assert list(table["20% LiNC last"]) == ["0.8956", "0.9000 ± 0.0000", "0.9000 ± 0.0000"]
    assert table.loc[2, "20% No LiNC best"] == "0.9100 ± 0.0000", "means of batches"
    assert clean_table(rows).loc[0, "ours, best epoch"] == "0.900 ± 0.000"
    two_protocols = pd.concat([rows, rows.assign(protocol="q", best_test=0.5)])
    assert len(noisy_table(two_protocols)) == 6, "protocols are never averaged"
    paper, ours = detection_table(tables(metrics=METRICS)["metrics"]).to_dict("records")
    assert paper["LiNC"] == f"{DETECTION[DETECTOR]:.4f}"
    assert ours["AUM"] == "0.9000 ± 0.0000"
    assert ours["VoG"] == "–"


def test_variants_are_not_averaged_with_linc() -> None:
    with_variant = detection("digits", {changed("LiNC", warm_up=10): 0.1, "LiNC": 0.88, "AUM": 0.9})
    ours, alone = (detection_table(tables(metrics=rows)["metrics"]) for rows in (with_variant, METRICS))
    pd.testing.assert_frame_equal(ours, alone)


@pytest.mark.parametrize(("overlaps", "verdict"), [((10, 20), "holds"), ((20, 10), "does not hold")])
def test_the_papers_sentences_on_trust(overlaps: tuple[int, int], verdict: str) -> None:
    rows = [
        run("digits", rate, "linc") | {"subset": subset, "from": at, "to": at + 1, "count": count}
        for rate, shared in zip((0.1, 0.5), overlaps, strict=True)
        for subset, counts in (("clean", (0, shared, 90)), ("mislabelled", (90, shared, 0)))
        for at, count in enumerate(counts)
    ]
    for says in ("overlaps more with that of the others", "is broader"):
        (text,) = answers(f"digits: with more noise the trust of mislabelled samples {says}", trust_histograms=rows)
        assert text.startswith(f"{verdict}: ")


def test_the_three_means_of_the_mixture_stay_apart() -> None:
    rows = [
        run("digits", 0.2, "linc") | {"component": number, "mean": mean, "standard_deviation": 0.1}
        for number, mean in enumerate((0.2, 0.5, 0.7))
    ]
    (text,) = answers("the mixture's three means stay apart", mixtures=rows)
    assert text.endswith("in their standard deviations: 2 to 2 (1 runs)")


def test_what_is_best_without_linc_and_the_lengths_of_phases() -> None:
    other = [
        row | {"learning_rate": 1e-3, "protocol": "q", "setting": "other"}
        | ({"best_test": 0.99} if row["recipe"] == "linc" else {})
        for row in ACCURACY
    ]  # fmt: skip
    longer = [accuracy(DATASET, 0.2, changed("linc", warm_up=10), 0.9, 0.88, seed) for seed in (0, 1)]
    rows = [*ACCURACY, *other, *longer]
    (lengths,) = answers("the lengths of the soft phases matter little", accuracy=rows)
    assert lengths == "accuracy at the last epoch from 0.8800 to 0.9000 over 2 choices"
    (text,) = answers("20% noise: the learning rate and weight decay", accuracy=rows)
    assert text.startswith(
        "does not hold: best without learning rate 0.0005, weight decay 0.0001; with learning rate 0.001"
    )


@pytest.mark.parametrize(("precision", "verdict"), [(0.5, "holds"), (1.0, "does not hold")])
def test_two_components_over_correct_or_not(precision: float, verdict: str) -> None:
    def corrected(recipe: str | tuple[str, str], share: float, precision: float, after: float) -> Row:
        shares = {"noisy_share": share, "noisy_precision": precision, "label_accuracy_after": after}
        return run(DATASET, 0.2, recipe) | {"class": "all"} | shares

    rows = [corrected("linc", 0.1, 0.9, 0.88), corrected(changed("linc", components=2), 0.4, precision, 0.8)]
    (text,) = answers("two components over-correct", corrections=rows)
    touched = f"{0.4 * (1 - precision):.1%} of the samples with two, 1.0% with three"
    assert text.startswith(f"{verdict}: correctly labelled and in the noisy component {touched}")


def test_most_accurate_on_clean_data_sets() -> None:
    row = claims(accuracy=ACCURACY)[MOST_ACCURATE]
    assert (row["paper"], row["ours"]) == ("7 of 10", "1 of 1")
    worse = [row | {"best_test": 0.5} for row in ACCURACY]
    assert claims(accuracy=worse)[MOST_ACCURATE]["ours"] == "0 of 1"


def test_the_gain_grows_with_the_noise_rate_or_not() -> None:
    def at(rate: float, linc: float) -> list[Row]:
        return [accuracy(DATASET, rate, "standard", 0.7, 0.7), accuracy(DATASET, rate, "linc", 0.9, linc)]

    (grows,) = answers("the gain at the last epoch grows", accuracy=at(0.1, 0.75) + at(0.2, 0.8))
    (falls,) = answers("the gain at the last epoch grows", accuracy=at(0.1, 0.85) + at(0.2, 0.8))
    assert (grows, falls) == ("holds: 5, 10", "does not hold: 15, 10")


def test_no_rows_make_no_claims() -> None:
    assert claims() == {}

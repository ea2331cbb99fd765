"""The paper's numbers, and its tables with the measurements of a study beside them."""

import pandas as pd
import pytest

from benchmark.paper.numbers import (
    AUC_LEAD,
    DETECTION,
    OTHERS,
    averages,
    best_on_clean,
    clean_accuracy,
    noisy_accuracy,
)
from benchmark.paper.tables import LEAD, clean_table, detection_tables, noisy_table
from benchmark.reference import DETECTOR
from tests.paper_rows import accuracy, changed, detection, tables

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


def test_the_papers_tables_with_ours_beside() -> None:
    rows = tables(accuracy=ACCURACY)["accuracy"]
    table = noisy_table(rows)
    assert len(table) == 3
    assert list(table["20% LiNC last"]) == ["0.8956", "0.9000 ± 0.0000", "0.9000 ± 0.0000"]
    assert table.loc[2, "20% No LiNC best"] == "0.9100 ± 0.0000", "means of batches"
    assert clean_table(rows).loc[0, "ours, best epoch"] == "0.900 ± 0.000"
    two_protocols = pd.concat([rows, rows.assign(protocol="q", best_test=0.5)])
    assert len(noisy_table(two_protocols)) == 6, "protocols are never averaged"
    ((title, table),) = detection_tables(tables(metrics=METRICS)["metrics"])
    table = table.set_index("detector")
    assert title.startswith("detectors as their authors define them: digits, 20%, symmetric noise, ")
    paper, ours = table["paper, OrganSMNIST"], table["ours, digits"]
    assert [paper["LiNC"], paper[LEAD]] == [f"{DETECTION[DETECTOR]:.4f}", f"{AUC_LEAD:+.4f}"]
    assert ours[["AUM", "VoG", LEAD]].tolist() == ["0.9000 ± 0.0000", "–", "-0.0200"]


def test_table_1_has_the_line_ups_of_its_detectors() -> None:
    metrics = tables(metrics=METRICS)["metrics"]
    margins = metrics.assign(line_up="margins").query("detector == 'LiNC'")
    found = detection_tables(pd.concat([metrics, metrics.assign(line_up="hcat"), margins]))
    assert [title.partition(":")[0] for title, _ in found] == [
        "detectors as their authors define them",
        "detectors as H-CAT defines them",
    ]
    assert detection_tables(metrics[:0]) == []


def test_variants_are_not_averaged_with_linc() -> None:
    with_variant = detection("digits", {changed("LiNC", warm_up=10): 0.1, "LiNC": 0.88, "AUM": 0.9})
    ours, alone = (detection_tables(tables(metrics=rows)["metrics"])[0][1] for rows in (with_variant, METRICS))
    pd.testing.assert_frame_equal(ours, alone)

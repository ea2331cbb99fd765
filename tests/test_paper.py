"""The paper's numbers, and that its text follows from its tables."""

import pytest

from benchmark.paper.numbers import AUC_LEAD, DETECTION, aggregates, best_on_clean, clean_accuracy, noisy_accuracy


def test_tables_are_whole() -> None:
    assert clean_accuracy().shape == (10, 8)
    table = noisy_accuracy()
    assert len(table) == 10 * 5 * 2
    assert (table["best"] >= table["last"]).all()


def test_the_papers_text_follows_from_its_table() -> None:
    """Every aggregate that the text states, from the table alone."""
    computed = {aggregate.claim: aggregate for aggregate in aggregates(noisy_accuracy())}
    assert len(computed) == 17
    for aggregate in computed.values():
        tolerance = 0.0001 if aggregate.unit == "accuracy" else 0.01
        assert aggregate.value == pytest.approx(aggregate.paper, abs=tolerance), aggregate.claim


def test_it_is_best_on_seven_of_ten_clean_data_sets() -> None:
    assert best_on_clean(clean_accuracy()) == 7


def test_the_lead_over_the_strongest_baseline() -> None:
    others = max(value for name, value in DETECTION.items() if name != "LiNC")
    assert DETECTION["LiNC"] - others == pytest.approx(AUC_LEAD)


def test_a_table_without_linc_or_with_few_rates_gives_what_it_can() -> None:
    table = noisy_accuracy()
    assert aggregates(table[table["recipe"] == "standard"]) == []
    few = aggregates(table[(table["rate"] == 0.2) & (table["dataset"] == "pathmnist")])
    claims = [aggregate.claim for aggregate in few]
    assert "mean gain at the last epoch, 20% noise" in claims
    assert not any("50%" in claim or "Derma" in claim for claim in claims)

"""What a report says of a study with several kinds of noise, from made-up rows."""

import pandas as pd
import pytest

from benchmark.drawings.kinds import study_drawings
from benchmark.report.noise_tables import noise_groups
from benchmark.report.parts import StudyPart
from benchmark.report.study_tables import study_groups
from tests.made_up_study import made_up_kinds, made_up_study


@pytest.fixture(scope="module")
def study() -> dict[str, pd.DataFrame]:
    return made_up_kinds()


def test_a_study_of_one_kind_has_no_such_tables() -> None:
    assert not noise_groups(made_up_study())


def test_detectors_by_kind_with_rank_correlations(study: dict[str, pd.DataFrame]) -> None:
    ((title, table),) = noise_groups(study)["noise-kinds"].tables
    assert list(table.columns) == ["detector", "symmetric", "boundary", "given:worse (40%)"]
    assert "given:worse on cifar" in title
    assert table["detector"].iloc[0] == "LiNC"
    last = table.iloc[-1]
    assert last["detector"] == "rank correlation"
    assert last["boundary"].startswith("-1.00") or last["boundary"].startswith("-0.9"), "the ranking is turned over"
    assert last["given:worse (40%)"].startswith(("1.00", "0.9")), "on other data it is the same"


def test_the_findings_are_sentences_from_the_rows(study: dict[str, pd.DataFrame]) -> None:
    notes = " ".join(noise_groups(study)["noise-kinds"].notes)
    assert "Who falls most from symmetric noise on the same data? LiNC (" in notes
    assert "given" not in notes.partition("Who falls most")[2].partition("?")[0], "other data are not compared"
    assert "How is LiNC ranked among 5? 1st for symmetric (best: LiNC), 5th for boundary" in notes
    assert "+5.0 for symmetric, -3.0 for boundary and +5.0 for given:worse" in notes


def test_accuracy_by_kind(study: dict[str, pd.DataFrame]) -> None:
    ((_, table),) = noise_groups(study)["noise-accuracy"].tables
    boundary = table.set_index("noise").loc["boundary"]
    assert boundary["accuracy"] == "-3.0 [-3.0, -3.0]"
    assert boundary["recall, rarest class"] == "+3.0 [+3.0, +3.0]"
    assert boundary["runs"] == 4


def test_what_each_kind_is(study: dict[str, pd.DataFrame]) -> None:
    ((_, table),) = noise_groups(study)["wrong-labels"].tables
    assert list(table["noise"]) == ["boundary", "symmetric"]
    row = table.iloc[0]
    assert (row["most confused"], row["in the hardest tenth"], row["nominal"]) == ("0 → 1, 75%", "30%", "20.0%")
    assert row["chance"] == "0.200 ± 0.100"


def test_one_figure_compares_the_kinds(study: dict[str, pd.DataFrame]) -> None:
    assert [drawing.name for drawing in study_drawings(study)] == ["by_noise_kind"]
    (drawing,) = study_drawings(study)
    figure = drawing.draw(*drawing.rows)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["BloodMNIST, digits", "cifar"]
    assert "by_noise_kind" not in [
        drawing.name for drawing in study_drawings(made_up_study()) if drawing.draw(*drawing.rows)
    ]


def test_rates_are_not_mixed(study: dict[str, pd.DataFrame]) -> None:
    """A second rate of one kind, and a run without its baseline, change nothing."""
    more = study["accuracy"][study["accuracy"]["noise"] == "boundary"]
    more = more.assign(rate=0.4, setting=more["setting"] + "0.4", last_test=0.1)
    lonely = study["accuracy"].query("noise == 'symmetric' and recipe_name == 'linc'").head(1).assign(training_seed=9)
    changed = study | {"accuracy": pd.concat([study["accuracy"], more, lonely])}
    tables = [noise_groups(rows)["noise-accuracy"].tables[0][1] for rows in (study, changed)]
    pd.testing.assert_frame_equal(*tables)


def test_tables_that_are_missing_are_left_out(study: dict[str, pd.DataFrame]) -> None:
    without = study | {"wrong_labels": study["wrong_labels"][:0]}
    assert [group.title for group in StudyPart(without, "made-up").shown()] == [
        "Detection by kind of noise",
        "Accuracy by kind of noise",
    ]


def test_groups_are_part_of_the_study(study: dict[str, pd.DataFrame]) -> None:
    assert {"noise-kinds", "noise-accuracy", "wrong-labels"} <= set(study_groups(study))

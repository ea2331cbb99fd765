"""Every number of the paper has a verdict that follows from the rows."""

from typing import Any

import pandas as pd
import pytest

from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.verdicts import (
    CLOSE,
    CONTRADICTED,
    FAR,
    LARGER,
    NOT_TESTED,
    REPRODUCED,
    VERDICTS,
    count_table,
    in_a_sentence,
    judge_gain,
    judge_value,
    verdict_table,
)
from tests.paper_rows import AUROCS, Named, Row, accuracy, detection, like_the_paper, run, tables

BREAST = like_the_paper("breastmnist")


def of(accuracies: list[Row], metrics: list[Row] | None = None) -> pd.DataFrame:
    of_paper = select.of_the_paper(tables(accuracy=accuracies, metrics=metrics or []))
    return verdict_table(*(select.as_in_the_paper(of_paper[name]) for name in ("metrics", "accuracy")))


def test_every_number_of_the_paper_is_judged_once() -> None:
    table = of(BREAST)
    counts = table["where"].value_counts()
    assert counts["Table 1 (detection)"] == len(paper.DETECTION) + 1, "and LiNC's lead"
    assert counts["Table 2 (no noise)"] == 10 + 1, "and the number of data sets on which it is the best"
    assert counts["Table 3 (noise)"] == 10 * 5 * 2 * 2
    assert counts["Table 3 (LiNC's gain)"] == 10 * 5 * 2
    assert counts["Text (averages)"] == len(paper.averages(paper.noisy_accuracy()))
    assert not table.duplicated(["where", "claim"]).any()
    assert table.astype(bool).all(axis=None), "no cell is empty"
    assert len(of(BREAST, detection("breastmnist", AUROCS))) == len(table)


def test_what_was_run_is_judged_and_the_rest_is_not_tested() -> None:
    table = of(like_the_paper("bloodmnist_rebuilt", "bloodmnist", classes=8)).query("where == 'Table 3 (noise)'")
    own = table["claim"].str.startswith("BloodMNIST")
    assert (table.loc[own, "verdict"] == REPRODUCED).all()
    assert table.loc[own, "why"].str.contains("BloodMNIST (rebuilt)", regex=False).all(), "a rebuilt file is named"
    assert (table.loc[~own, "verdict"] == NOT_TESTED).all()
    assert table.loc[~own, "why"].str.fullmatch(r"\w+MNIST was not run").all()
    table = of([row for row in BREAST if row["rate"] < 0.3])
    missing = table[(table["where"] == "Table 3 (noise)") & (table["verdict"] == NOT_TESTED)]
    assert (missing.loc[missing["claim"].str.startswith("BreastMNIST"), "why"] == "this rate was not run").all()


def test_two_classes_are_compared_under_the_noise_that_the_paper_can_have_had() -> None:
    rows = like_the_paper("breastmnist", noise="symmetric-inclusive")
    wrong = [row | {"best_batch_mean": 0.1, "last_batch_mean": 0.1} for row in BREAST]
    table = of(rows + wrong).query("where == 'Table 3 (noise)'")
    own = table[table["claim"].str.startswith("BreastMNIST")]
    assert (own["verdict"] == REPRODUCED).all()
    assert own["why"].str.contains("symmetric-inclusive").all()


@pytest.mark.parametrize(
    ("ours", "spread", "verdict"),
    [
        (0.905, 0.0, REPRODUCED),
        (0.93, 0.02, REPRODUCED),
        (0.94, 0.0, CLOSE),
        (0.96, 0.1, CONTRADICTED),
        (0.8, 0.0, CONTRADICTED),
    ],
)
def test_accuracies(ours: float, spread: float, verdict: str) -> None:
    assert judge_value(0.9, ours, spread=spread) == verdict


def test_losses_and_shares_have_bands_of_their_own() -> None:
    assert judge_value(2.31, 0.0, "points") == CLOSE, "losing nothing is close to losing little"
    assert judge_value(2.31, 50.0, "points") == CONTRADICTED
    assert judge_value(98, 50, "%") == CONTRADICTED


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(7.0, REPRODUCED), (5.0, CLOSE), (3.0, CONTRADICTED), (20.0, LARGER), (-7.86, CONTRADICTED)],
)
def test_gains(ours: float, verdict: str) -> None:
    assert judge_gain(7.86, ours) == verdict


@pytest.mark.parametrize(
    ("claimed", "ours", "verdict"), [(-3.82, -10.0, CONTRADICTED), (-3.82, 0.0, CLOSE), (0.0, 10.0, CONTRADICTED)]
)
def test_what_is_no_gain_in_the_paper_is_judged_by_the_difference(claimed: float, ours: float, verdict: str) -> None:
    assert judge_gain(claimed, ours) == verdict


def test_a_smaller_gain_contradicts_only_if_seeds_agree() -> None:
    assert judge_gain(4.66, 1.35, reach=0.5) == CONTRADICTED
    assert judge_gain(4.66, 1.35, reach=2.8) == "smaller gain, not for certain"


def test_averages_are_judged_against_the_papers_over_the_same_cells() -> None:
    """The paper's own cells reproduce every average, whatever the average over all cells is."""
    table = of(BREAST).query("where == 'Text (averages)'")
    tested = table[table["verdict"] != NOT_TESTED]
    assert len(tested) > 10
    assert (tested["verdict"] == REPRODUCED).all()
    cells = tested["claim"].map(lambda claim: "1 of the paper's 10" if "50%" in claim else "5 of the paper's 50")
    of_all = ~tested["claim"].str.contains(r"[1-4]0% noise")
    assert all(count in why for count, why in zip(cells[of_all], tested.loc[of_all, "why"], strict=True))
    gain = tested[tested["claim"].str.startswith("mean gain at the best epoch")].iloc[0]
    assert gain["paper"] == f"{gain['ours']} (over all cells 1.31)"
    assert gain["ours"] != "1.31"


def test_rows_of_other_studies_and_settings_change_nothing() -> None:
    scores = detection("breastmnist", AUROCS)
    again = [row | {"study": "accuracy"} for row in BREAST]
    odd = like_the_paper("breastmnist", batch_size=32, learning_rate=1e-4)
    foreign = [row | {"study": "mine", "run": "mine"} for row in BREAST]
    wrong = [row | {"best_batch_mean": 0.1, "last_batch_mean": 0.1} for row in odd + foreign]
    slower = [row | {"batch_size": 32, "auroc": 0.1, "run": "b"} for row in scores]
    assert of(BREAST + again + wrong, scores * 2 + slower).equals(of(BREAST, scores))


def test_detection_on_other_data_sets_is_shown_but_not_judged() -> None:
    table = of([], detection("breastmnist", AUROCS)).query("where == 'Table 1 (detection)'")
    assert (table["verdict"] == NOT_TESTED).all(), "OrganSMNIST was not run"
    assert table["ours"].iloc[0] == "0.9600 to 0.9600"


def test_a_lead_that_is_not_there_is_contradicted() -> None:
    others: dict[Named, float] = dict.fromkeys(set(paper.DETECTION) - set(AUROCS), 0.7)
    table = of([], detection("organsmnist", AUROCS | others))
    (lead,) = table[table["claim"].str.contains("lead")].to_dict("records")
    assert lead["ours"] == "-0.0300", "AUM is ahead"
    assert lead["verdict"] == CONTRADICTED


@pytest.mark.parametrize(("best", "count"), [(0.9, "1 of 1"), (0.5, "0 of 1")])
def test_the_most_accurate_model_without_noise_is_counted(best: float, count: str) -> None:
    table = of([accuracy("breastmnist", 0.0, "standard", best, best)])
    (row,) = table[table["claim"].str.contains("most accurate of all models")].to_dict("records")
    assert (row["paper"], row["ours"], row["verdict"]) == ("7 of 10", count, NOT_TESTED), "one of ten data sets"


def test_a_rate_that_the_paper_has_not_is_in_no_average() -> None:
    other = [accuracy("breastmnist", 0.25, recipe, 0.1, 0.1) for recipe in ("standard", "linc")]
    assert of(BREAST + other).equals(of(BREAST))


def test_counts_add_up() -> None:
    found = of(BREAST)
    counts = count_table(found)
    assert (counts[list(VERDICTS)].sum(axis=1) == counts["numbers"]).all()
    assert counts["numbers"].sum() == len(found)


def test_the_sentence_counts_levels_and_averages_apart() -> None:
    said = in_a_sentence(of(BREAST))
    assert "Its AUC of 0.9837 was not tested, since OrganSMNIST was not run." in said
    assert "cell by cell, 10 of 100 were measured (10 reproduced)" in said
    assert "over the cells that were run, 15 of 17 were measured (15 reproduced)" in said
    assert "in the tables, 20 of 220 were measured (20 reproduced)" in said


def test_a_distant_accuracy_contradicts_nothing_in_another_setting_but_a_gain_does() -> None:
    def lower(**setting: Any) -> pd.DataFrame:
        rows = like_the_paper("pathmnist", classes=9, **setting)
        rows = [row | {"last_batch_mean": row["last_batch_mean"] - 0.3 * (row["recipe"] == "linc")} for row in rows]
        return of(rows).query("claim.str.startswith('PathMNIST, 50% noise') and claim.str.contains('last')")

    here = lower()
    assert list(here["verdict"]) == [REPRODUCED, FAR, CONTRADICTED], "standard, LiNC, LiNC's gain"
    assert here["why"].iloc[1].startswith("differs by 0.300 in another setting: PathMNIST")
    there = lower(backbone="vit_small_patch8_224.dino", image_size=224)
    assert list(there["verdict"]) == [REPRODUCED, CONTRADICTED, CONTRADICTED]


def test_other_data_says_nothing_about_the_paper() -> None:
    assert of([run("digits", 0.2, "linc")]).empty

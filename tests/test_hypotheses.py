"""Hypotheses about why our numbers differ from the paper's: answers that change when the rows do."""

from typing import Any

import pandas as pd
import pytest

from benchmark.display.tables import MISSING
from benchmark.paper.hypotheses import EXPLAINS, GAIN, IN_PART, NOT, PLACE, hypothesis_table
from tests import paper_rows
from tests.paper_rows import AUROCS, Named, Row, by_epochs, changed, run, tables

DATASET = "pneumoniamnist"
COMPONENTS = changed("linc", components=2)


def detection(
    aurocs: dict[Named, float], seeds: tuple[int, ...] = (0,), line_up: str = "original", **setting: Any
) -> list[Row]:
    rows = paper_rows.detection(DATASET, aurocs, seeds, **setting)
    return [row | {"line_up": line_up} for row in rows]


def accuracy(recipe: Named, last: float, seed: int = 0, **setting: Any) -> Row:
    return paper_rows.accuracy(DATASET, 0.2, recipe, last, last, seed, **setting)


def both(standard: float, linc: float, seeds: tuple[int, ...] = (0,), **setting: Any) -> list[Row]:
    values = {"standard": standard, "linc": linc}
    return [accuracy(recipe, last, seed, **setting) for recipe, last in values.items() for seed in seeds]


UNCHANGED = both(0.74, 0.75)


def answers(table: pd.DataFrame, column: str) -> dict[str, str]:
    return dict(zip(table["hypothesis"], table[column], strict=True))


@pytest.mark.parametrize(("auroc", "answer"), [(0.94, NOT), (0.946, IN_PART), (0.97, EXPLAINS)])
def test_a_changed_recipe_explains_the_rank_if_it_puts_linc_ahead(auroc: float, answer: str) -> None:
    options = {"warm_up": 10, "soft_epochs": 2}
    metrics = detection(AUROCS | {changed("LiNC", **options): auroc})
    rows = [*UNCHANGED, accuracy(changed("linc", **options), 0.76)]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=rows)).to_dict("records")
    text = "warm_up=10, soft_epochs=2"
    assert row["hypothesis"] == "the phases are too long or too short"
    assert row["AUROC"] == f"0.930 → {auroc:.3f} ({text})"
    assert row["lead"] == f"-0.030 → {auroc - 0.96:+.3f} ({text})", "AUM is the best of the others"
    assert row["gain"] == f"+1.0 → +2.0 ({text})"
    assert row[PLACE] == answer
    assert row["seeds"] == "1"


def test_only_seeds_that_both_sides_have_are_compared() -> None:
    """The variant is LiNC itself, measured in one of its three seeds."""
    rows = [
        accuracy(recipe, 0.7 + seed / 10 + (recipe == "linc") * seed / 20, seed)
        for recipe in ("standard", "linc")
        for seed in (0, 1, 2)
    ]
    rows.append(accuracy(COMPONENTS, rows[4]["last_test"], seed=1))
    metrics = detection(AUROCS | {changed("LiNC", components=2): AUROCS["LiNC"]}, seeds=(0, 1, 2))
    metrics = [row | {"auroc": row["auroc"] - row["training_seed"] / 100} for row in metrics]
    metrics = [row for row in metrics if row["training_seed"] == 1 or not (row["detector_options"])]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=rows)).to_dict("records")
    assert row["seeds"] == "1"
    assert row["AUROC"] == "0.920 → 0.920 (components=2)"
    assert row["gain"] == "+5.0 → +5.0 (components=2)"
    assert row[PLACE] == MISSING, "a mixture cannot change scores that were there before it"


def test_a_change_has_to_help_in_every_seed() -> None:
    longer = changed("LiNC", warm_up=10)
    rows = [accuracy(recipe, 0.7, seed) for recipe in ("standard", "linc", ("linc", longer[1])) for seed in (0, 1)]
    metrics = detection(AUROCS | {longer: 0.99}, seeds=(0, 1))
    fails_once = [
        row | {"auroc": 0.955} if row["detector_options"] and row["training_seed"] == 1 else row for row in metrics
    ]
    (both_seeds,) = hypothesis_table(tables(metrics=metrics, accuracy=rows))[PLACE]
    (one_seed,) = hypothesis_table(tables(metrics=fails_once, accuracy=rows))[PLACE]
    assert (both_seeds, one_seed) == (EXPLAINS, "in 1 of 2 seeds")


@pytest.mark.parametrize(("last", "answer"), [(0.755, NOT), (0.765, EXPLAINS)])
def test_half_of_the_papers_gain_is_enough(last: float, answer: str) -> None:
    """The paper's is 4.31 points on PneumoniaMNIST at 20 % noise."""
    metrics = detection(AUROCS | {changed("LiNC", components=2): 0.9})
    table = hypothesis_table(tables(metrics=metrics, accuracy=[*UNCHANGED, accuracy(COMPONENTS, last)]))
    assert answers(table, GAIN) == {"the mixture has one component too many": answer}


def test_a_change_of_both_recipes_is_compared_with_its_own_standard_training() -> None:
    small = detection(AUROCS | {"LiNC": 0.97}, batch_size=32)
    rows = [*UNCHANGED, *both(0.5, 0.6, batch_size=32)]
    metrics = detection(AUROCS)
    (row,) = hypothesis_table(tables(metrics=metrics + small, accuracy=rows)).to_dict("records")
    assert row["hypothesis"] == "the warm-up has too few steps: smaller batches"
    assert row["lead"] == "-0.030 → +0.010 (batch_size=32)"
    assert row["gain"] == "+1.0 → +10.0 (batch_size=32)"
    assert (row[PLACE], row[GAIN]) == (EXPLAINS, EXPLAINS)
    without_aum = [row for row in small if row["detector"] != "AUM"]
    (row,) = hypothesis_table(tables(metrics=metrics + without_aum, accuracy=rows)).to_dict("records")
    assert row["lead"] == MISSING, "not all of the others were measured there"


def test_other_networks_are_no_change_of_one_thing() -> None:
    rows = [*UNCHANGED, *(row | {"backbone": "resnet18", "setting": "other", "batch_size": 32} for row in UNCHANGED)]
    assert hypothesis_table(tables(metrics=detection(AUROCS), accuracy=rows)).empty


def test_the_other_noise_says_how_many_labels_are_wrong() -> None:
    rows = [*UNCHANGED, *both(0.8, 0.8, noise="symmetric-inclusive")]
    table = hypothesis_table(tables(metrics=detection(AUROCS), accuracy=rows))
    expected = "+1.0 → +0.0 (noise=symmetric-inclusive, 10% wrong)"
    assert answers(table, "gain") == {"the paper's noise may draw the true class again": expected}


@pytest.mark.parametrize(("early", "answer"), [(0.99, EXPLAINS), (0.91, NOT)])
def test_a_lead_that_is_gone_when_aum_reads_fewer_epochs_depends_on_epochs(early: float, answer: str) -> None:
    epochs = by_epochs(DATASET, "LiNC", {5: 0.95, 10: 0.95, 70: 0.95})
    epochs += by_epochs(DATASET, "AUM", {5: early, 10: 0.99, 70: 0.8})
    table = hypothesis_table(tables(metrics=detection(AUROCS), accuracy=UNCHANGED, auc_by_epochs=epochs))
    assert answers(table, PLACE) == {"LiNC's lead over AUM depends on the epochs that AUM reads": answer}
    assert table["lead"][0].startswith("over AUM: +0.150 → -0.040 (first")


def test_the_other_line_up_and_other_epochs_of_trust_have_rows_of_their_own() -> None:
    hcat = {name: auroc for name, auroc in AUROCS.items() if name != "AUM"} | {
        changed("AUM", skip_first_epoch=False): 0.92
    }
    read = {changed("post-hoc trust", warm_up=20): 0.965, changed("post-hoc trust", moment="end of epoch"): 0.94}
    metrics = detection(AUROCS | read) + detection(hcat, line_up="hcat")
    table = hypothesis_table(tables(metrics=metrics, accuracy=UNCHANGED))
    epochs, moment = "trust is read from too few and too early epochs", "trust is read too early within an epoch"
    line_up = "the other detectors were computed as in H-CAT"
    assert answers(table, PLACE) == {line_up: EXPLAINS, epochs: EXPLAINS, moment: NOT}
    assert answers(table, "AUROC")[epochs] == "post-hoc trust: 0.935 → 0.965 (warm_up=20)"


@pytest.mark.parametrize(("held", "gain", "answer"), [(0.04, 0.01, EXPLAINS), (0.7, 0.01, NOT), (0.04, 0.1, MISSING)])
def test_a_mixture_that_cuts_too_low_explains_a_small_gain(held: float, gain: float, answer: str) -> None:
    corrections = [run(DATASET, 0.2, "linc") | {"class": "all", "noisy_recall": held}]
    rows = both(0.74, 0.74 + gain)
    table = hypothesis_table(tables(metrics=detection(AUROCS), accuracy=rows, corrections=corrections))
    (row,) = table.to_dict("records")
    assert row[GAIN] == answer
    assert f"holds {held:.0%} of the mislabelled" in row["gain"]
    assert "would hold 80%" in row["gain"]


@pytest.mark.parametrize(("slope", "answer"), [(1, EXPLAINS), (-1, NOT)])
def test_speed_of_learning_is_a_correlation_over_settings(slope: int, answer: str) -> None:
    metrics, curves, rows = [], [], []
    for number in range(6):
        setting = {"batch_size": number} if number else {}
        metrics += detection({"LiNC": 0.9 - number / 100, "AUM": 0.95}, **setting)
        rows += both(0.8, 0.8, **setting)
        reached = {5: 0.6 - slope * number / 20, 70: 0.9}
        about = run(DATASET, 0.2, "linc", **setting)
        curves += [about | {"epoch": epoch, "test_accuracy": value} for epoch, value in reached.items()]
    table = hypothesis_table(tables(metrics=metrics, accuracy=rows, curves=curves)).set_index("hypothesis")
    speed = "the network has learned too little by the end of the warm-up"
    assert f"over 6 runs of 6 settings: {slope:+.2f}" in table.loc[speed, "lead"]
    assert table.loc[speed, PLACE] == answer


def test_no_rows_give_no_hypotheses() -> None:
    assert hypothesis_table(tables()).empty


def test_a_gain_is_not_known_before_standard_training_is_run() -> None:
    metrics = detection(AUROCS | {changed("LiNC", components=2): 0.9})
    rows = [accuracy("linc", 0.75), accuracy(COMPONENTS, 0.76)]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=rows)).to_dict("records")
    assert (row["AUROC"], row["gain"], row[GAIN]) == ("0.930 → 0.900 (components=2)", MISSING, MISSING)

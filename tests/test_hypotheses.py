"""Headlines and hypotheses: sentences and answers that turn over when the rows do."""

from typing import Any

import pandas as pd
import pytest

from benchmark.headlines import headlines
from benchmark.hypotheses import (
    EXPLAINS,
    GAIN,
    IN_PART,
    KNOBS,
    LINE_UP,
    LOOKS,
    NOT,
    PLACE,
    SPEED,
    WINDOW,
    hypothesis_table,
)
from tests.test_verdicts import AUROCS, detection, like_the_paper, run

NAMES = ("metrics", "accuracy", "auc_by_epochs", "corrections", "curves")


def tables(**rows: list[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(rows.get(name, [])) for name in NAMES}


def accuracies(recipe: str, last: float, dataset: str = "pneumoniamnist", **changed: Any) -> dict[str, Any]:
    numbers = {"best_test": last, "last_test": last, "test_by_noisy_validation": last}
    return run(dataset, 0.2, recipe, 0, **changed) | numbers


def by_epochs(detector: str, aurocs: dict[int, float], dataset: str = "pneumoniamnist") -> list[dict[str, Any]]:
    about = run(dataset, 0.2, "standard", 0) | {"line_up": "original", "detector": detector}
    return [about | {"epochs_read": epochs, "auroc": auroc} for epochs, auroc in aurocs.items()]


BASE = [accuracies("standard", 0.74), accuracies("linc", 0.75)]


def answers(table: pd.DataFrame, column: str) -> dict[str, str]:
    return dict(zip(table["hypothesis"], table[column], strict=True))


@pytest.mark.parametrize(("auroc", "answer"), [(0.94, NOT), (0.946, IN_PART), (0.97, EXPLAINS)])
def test_a_changed_recipe_explains_linc_s_place_if_it_puts_it_ahead(auroc: float, answer: str) -> None:
    changed = "warm_up=10, soft_epochs=2"
    metrics = detection("pneumoniamnist", AUROCS | {f"LiNC ({changed})": auroc}, seeds=(0,))
    accuracy = [*BASE, accuracies(f"linc ({changed})", 0.76)]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=accuracy)).to_dict("records")
    assert row["hypothesis"] == KNOBS["warm_up", "soft_epochs"]
    assert row["LiNC's AUROC"] == f"0.930 → {auroc:.3f} ({changed})"
    assert row["its lead"] == f"-0.030 → {auroc - 0.96:+.3f} ({changed})", "AUM is the best of the others"
    assert row["its gain"] == f"+1.0 → +2.0 ({changed})"
    assert row[PLACE] == answer


@pytest.mark.parametrize(("last", "answer"), [(0.755, NOT), (0.765, EXPLAINS)])
def test_half_of_the_paper_s_gain_is_enough(last: float, answer: str) -> None:
    """The paper's is 4.31 points on PneumoniaMNIST at 20 % noise."""
    metrics = detection("pneumoniamnist", AUROCS | {"LiNC (components=2)": 0.9}, seeds=(0,))
    table = hypothesis_table(tables(metrics=metrics, accuracy=[*BASE, accuracies("linc (components=2)", last)]))
    assert answers(table, GAIN) == {KNOBS[("components",)]: answer}


def test_what_is_changed_for_both_recipes_is_compared_with_its_own_standard_training() -> None:
    small = [row | {"batch_size": 32} for row in detection("pneumoniamnist", AUROCS | {"LiNC": 0.97}, seeds=(0,))]
    small = [row | {"setting": run("pneumoniamnist", 0.2, "linc", 0, batch_size=32)["setting"]} for row in small]
    accuracy = [
        *BASE,
        *(accuracies(recipe, last, batch_size=32) for recipe, last in (("standard", 0.5), ("linc", 0.6))),
    ]
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0,))
    (row,) = hypothesis_table(tables(metrics=metrics + small, accuracy=accuracy)).to_dict("records")
    assert row["hypothesis"] == KNOBS[("batch_size",)]
    assert row["its lead"] == "-0.030 → +0.010 (batch_size=32)"
    assert row["its gain"] == "+1.0 → +10.0 (batch_size=32)"
    assert (row[PLACE], row[GAIN]) == (EXPLAINS, EXPLAINS)
    without_aum = [row for row in small if row["detector"] != "AUM"]
    (row,) = hypothesis_table(tables(metrics=metrics + without_aum, accuracy=accuracy)).to_dict("records")
    assert row["its lead"] == "–", "the others' best was not measured there"


@pytest.mark.parametrize(("early", "answer"), [(0.99, EXPLAINS), (0.91, NOT)])
def test_a_lead_that_is_gone_when_aum_reads_fewer_epochs_is_one_of_epochs(early: float, answer: str) -> None:
    epochs = by_epochs("LiNC", {5: 0.95, 10: 0.95, 70: 0.95}) + by_epochs("AUM", {5: early, 10: 0.99, 70: 0.8})
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0,))
    table = hypothesis_table(tables(metrics=metrics, accuracy=BASE, auc_by_epochs=epochs))
    assert answers(table, PLACE) == {WINDOW: answer}
    assert table["its lead"][0].startswith("+0.150 → -0.040 (first 10 epochs)")


def test_the_other_line_up_and_other_looks_stand_in_rows_of_their_own() -> None:
    hcat = [row | {"line_up": "hcat"} for row in detection("pneumoniamnist", AUROCS | {"AUM": 0.92}, seeds=(0,))]
    hcat = [row | {"detector": row["detector"].replace("AUM", "AUM (skip_first_epoch=False)")} for row in hcat]
    says = [says for _, says in LOOKS.values()]
    looks = {"LiNC (average_runs=True)": 0.946}
    looks |= {"post-hoc trust (warm_up=20)": 0.965, "post-hoc trust (moment=end of epoch)": 0.94}
    metrics = detection("pneumoniamnist", AUROCS | looks, seeds=(0,)) + hcat
    table = hypothesis_table(tables(metrics=metrics, accuracy=BASE))
    assert answers(table, PLACE) == {LINE_UP: EXPLAINS, says[0]: IN_PART, says[1]: EXPLAINS, says[2]: NOT}
    assert answers(table, "LiNC's AUROC")[says[1]] == "0.935 → 0.965 (warm_up=20)", "from post-hoc trust's"


def test_speed_of_learning_is_a_correlation_over_settings() -> None:
    metrics, curves, accuracy = [], [], []
    for number in range(5):
        about = run("pneumoniamnist", 0.2, "linc", 0, batch_size=number) | {"line_up": "original", "status": "ok"}
        metrics.append(about | {"detector": "LiNC", "auroc": 0.9 - number / 100})
        reached = {5: 0.9 - number / 20, 70: 0.9}
        curves += [about | {"epoch": epoch, "test_accuracy": value} for epoch, value in reached.items()]
        accuracy.append(accuracies("linc", 0.8, batch_size=number))
    row = hypothesis_table(tables(metrics=metrics, accuracy=accuracy, curves=curves)).set_index("hypothesis").loc[SPEED]
    assert row["LiNC's AUROC"].endswith("+1.00")
    assert row[PLACE] == EXPLAINS


def test_nothing_is_said_of_nothing() -> None:
    assert hypothesis_table(tables()).empty
    assert headlines(tables()) == []


def test_headlines_say_who_is_best_and_turn_over_when_linc_is() -> None:
    first, feedback = headlines(tables(metrics=detection("breastmnist", AUROCS)))
    assert "On 0 of 1 data sets at 20% noise: it is number 3 of 6 on BreastMNIST (best: AUM)" in first
    assert "AUM has the best mean rank (1.0); LiNC's is 3.0" in first
    assert "by +0.0050 to +0.0050; the difference is clear on 0 of 1 data sets" in feedback
    best = headlines(tables(metrics=detection("breastmnist", AUROCS | {"LiNC": 0.99})))[0]
    assert "On 1 of 1 data sets" in best
    assert "LiNC has the best mean rank (1.0)" in best


def test_headlines_say_at_which_epochs_and_which_accuracies() -> None:
    epochs = [
        row
        for detector in AUROCS
        for row in by_epochs(detector, {10: 0.95, 70: 0.7 if detector == "AUM" else 0.95}, "breastmnist")
    ]
    (said,) = headlines(tables(auc_by_epochs=epochs))
    assert "ahead of AUM on 1 of 1 data sets if AUM reads all 70 epochs (mean lead +0.250)" in said
    assert "on 0 of them if AUM reads the first 10 (+0.000)" in said
    assert "1 of 4 find more after 10 epochs than after 70 (AUM)" in said
    gains, stopping = headlines(tables(accuracy=like_the_paper("pathmnist", "pathmnist")))
    assert "at the last epoch in 4 of 5 settings with noise, by +17.9 points" in gains, "as in the paper's own table"
    assert "in 5 of 5 settings" in stopping


def test_headlines_say_what_correction_does_to_the_smallest_class() -> None:
    def classes(name: str, size: int, after: float) -> dict[str, Any]:
        about = run("breastmnist", 0.2, "linc", 0) | {"class": name, "in_class": size}
        shares = {"noisy_precision": 0.4, "noisy_recall": 0.5}
        return about | shares | {"label_accuracy_before": 0.8, "label_accuracy_after": after}

    rows = [classes("all", 100, 0.85), classes("0", 20, 0.5), classes("1", 80, 0.95)]
    (said,) = headlines(tables(corrections=rows))
    assert "in 1 of these runs, and more in 0" in said
    assert "80% of labels are right before and 50% after in the smallest class" in said
    assert "80% of labels are right before and 95% after in the largest" in said

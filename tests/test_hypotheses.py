"""Headlines and hypotheses: sentences and answers that turn over when the rows do."""

from typing import Any

import pandas as pd
import pytest

from benchmark.paper.headlines import headlines
from benchmark.paper.hypotheses import (
    AVERAGED,
    EXPLAINS,
    GAIN,
    IN_PART,
    KNOBS,
    LINE_UP,
    LOOKS,
    NOT,
    PLACE,
    SAYS_NOTHING,
    SPEED,
    WINDOW,
    hypothesis_table,
)
from tests.test_verdicts import AUROCS, detection, like_the_paper, run

NAMES = ("metrics", "accuracy", "auc_by_epochs", "corrections", "curves")


def tables(**rows: list[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(rows.get(name, [])) for name in NAMES}


def accuracies(recipe: str, last: float, seed: int = 0, rate: float = 0.2, **changed: Any) -> dict[str, Any]:
    numbers = {"best_test": last, "last_test": last, "test_by_noisy_validation": last, "true_rate": rate / 2}
    return run("pneumoniamnist", rate, recipe, seed, **changed) | numbers


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
    assert row["AUROC"] == f"0.930 → {auroc:.3f} ({changed})"
    assert row["lead"] == f"-0.030 → {auroc - 0.96:+.3f} ({changed})", "AUM is the best of the others"
    assert row["gain"] == f"+1.0 → +2.0 ({changed})"
    assert row[PLACE] == answer
    assert row["seeds"] == "1"


def test_only_seeds_that_both_sides_have_are_compared() -> None:
    """The variant is LiNC itself, measured in one of its three seeds."""
    accuracy = [
        accuracies(recipe, 0.7 + seed / 10 + (recipe == "linc") * seed / 20, seed)
        for recipe in ("standard", "linc")
        for seed in (0, 1, 2)
    ]
    accuracy.append(accuracies("linc (components=2)", 0.9, seed=1) | {"last_test": accuracy[4]["last_test"]})
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0, 1, 2))
    metrics = [row | {"auroc": row["auroc"] - row["training_seed"] / 100} for row in metrics]
    variant = next(row for row in metrics if row["detector"] == "LiNC" and row["training_seed"] == 1)
    metrics.append(variant | {"detector": "LiNC (components=2)"})
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=accuracy)).to_dict("records")
    assert row["seeds"] == "1"
    assert row["AUROC"] == "0.920 → 0.920 (components=2)"
    assert row["gain"] == "+5.0 → +5.0 (components=2)"
    assert row[PLACE] == SAYS_NOTHING, "a mixture cannot change scores that were there before it"


def test_a_change_has_to_help_in_every_seed() -> None:
    accuracy = [
        accuracies(recipe, 0.7, seed) for recipe in ("standard", "linc", "linc (warm_up=10)") for seed in (0, 1)
    ]
    metrics = detection("pneumoniamnist", AUROCS | {"LiNC (warm_up=10)": 0.99})
    one_fails = [
        row | {"auroc": 0.955} if (row["detector"], row["training_seed"]) == ("LiNC (warm_up=10)", 1) else row
        for row in metrics
    ]
    (both,) = hypothesis_table(tables(metrics=metrics, accuracy=accuracy))[PLACE]
    (one,) = hypothesis_table(tables(metrics=one_fails, accuracy=accuracy))[PLACE]
    assert (both, one) == (EXPLAINS, "in 1 of 2 seeds")


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
    assert row["lead"] == "-0.030 → +0.010 (batch_size=32)"
    assert row["gain"] == "+1.0 → +10.0 (batch_size=32)"
    assert (row[PLACE], row[GAIN]) == (EXPLAINS, EXPLAINS)
    without_aum = [row for row in small if row["detector"] != "AUM"]
    (row,) = hypothesis_table(tables(metrics=metrics + without_aum, accuracy=accuracy)).to_dict("records")
    assert row["lead"] == SAYS_NOTHING, "not all of the others were measured there"


def test_other_networks_are_no_change_of_one_thing() -> None:
    accuracy = [*BASE, *(row | {"backbone": "resnet18", "setting": "other", "batch_size": 32} for row in BASE)]
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0,))
    assert hypothesis_table(tables(metrics=metrics, accuracy=accuracy)).empty


def test_the_other_noise_says_how_many_labels_are_wrong() -> None:
    inclusive = [accuracies(recipe, 0.8, noise="symmetric-inclusive") for recipe in ("standard", "linc")]
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0,))
    table = hypothesis_table(tables(metrics=metrics, accuracy=[*BASE, *inclusive]))
    assert answers(table, "gain") == {KNOBS[("noise",)]: "+1.0 → +0.0 (noise=symmetric-inclusive, 10% wrong)"}


@pytest.mark.parametrize(("early", "answer"), [(0.99, EXPLAINS), (0.91, NOT)])
def test_a_lead_that_is_gone_when_aum_reads_fewer_epochs_is_one_of_epochs(early: float, answer: str) -> None:
    epochs = by_epochs("LiNC", {5: 0.95, 10: 0.95, 70: 0.95}) + by_epochs("AUM", {5: early, 10: 0.99, 70: 0.8})
    metrics = detection("pneumoniamnist", AUROCS, seeds=(0,))
    table = hypothesis_table(tables(metrics=metrics, accuracy=BASE, auc_by_epochs=epochs))
    assert answers(table, PLACE) == {WINDOW: answer}
    assert table["lead"][0].startswith("over AUM: +0.150 → -0.040 (first")


def test_the_other_line_up_and_other_looks_stand_in_rows_of_their_own() -> None:
    hcat = [row | {"line_up": "hcat"} for row in detection("pneumoniamnist", AUROCS | {"AUM": 0.92}, seeds=(0,))]
    hcat = [row | {"detector": row["detector"].replace("AUM", "AUM (skip_first_epoch=False)")} for row in hcat]
    looks = {"post-hoc trust (warm_up=20)": 0.965, "post-hoc trust (moment=end of epoch)": 0.94}
    metrics = detection("pneumoniamnist", AUROCS | looks, seeds=(0,)) + hcat
    table = hypothesis_table(tables(metrics=metrics, accuracy=BASE))
    assert answers(table, PLACE) == {LINE_UP: EXPLAINS, LOOKS["warm_up"]: EXPLAINS, LOOKS["moment"]: NOT}
    assert answers(table, "AUROC")[LOOKS["warm_up"]] == "post-hoc trust: 0.935 → 0.965 (warm_up=20)"


def test_averaged_scores_are_compared_with_averaged_ones_only() -> None:
    single = detection("pneumoniamnist", AUROCS | {"EL2N (average_runs=False)": 0.95})
    both = [row for row in single if row["detector"] in ("EL2N", "LiNC") and row["training_seed"] == 0]
    averaged = [row | {"runs_averaged": 2, "auroc": 0.98} for row in both]
    averaged[0]["detector"] = "LiNC (average_runs=True)" if averaged[0]["detector"] == "LiNC" else "EL2N"
    averaged[1]["detector"] = "LiNC (average_runs=True)" if averaged[1]["detector"] == "LiNC" else "EL2N"
    metrics = [row for row in single if row["detector"] != "EL2N"] + averaged
    accuracy = [accuracies(recipe, 0.7, seed) for recipe in ("standard", "linc") for seed in (0, 1)]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=accuracy)).to_dict("records")
    assert row["hypothesis"] == AVERAGED
    assert row["lead"] == "over EL2N: -0.050 → +0.000 (averaged)"
    assert row[PLACE] == EXPLAINS


@pytest.mark.parametrize(
    ("held", "gain", "answer"), [(0.04, 0.01, EXPLAINS), (0.7, 0.01, NOT), (0.04, 0.1, SAYS_NOTHING)]
)
def test_a_mixture_that_cuts_too_low_explains_a_small_gain(held: float, gain: float, answer: str) -> None:
    metrics = [row | {"precision_at_rate": 0.8} for row in detection("pneumoniamnist", AUROCS, seeds=(0,))]
    accuracy = [accuracies("standard", 0.74), accuracies("linc", 0.74 + gain)]
    corrections = [run("pneumoniamnist", 0.2, "linc", 0) | {"class": "all", "noisy_recall": held}]
    (row,) = hypothesis_table(tables(metrics=metrics, accuracy=accuracy, corrections=corrections)).to_dict("records")
    assert row[GAIN] == answer
    assert f"holds {held:.0%} of the mislabelled" in row["gain"]
    assert "would hold 80%" in row["gain"]


@pytest.mark.parametrize(("slope", "answer"), [(1, EXPLAINS), (-1, NOT)])
def test_speed_of_learning_is_a_correlation_over_settings(slope: int, answer: str) -> None:
    metrics, curves, accuracy = [], [], []
    for number in range(6):
        changed = {} if number == 0 else {"batch_size": number}
        setting = run("pneumoniamnist", 0.2, "linc", 0, **changed)["setting"]
        aurocs = {"LiNC": 0.9 - number / 100, "AUM": 0.95}
        metrics += [row | {"setting": setting} for row in detection("pneumoniamnist", aurocs, seeds=(0,))]
        accuracy += [accuracies(recipe, 0.8, **changed) for recipe in ("standard", "linc")]
        about = run("pneumoniamnist", 0.2, "linc", 0, **changed)
        reached = {5: 0.6 - slope * number / 20, 70: 0.9}
        curves += [about | {"epoch": epoch, "test_accuracy": value} for epoch, value in reached.items()]
    table = hypothesis_table(tables(metrics=metrics, accuracy=accuracy, curves=curves)).set_index("hypothesis")
    assert f"over 6 runs of 6 settings: {slope:+.2f}" in table.loc[SPEED, "lead"]
    assert table.loc[SPEED, PLACE] == answer


def test_nothing_is_said_of_nothing() -> None:
    assert hypothesis_table(tables()).empty
    assert headlines(tables()) == []


def test_headlines_say_who_is_best_and_turn_over_when_linc_is() -> None:
    first, feedback = headlines(tables(metrics=detection("breastmnist", AUROCS)))
    assert "At 20% noise it is the best on 0 of 1 data sets: number 3 of 6 on BreastMNIST (best: AUM)" in first
    assert "AUM has the best mean rank (1.0); LiNC's is 3.0" in first
    assert "higher AUROC than LiNC on 1 of 1 data sets; the difference is +0.0050 to +0.0050" in feedback
    assert feedback.endswith("on 0.")
    best = headlines(tables(metrics=detection("breastmnist", AUROCS | {"LiNC": 0.99})))
    assert "it is the best on 1 of 1 data sets" in best[0]
    assert "LiNC has the best mean rank (1.0)" in best[0]
    assert best[1].endswith("on 1."), "LiNC is clearly better"


def test_headlines_of_detection_are_of_the_papers_rate_and_symmetric_noise() -> None:
    rows = detection("breastmnist", AUROCS)
    others = [row | {"rate": 0.5, "setting": "other rate", "auroc": 0.1} for row in rows]
    others += [row | {"noise": "symmetric-inclusive", "setting": "other noise", "auroc": 0.1} for row in rows]
    assert headlines(tables(metrics=rows + others)) == headlines(tables(metrics=rows))


def test_headlines_say_whose_scores_are_averaged() -> None:
    rows = detection("breastmnist", AUROCS)
    rows = [row | {"runs_averaged": 3} if row["detector"] == "AUM" else row for row in rows]
    assert "AUM has the best mean rank (1.0; its scores are averaged over 3 runs)" in headlines(tables(metrics=rows))[0]


def test_headlines_say_at_which_epochs() -> None:
    aurocs = {name: {5: 0.95, 10: 0.95, 70: 0.95} for name in AUROCS}
    aurocs |= {"AUM": {5: 0.96, 10: 0.96, 70: 0.7}, "forgetting": {5: 0.5, 10: 0.55, 70: 0.6}}
    epochs = [row for detector, read in aurocs.items() for row in by_epochs(detector, read, "breastmnist")]
    (said,) = headlines(tables(auc_by_epochs=epochs))
    assert "ahead of AUM on 1 of 1 data sets if AUM reads all 70 epochs (mean lead +0.250)" in said
    assert "on 0 if AUM reads the same 5 (-0.010)" in said
    assert "1 of 2 find more after 5 epochs than after 70 (AUM)" in said, "who does not read on cannot fall"
    without = [row for row in epochs if row["detector"] != "AUM"]
    assert headlines(tables(auc_by_epochs=without)) == []


def test_headlines_say_what_linc_adds_to_accuracy() -> None:
    gains, hurts, stopping = headlines(tables(accuracy=like_the_paper("pathmnist", "pathmnist", classes=9)))
    assert "at the last epoch in 4 of 5 settings (mean difference +17.9 points)" in gains, "as in the paper's own table"
    assert "0 of the settings have one seed" in gains
    assert "in every seed, in 1 of 5 settings with several seeds (PathMNIST at 10%)" in hurts
    assert "LiNC trained to the end in 5 of 5 settings" in stopping
    assert "LiNC stopped likewise in 1 of 5 settings" in stopping


def test_coin_tosses_say_nothing_of_accuracy() -> None:
    rows = [accuracies(recipe, 0.5, rate=0.5) for recipe in ("standard", "linc")]
    assert headlines(tables(accuracy=rows)) == []
    more = [accuracies(recipe, last, rate=0.2) for recipe, last in (("standard", 0.9), ("linc", 0.8))]
    assert "in 0 of 1 settings (mean difference -10.0 points)" in headlines(tables(accuracy=rows + more))[0]


def corrected(name: str, size: int, after: float, rate: float = 0.2) -> dict[str, Any]:
    about = run("breastmnist", rate, "linc", 0) | {"class": name, "in_class": size}
    shares = {"noisy_precision": 0.4, "noisy_recall": 0.5}
    return about | shares | {"label_accuracy_before": 0.8 if rate else 1.0, "label_accuracy_after": after}


def test_headlines_say_what_correction_does_to_the_smallest_class() -> None:
    rows = [corrected("all", 100, 0.85), corrected("0", 20, 0.5), corrected("1", 80, 0.95)]
    (said,) = headlines(tables(corrections=rows))
    assert "40% (40% on BreastMNIST) of its noisy component are mislabelled" in said
    assert "in 1 of 1 runs with noise, and more in 0" in said
    assert "In the smallest class 80% of labels are right before and 50% after" in said
    assert "in the largest 80% of labels are right before and 95% after" in said


def test_headlines_say_what_correction_does_to_right_labels() -> None:
    accuracy = [accuracies(recipe, last, rate=0.0) for recipe, last in (("standard", 0.9), ("linc", 0.8))]
    (said,) = headlines(tables(accuracy=accuracy, corrections=[corrected("all", 100, 0.85, rate=0.0)]))
    assert "Without any noise LiNC is less accurate at the last epoch on 1 of 1 data sets" in said
    assert "Of labels that are all right, 85% are right after its corrections." in said
    (said,) = headlines(tables(accuracy=[accuracy[0], accuracies("linc", 0.95, rate=0.0)]))
    assert "on 0 of 1 data sets (mean difference +5.0 points)" in said

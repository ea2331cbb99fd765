"""Headlines: sentences that say the opposite when the rows do."""

import pandas as pd
import pytest

from benchmark.display.front_page import Board
from benchmark.paper import select
from benchmark.paper.answer import MOST, leaderboard, short_answers
from benchmark.paper.board import board, verdict
from benchmark.paper.headlines import headlines
from benchmark.paper.numbers import DETECTION
from benchmark.paper.verdicts import verdict_table
from tests.paper_rows import AUROCS, Row, accuracy, by_epochs, detection, like_the_paper, redrawn, run, tables

BREAST = detection("breastmnist", AUROCS)


def said(**rows: list[Row]) -> list[str]:
    return headlines(tables(**rows))


def test_no_rows_give_no_headlines() -> None:
    assert said() == []


def test_they_say_which_detector_is_best_and_what_it_is_better_by() -> None:
    rows = detection("breastmnist", AUROCS | {"post-hoc trust": 0.933})
    first, feedback = said(metrics=rows, auroc_draws=redrawn(rows))
    assert "At 20% noise it is never the best (1 data set): ranked 3rd of 6 on BreastMNIST (best: AUM)" in first
    assert "AUM has the best mean rank (1.0); that of LiNC is 3.0" in first
    assert "higher AUROC than LiNC on 1 of 1 data set; the difference is +0.0030 to +0.0030" in feedback
    assert feedback.endswith("it is equivalent.")
    assert first.endswith("with a margin of 0.005: 1 better, 3 worse, 1 equivalent, 0 undecided.")
    assert [text.partition(" Of 5 others")[0] for text in said(metrics=rows)] == [
        first.partition(" Of 5 others")[0],
        feedback.partition("; over all")[0] + ".",
    ], "without draws nothing is said about differences"


def test_they_say_when_linc_is_best() -> None:
    rows = detection("breastmnist", AUROCS | {"LiNC": 0.99})
    first, feedback = said(metrics=rows, auroc_draws=redrawn(rows))
    assert "it is the best on 1 of 1 data set" in first
    assert "LiNC has the best mean rank (1.0)" in first
    assert feedback.endswith("it is worse.")


def test_those_of_detection_are_of_the_papers_rate_and_symmetric_noise() -> None:
    others = [row | {"rate": 0.5, "setting": "other rate", "auroc": 0.1} for row in BREAST]
    others += [row | {"noise": "symmetric-inclusive", "setting": "other noise", "auroc": 0.1} for row in BREAST]
    assert said(metrics=BREAST + others) == said(metrics=BREAST)


def test_they_say_at_which_epochs() -> None:
    aurocs = {str(name): {5: 0.95, 10: 0.95, 70: 0.95} for name in AUROCS}
    aurocs |= {"AUM": {5: 0.96, 10: 0.96, 70: 0.7}, "forgetting": {5: 0.5, 10: 0.55, 70: 0.6}}
    epochs = [row for detector, read in aurocs.items() for row in by_epochs("breastmnist", detector, read)]
    (text,) = said(auc_by_epochs=epochs)
    assert "ahead of AUM on 1 of 1 data set if AUM reads all 70 epochs (mean lead +0.250)" in text
    assert "on 0 if AUM reads the same 5 (-0.010)" in text
    assert "1 of 2 find more after 5 epochs than after 70 (AUM)" in text, "who does not read on cannot find less"
    assert said(auc_by_epochs=[row for row in epochs if row["detector"] != "AUM"]) == []


def test_they_say_what_linc_adds_to_accuracy_and_where_it_hurts() -> None:
    rows = like_the_paper("pathmnist", classes=9)
    gains, hurts, stopping = said(accuracy=rows)
    assert "at the last epoch in 4 of 5 settings (mean difference +17.9 points)" in gains, "as in the paper's own table"
    assert "with 2 or more pairs of seeds" in gains
    assert "in every seed, in 1 of 5 settings with several seeds (PathMNIST at 10%)" in hurts
    assert "LiNC trained to the end in 5 of 5 settings" in stopping
    assert "LiNC stopped in the same way in 1 of 5 settings" in stopping


def test_coin_tosses_say_nothing_about_accuracy() -> None:
    rows = [accuracy("breastmnist", 0.5, recipe, 0.5, 0.5) for recipe in ("standard", "linc")]
    assert said(accuracy=rows) == []
    rows += [accuracy("breastmnist", 0.2, recipe, last, last) for recipe, last in (("standard", 0.9), ("linc", 0.8))]
    assert "in 0 of 1 settings (mean difference -10.0 points)" in said(accuracy=rows)[0]


def corrected(name: str, size: int, after: float, rate: float = 0.2) -> Row:
    about = run("breastmnist", rate, "linc") | {"class": name, "in_class": size}
    shares = {"noisy_precision": 0.4, "noisy_recall": 0.5}
    return about | shares | {"label_accuracy_before": 0.8 if rate else 1.0, "label_accuracy_after": after}


def test_they_say_what_correction_does_to_the_smallest_class() -> None:
    rows = [corrected("all", 100, 0.85), corrected("0", 20, 0.5), corrected("1", 80, 0.95)]
    (text,) = said(corrections=rows)
    assert "40% (40% on BreastMNIST) of its noisy component are mislabelled" in text
    assert "in 1 of 1 runs with noise, and more in 0" in text
    assert "In the smallest class 80% of labels are right before and 50% after" in text
    assert "in the largest 80% of labels are right before and 95% after" in text


def test_they_say_what_correction_does_to_right_labels() -> None:
    standard, linc = (accuracy("breastmnist", 0.0, recipe, 0.9, 0.9) for recipe in ("standard", "linc"))
    right = [corrected("all", 100, 0.85, rate=0.0)]
    (text,) = said(accuracy=[standard, linc | {"last_test": 0.8}], corrections=right)
    assert "Without noise LiNC is less accurate at the last epoch on 1 of 1 data set" in text
    assert "Where all labels are right, 85% are right after its corrections." in text
    (text,) = said(accuracy=[standard, linc | {"last_test": 0.95}])
    assert "on 0 of 1 data set (mean difference +5.0 points)" in text


def test_a_setting_without_linc_says_nothing_about_it() -> None:
    others = [row for row in detection("pneumoniamnist", AUROCS) if row["detector"] != "LiNC"]
    assert said(metrics=BREAST + [row | {"minus_linc": None} for row in others]) == said(metrics=BREAST)


def board_of(overhead: pd.DataFrame, **rows: list[Row]) -> Board | None:
    made = tables(**rows)
    return board(made | {"averaged": made["metrics"][:0], "overhead": overhead}, link="")


def costs(**alone: float) -> pd.DataFrame:
    setting = {
        "dataset": "breastmnist",
        "path": "fast",
        "backbone": "tf_efficientnet_lite0",
        "image_size": 64,
        "epochs": 70,
        "batch_size": 128,
    }
    rows = [setting | {"detector": name, "alone": share} for name, share in alone.items()]
    rows += [row | {"path": "plain", "alone": 9.0} for row in rows]
    return pd.DataFrame([*rows, *(row | {"backbone": "another", "alone": 9.0} for row in rows)])


def test_the_leaderboard_has_quality_cost_and_paper() -> None:
    rows = BREAST + detection("pneumoniamnist", AUROCS | {"AUM": 0.92})[:-2]  # of post-hoc trust there are none
    shown = leaderboard(board_of(metrics=rows, auroc_draws=redrawn(rows), overhead=costs(AUM=0.012, LiNC=0.03)))
    shown = shown.set_index("detector")
    assert shown.index.tolist() == ["AUM", "LiNC", "EL2N", "DataMaps", "forgetting", "post-hoc trust"]
    assert shown.loc["AUM"].tolist() == [
        *("0.940 [0.920, 0.960]", "1.5 [1.0, 2.0]", "+0.0100, undecided", "1", "1.2%"),
        "Pleiss et al., NeurIPS 2020, arXiv 2001.10528",
    ]
    assert shown.loc["LiNC", ["AUROC", "added cost", "paper"]].tolist() == [
        *("0.930 [0.930, 0.930]", "3.0%", "Moturu et al."),
    ]
    assert shown.loc["post-hoc trust", ["AUROC", "rank", "added cost"]].tolist() == ["0.935 in 2 of 4 runs", "–", "–"]
    assert board_of(overhead=costs(AUM=1.0)) is None
    own = detection("breastmnist", AUROCS | {"mine": 0.97})
    first = leaderboard(board_of(metrics=own, auroc_draws=redrawn(own), overhead=costs(AUM=0.012))).iloc[0]
    assert first.tolist() == ["mine", "0.970 [0.970, 0.970]", "1.0 [1.0, 1.0]", "+0.0400, better", "–", "–", "–"], (
        "a user's detector"
    )


def test_the_difference_is_that_of_the_aurocs_whatever_the_draws_say() -> None:
    rows = BREAST + detection("pneumoniamnist", AUROCS | {"AUM": 0.92})
    off = [row | {"auroc": row["auroc"] - 50 * (row["detector"] == "LiNC")} for row in redrawn(rows)]
    found = board_of(metrics=rows, auroc_draws=off, overhead=costs(AUM=0.012))
    differences = {row.detector: row.difference for row in found.views[found.first]}
    assert differences["AUM"] == pytest.approx((0.96 + 0.92) / 2 - 0.93)
    assert leaderboard(found).set_index("detector").loc["AUM", "vs. LiNC"] == "+0.0100, undecided"


def test_those_that_may_be_as_good_as_the_first_are_named() -> None:
    rows = BREAST + detection("pneumoniamnist", AUROCS | {"AUM": 0.92})
    found = board_of(metrics=rows, auroc_draws=redrawn(rows), overhead=costs(AUM=0.012))
    assert verdict(found) == (
        "Of 6 detectors, AUM has the highest mean AUROC (0.940 [0.920, 0.960]); 2 others may be as good; LiNC is 3rd "
        "(0.930 [0.930, 0.930])."
    )
    assert found.note.endswith("if it is used alone, measured on BreastMNIST.")


def test_the_leaderboard_is_short_and_has_what_the_paper_compares() -> None:
    others = {f"d{number}": 0.99 - number / 1000 for number in range(20)}
    rows = detection("breastmnist", others | AUROCS)
    found = board_of(metrics=rows, auroc_draws=redrawn(rows), overhead=costs(AUM=0.012))
    shown = leaderboard(found)["detector"].tolist()
    assert shown[:MOST] == list(others)[:MOST]
    assert sorted(shown[MOST:]) == sorted(AUROCS.keys() & DETECTION.keys())


def test_the_answer_is_a_few_short_sentences() -> None:
    metrics = detection("breastmnist", AUROCS | {"post-hoc trust": 0.933})
    rows = tables(metrics=metrics, auroc_draws=redrawn(metrics), accuracy=like_the_paper("pathmnist", classes=9))
    found = {name: select.with_paper_dataset(table) for name, table in rows.items()}
    shown = board_of(costs(AUM=0.012), metrics=metrics, auroc_draws=redrawn(metrics))
    answers = short_answers(shown, found, verdict_table(found["metrics"], found["accuracy"]))
    assert answers[0] == (
        "Detection: of 6 detectors, AUM has the highest mean AUROC (0.960 [0.960, 0.960]), for certain; LiNC is 3rd "
        "(0.930 [0.930, 0.930])."
    )
    assert answers[1].startswith("Against LiNC: of the 5 others, 1 better, 3 worse, 1 equivalent, 0 undecided")
    assert "in 4 of 5 settings, by +17.9 points" in answers[2]
    assert "10 were measured: 10 reproduced." in answers[3]
    assert all(len(answer.split()) <= 25 for answer in answers)

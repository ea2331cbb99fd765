"""Every number of the paper has a verdict that follows from the rows; findings say what the rows say."""

from itertools import product
from typing import Any

import pandas as pd
import pytest

from benchmark.paper import numbers as paper
from benchmark.paper.findings import findings_table
from benchmark.paper.verdicts import (
    APPROACHED,
    CONTRADICTED,
    FARTHER,
    LARGER,
    REPRODUCED,
    UNTESTED,
    VERDICTS,
    as_in_the_paper,
    count_table,
    in_a_sentence,
    judge_gain,
    judge_value,
    of_the_paper,
    verdict_table,
    verdicts,
)

STUDIES = ["medmnist-auc", "medmnist-accuracy", "ablation"]
SETTING = {
    "noise": "symmetric", "classes": 2, "samples": 546, "learning_rate": 5e-4, "weight_decay": 1e-4, "batch_size": 128,
    "image_size": 112, "backbone": "vit_small_patch14_dinov2", "epochs": 70, "noise_seed": 0, "images": "cached",
}  # fmt: skip


def run(dataset: str, rate: float, recipe: str, seed: int, **changed: Any) -> dict[str, Any]:
    about = SETTING | changed
    setting = f"{dataset}-{rate}-{about['noise']}-{about['batch_size']}"
    names = {"study": "ablation", "run": f"{setting}-{recipe}-{seed}", "dataset": dataset, "recipe": recipe}
    seeds = {"rate": rate, "training_seed": seed, "setting": setting, "protocol": str(about["noise"])}
    return about | names | seeds


def like_the_paper(dataset: str, name: str, **changed: Any) -> list[dict[str, Any]]:
    """Two seeds in which every accuracy is the paper's own."""
    rows = []
    for cell in paper.noisy_accuracy().query("dataset == @name").itertuples():
        accuracies = {
            f"{epoch}_{kind}": getattr(cell, epoch) for epoch in ("best", "last") for kind in ("test", "batch_mean")
        }
        accuracies["test_by_noisy_validation"] = cell.best
        rows += [run(dataset, cell.rate, cell.recipe, seed, **changed) | accuracies for seed in (0, 1)]
    return rows


def of(accuracy: list[dict[str, Any]], metrics: list[dict[str, Any]] | None = None) -> pd.DataFrame:
    frames = [as_in_the_paper(of_the_paper(pd.DataFrame(rows), STUDIES)) for rows in (metrics or [], accuracy)]
    return verdict_table(verdicts(*frames))


def test_every_number_of_the_paper_is_there_once() -> None:
    table = of(like_the_paper("breastmnist", "breastmnist"))
    counts = table["where"].value_counts()
    assert counts["Table 1 (detection)"] == len(paper.DETECTION) + 1, "and LiNC's lead"
    assert counts["Table 2 (no noise)"] == 10 + 1, "and on how many it is the best"
    assert counts["Table 3 (noise)"] == 10 * 5 * 2 * 2
    assert counts["Table 3 (LiNC's gain)"] == 10 * 5 * 2
    assert counts["Text (averages)"] == len(paper.aggregates(paper.noisy_accuracy()))
    assert not table.duplicated(["where", "claim"]).any()
    assert table.astype(bool).all(axis=None), "no cell is empty"
    assert len(of(like_the_paper("breastmnist", "breastmnist"), detection("breastmnist", AUROCS))) == len(table)


def test_what_was_run_is_judged_and_the_rest_is_not_testable() -> None:
    table = of(like_the_paper("bloodmnist_rebuilt", "bloodmnist", classes=8)).query("where == 'Table 3 (noise)'")
    own = table["claim"].str.startswith("BloodMNIST")
    assert (table.loc[own, "verdict"] == REPRODUCED).all()
    assert table.loc[own, "why"].str.contains("BloodMNIST (rebuilt)", regex=False).all(), "a rebuilt file says so"
    assert (table.loc[~own, "verdict"] == UNTESTED).all()
    assert table.loc[~own, "why"].str.fullmatch(r"\w+MNIST was not run").all()
    some = [row for row in like_the_paper("breastmnist", "breastmnist") if row["rate"] < 0.3]
    table = of(some).query("where == 'Table 3 (noise)' and verdict == @UNTESTED")
    of_breast = table[table["claim"].str.startswith("BreastMNIST")]
    assert (of_breast["why"] == "this rate was not run").all()


def test_two_classes_are_compared_under_the_noise_that_the_paper_can_have_had() -> None:
    rows = like_the_paper("breastmnist", "breastmnist", noise="symmetric-inclusive")
    wrong = [
        row | {"best_batch_mean": 0.1, "last_batch_mean": 0.1} for row in like_the_paper("breastmnist", "breastmnist")
    ]
    table = of(rows + wrong).query("where == 'Table 3 (noise)'")
    own = table[table["claim"].str.startswith("BreastMNIST")]
    assert (own["verdict"] == REPRODUCED).all()
    assert own["why"].str.contains("symmetric-inclusive").all()


@pytest.mark.parametrize(
    ("ours", "spread", "verdict"),
    [
        (0.905, 0.0, REPRODUCED),
        (0.93, 0.02, REPRODUCED),
        (0.94, 0.0, APPROACHED),
        (0.96, 0.1, CONTRADICTED),
        (0.8, 0.0, CONTRADICTED),
    ],
)
def test_values(ours: float, spread: float, verdict: str) -> None:
    assert judge_value(0.9, ours, spread=spread) == verdict


def test_losses_and_shares_have_bands_of_their_own() -> None:
    assert judge_value(2.31, 0.0, "points") == APPROACHED, "losing nothing is near losing little"
    assert judge_value(2.31, 50.0, "points") == CONTRADICTED
    assert judge_value(98, 50, "%") == CONTRADICTED


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(7.0, REPRODUCED), (5.0, APPROACHED), (3.0, CONTRADICTED), (20.0, LARGER), (-7.86, CONTRADICTED)],
)
def test_gains(ours: float, verdict: str) -> None:
    assert judge_gain(7.86, ours) == verdict


@pytest.mark.parametrize(
    ("claimed", "ours", "verdict"), [(-3.82, -10.0, CONTRADICTED), (-3.82, 0.0, APPROACHED), (0.0, 10.0, CONTRADICTED)]
)
def test_what_is_no_gain_in_the_paper_is_judged_by_the_difference(claimed: float, ours: float, verdict: str) -> None:
    assert judge_gain(claimed, ours) == verdict


def test_averages_are_judged_against_the_papers_over_the_same_cells() -> None:
    """Whoever has the paper's own cells reproduces every average, whatever the average over all cells is."""
    table = of(like_the_paper("breastmnist", "breastmnist")).query("where == 'Text (averages)'")
    tested = table[table["verdict"] != UNTESTED]
    assert len(tested) > 10
    assert (tested["verdict"] == REPRODUCED).all()
    cells = tested["claim"].map(lambda claim: "1 of the paper's 10" if "50%" in claim else "5 of the paper's 50")
    of_all = ~tested["claim"].str.contains(r"[1-4]0% noise")
    assert all(count in why for count, why in zip(cells[of_all], tested.loc[of_all, "why"], strict=True))
    gain = tested[tested["claim"].str.startswith("mean gain at the best epoch")].iloc[0]
    assert gain["paper"] == f"{gain['ours']} (over all cells 1.31)"
    assert gain["ours"] != "1.31"


def test_what_other_studies_and_settings_have_changes_nothing() -> None:
    alone = of(like_the_paper("breastmnist", "breastmnist"), detection("breastmnist", AUROCS))
    again = [row | {"study": "medmnist-accuracy"} for row in like_the_paper("breastmnist", "breastmnist")]
    odd = like_the_paper("breastmnist", "breastmnist", batch_size=32, learning_rate=1e-4)
    foreign = [row | {"study": "mine", "run": "mine"} for row in like_the_paper("breastmnist", "breastmnist")]
    wrong = [row | {"best_batch_mean": 0.1, "last_batch_mean": 0.1} for row in odd + foreign]
    slower = [row | {"batch_size": 32, "auroc": 0.1, "run": "b"} for row in detection("breastmnist", AUROCS)]
    more = of(
        like_the_paper("breastmnist", "breastmnist") + again + wrong, detection("breastmnist", AUROCS) * 2 + slower
    )
    assert more.equals(alone)


def detection(dataset: str, aurocs: dict[str, float], seeds: tuple[int, ...] = (0, 1)) -> list[dict[str, Any]]:
    numbers = {"status": "ok", "reason": "", "line_up": "original", "runs_averaged": 1}
    return [
        run(dataset, 0.2, "linc" if name.startswith("LiNC") else "standard", seed)
        | numbers
        | {"detector": name, "auroc": auroc, "minus_linc": auroc - aurocs["LiNC"]}
        | {"minus_linc_low": auroc - aurocs["LiNC"] - 0.01, "minus_linc_high": auroc - aurocs["LiNC"] + 0.01}
        for (name, auroc), seed in product(aurocs.items(), seeds)
    ]


AUROCS = {"LiNC": 0.93, "AUM": 0.96, "DataMaps": 0.9, "EL2N": 0.91, "forgetting": 0.6, "post-hoc trust": 0.935}


def test_detection_is_not_testable_on_other_data_sets_but_shown() -> None:
    table = of([], detection("breastmnist", AUROCS)).query("where == 'Table 1 (detection)'")
    assert (table["verdict"] == UNTESTED).all(), "OrganSMNIST was not run"
    assert table["ours"].iloc[0] == "0.9600 to 0.9600"


def test_a_lead_that_is_not_there_is_contradicted() -> None:
    others = dict.fromkeys(set(paper.DETECTION) - set(AUROCS), 0.7)
    table = of([], detection("organsmnist", AUROCS | others))
    (lead,) = table[table["claim"].str.contains("lead")].to_dict("records")
    assert lead["ours"] == "-0.0300", "AUM is ahead"
    assert lead["verdict"] == CONTRADICTED


def test_counts_add_up() -> None:
    rows = pd.DataFrame(like_the_paper("breastmnist", "breastmnist"))
    found = verdicts(pd.DataFrame(), of_the_paper(rows, STUDIES))
    counts = count_table(found)
    assert (counts[list(VERDICTS)].sum(axis=1) == counts["numbers"]).all()
    assert counts["numbers"].sum() == len(found)


def test_the_sentence_counts_levels_and_averages_apart() -> None:
    rows = pd.DataFrame(like_the_paper("breastmnist", "breastmnist"))
    said = in_a_sentence(verdicts(pd.DataFrame(), of_the_paper(rows, STUDIES)))
    assert "Its AUC of 0.9837 is neither confirmed nor refuted: OrganSMNIST was not run." in said
    assert "cell by cell, 10 of 100 were measured (10 reproduced)" in said
    assert "over the cells that were run, 15 of 17 were measured (15 reproduced)" in said
    assert "tables, 20 of 220 were measured (20 reproduced)" in said


def test_a_level_that_is_far_away_contradicts_nothing_in_another_setting_but_a_gain_does() -> None:
    def lower(**changed: Any) -> pd.DataFrame:
        rows = like_the_paper("pathmnist", "pathmnist", classes=9, **changed)
        rows = [row | {"last_batch_mean": row["last_batch_mean"] - 0.3 * (row["recipe"] == "linc")} for row in rows]
        return of(rows).query("claim.str.startswith('PathMNIST, 50% noise') and claim.str.contains('last')")

    here = lower()
    assert list(here["verdict"]) == [REPRODUCED, FARTHER, CONTRADICTED], "standard, LiNC, LiNC's gain"
    assert here["why"].iloc[1].startswith("0.300 away, in another setting: PathMNIST")
    there = lower(backbone="vit_small_patch8_224.dino", image_size=224)
    assert list(there["verdict"]) == [REPRODUCED, CONTRADICTED, CONTRADICTED]


def test_other_data_says_nothing_of_the_paper() -> None:
    assert of([run("digits", 0.2, "linc", 0)]).empty


def test_findings_name_the_best_detector_and_what_it_is_better_by() -> None:
    tables = {name: pd.DataFrame() for name in ("auc_by_epochs", "accuracy", "corrections")}
    found = findings_table(tables | {"metrics": pd.DataFrame(detection("breastmnist", AUROCS))}).set_index("question")
    best = found.loc["Is LiNC the best detector?", "answer"]
    assert best.startswith(
        "LiNC is number 3 of 6 with an AUROC of 0.9300; the best is AUM with 0.9600 (+0.0300, better"
    )
    assert "+0.0050, unclear" in found.loc["What does feeding trust back into training add to detection?", "answer"]


def test_findings_say_where_linc_hurts() -> None:
    rows = pd.DataFrame(like_the_paper("pathmnist", "pathmnist"))
    tables = {name: pd.DataFrame() for name in ("auc_by_epochs", "metrics", "corrections")}
    found = findings_table(tables | {"accuracy": rows}).set_index("question")
    answer = found.loc["What does LiNC add to accuracy, and when does it hurt?", "answer"]
    assert "every seed says that it hurts the last epoch at 10% noise" in answer, "as in the paper's own table"
    assert "-3.8 at 10%, +13.7 at 20%" in answer

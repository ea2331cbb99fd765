"""Tables, claims and the page: what they say, and that they come from the committed files alone."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.cli.command_line import main
from benchmark.display.tables import as_latex, escape_latex, mean_and_spread
from benchmark.evaluation.comparisons import against_reference
from benchmark.paper import numbers as paper
from benchmark.paper.claims import (
    accuracy_claims,
    aggregate_claims,
    clean_claims,
    component_claims,
    detection_claims,
    hyper_parameter_claims,
    lead_claims,
    sentence_claims,
)
from benchmark.paper.tables import clean_table, detection_table, noisy_table
from benchmark.report.study_tables import epochs_table, rank_table, speed_table

ABOUT = {
    "backbone": "vit_small_patch14_dinov2",
    "image_size": 112,
    "epochs": 70,
    "batch_size": 128,
    "noise": "symmetric",
}
ABOUT |= {"learning_rate": 5e-4, "weight_decay": 1e-4, "protocol": "p", "images": "cached"}


def files(folder: Path) -> dict[str, bytes]:
    """Everything that `report` makes."""
    made = [path for part in ("tables", "figures") for path in (folder / part).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in [*made, folder / "report.html"]}


def test_report_gives_the_same_bytes_from_the_committed_files_alone(copied: Path, tmp_path: Path) -> None:
    first = files(copied)
    assert {"tables/demo-modified/claims.md", "tables/demo-modified/auc.tex", "report.html"} <= set(first)
    assert main(["report", "--results", str(copied)]) == 0
    assert files(copied) == first
    alone = tmp_path / "clone" / "results"
    alone.mkdir(parents=True)
    for table in copied.glob("*.csv"):
        shutil.copy(table, alone)
    assert main(["report", "--results", str(alone)]) == 0
    assert files(alone) == first


def test_old_figures_go_and_what_another_command_is_writing_stays(copied: Path) -> None:
    folder = copied / "figures" / "demo-modified"
    for name in ("older.svg", ".roc_curves.svg.123"):
        (folder / name).touch()
    assert main(["report", "--results", str(copied)]) == 0
    assert not (folder / "older.svg").exists()
    assert (folder / ".roc_curves.svg.123").exists()


def test_the_page_shows_every_table_figure_and_what_was_run(copied: Path) -> None:
    page = (copied / "report.html").read_text()
    for expected in ("LiNC as a corrector", "Claim beside measurement", "AUROC by epochs read", "trust", "torch"):
        assert expected in page
    assert page.count("data:image/") == len(list((copied / "figures").rglob("*.svg")))


def accuracies(dataset: str = "breastmnist_rebuilt") -> pd.DataFrame:
    rows = [
        {"dataset": dataset, "rate": rate, "recipe": recipe, "training_seed": seed, "setting": f"{rate}", **ABOUT}
        | {"best_test": best, "last_test": last, "best_batch_mean": best + 0.01, "last_batch_mean": last}
        for rate in (0.0, 0.2)
        for recipe, best, last in (("standard", 0.90, 0.80), ("linc", 0.91, 0.90))
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


def test_a_claim_stands_beside_ours_with_what_differs() -> None:
    claims = pd.DataFrame(accuracy_claims(accuracies()))
    last = claims[claims["claim"] == "breastmnist, 20% noise, linc, accuracy at the last epoch"].iloc[0]
    assert last["paper"] == "0.8956"
    assert last["ours"] == "0.9000 ± 0.0000"
    assert last["difference"] == "+0.0044"
    assert "BreastMNIST (rebuilt) instead of BreastMNIST, ViT-S/14 (DINOv2) at 112 px" in last["what differs"]
    assert any("mean of batches" in claim for claim in claims["claim"])
    clean = claims[claims["claim"].str.contains("no noise")]
    assert list(clean["paper"]) == ["0.9170", "0.9170"]


def test_the_texts_averages_are_taken_over_our_cells() -> None:
    claims = {row["claim"]: row for row in aggregate_claims(accuracies())}
    assert claims["mean gain at the last epoch, 20% noise (points)"]["ours"] == "10"
    assert "over BreastMNIST (rebuilt) instead of ten" in str(
        claims["mean gain at the best epoch (points)"]["what differs"]
    )


def metrics(auroc: float = 0.9, low: float = 0.01, high: float = 0.03) -> pd.DataFrame:
    rows = [
        {"dataset": "digits", "rate": 0.2, "setting": setting, "training_seed": seed, "line_up": "original", **ABOUT}
        | {
            "detector": detector,
            "auroc": value,
            "status": "ok",
            "true_rate": 0.2,
            "runs_averaged": 1,
            "recipe": "standard",
        }
        | {"minus_linc": 0.02, "minus_linc_low": low, "minus_linc_high": high}
        for setting in ("a", "b")
        for seed in (0, 1)
        for detector, value in (("LiNC", auroc - 0.02), ("AUM", auroc))
    ]
    return pd.DataFrame(rows)


def test_better_and_worse_need_an_interval_in_every_run() -> None:
    aum = metrics()[lambda rows: rows["detector"] == "AUM"]
    assert against_reference(aum) == "+0.0200, better"
    assert against_reference(aum.assign(minus_linc_low=[-0.01, 0.01, 0.01, 0.01])) == "+0.0200, unclear"
    behind = aum.assign(minus_linc=-0.02, minus_linc_low=-0.03, minus_linc_high=-0.01)
    assert against_reference(behind) == "-0.0200, worse"
    assert against_reference(aum.assign(minus_linc=np.nan)) == "–"


def test_detection_claims_and_ranks() -> None:
    claims = {(row["claim"], row["ours"]) for row in detection_claims(metrics())}
    assert ("AUC of AUM, 20 % noise", "0.9000 ± 0.0000") in claims
    ranks = rank_table(metrics())
    assert list(ranks["detector"]) == ["AUM", "LiNC"]
    assert list(ranks["mean rank"]) == ["1.00", "2.00"]
    assert rank_table(metrics()[lambda rows: rows["setting"] == "a"]).empty


def test_the_papers_tables_with_ours_beside() -> None:
    table = noisy_table(accuracies())
    assert len(table) == 3
    assert list(table["20% LiNC last"]) == ["0.8956", "0.9000 ± 0.0000", "0.9000 ± 0.0000"]
    assert table.loc[2, "20% No LiNC best"] == "0.9100 ± 0.0000", "means of batches"
    assert clean_table(accuracies()).loc[0, "ours, best epoch"] == "0.900 ± 0.000"
    two_protocols = pd.concat([accuracies(), accuracies().assign(protocol="q", best_test=0.5)])
    assert len(noisy_table(two_protocols)) == 6, "protocols are never averaged"
    first, ours = detection_table(metrics()).iloc[0], detection_table(metrics()).iloc[1]
    assert first["LiNC"] == f"{paper.DETECTION['LiNC']:.4f}"
    assert ours["AUM"] == "0.9000 ± 0.0000"
    assert ours["VoG"] == "–"


@pytest.mark.parametrize(("overlaps", "verdict"), [((10, 20), "holds"), ((20, 10), "does not hold throughout")])
def test_the_papers_sentences_on_trust(overlaps: tuple[int, int], verdict: str) -> None:
    rows = [
        {
            "dataset": "d",
            "rate": rate,
            "run": f"r{rate}",
            "training_seed": 0,
            "subset": subset,
            "from": at,
            "to": at + 1,
        }
        | {"count": count, "recipe": "linc", **ABOUT}
        for rate, shared in zip((0.1, 0.5), overlaps, strict=True)
        for subset, counts in (("clean", (0, shared, 90)), ("mislabelled", (90, shared, 0)))
        for at, count in enumerate(counts)
    ]
    said = {row["claim"]: row["ours"] for row in sentence_claims(pd.DataFrame(rows), pd.DataFrame())}
    assert str(
        said["d: with more noise the trust of mislabelled samples overlaps more with that of the others"]
    ).startswith(verdict)


def test_epochs_and_speed_tables() -> None:
    rows = pd.DataFrame(
        {"detector": "AUM", "epochs_read": [1, 2, 3, 4], "auroc": [0.5, 0.9, 0.8, 0.7]} | {"line_up": "original"}
    )
    assert epochs_table(rows).iloc[0].to_dict() == {
        "detector": "AUM", "1": "0.5000", "2": "0.9000", "3": "0.8000", "4": "0.7000", "best": "0.9000 after 2",
    }  # fmt: skip
    speed = pd.DataFrame(
        {"what": ["step"], "model": ["ViT"], "milliseconds": [0.5], "ratio": [400.0], "against": ["plain"]}
    )
    assert speed_table(speed).iloc[0]["ViT"] == "0.5 ms (400 × plain)"


def test_latex_takes_any_name() -> None:
    assert (
        escape_latex("50 % ± a_b {x} \\ <i>") == r"50 \% $\pm$ a\_b \{x\} \textbackslash{} \textless{}i\textgreater{}"
    )
    text = as_latex("A & B", pd.DataFrame({"detector": ["a_b"], "AUROC": ["0.9 ± 0.1"]}), "x")
    assert r"\toprule" in text
    assert r"a\_b & 0.9 $\pm$ 0.1 \\" in text
    assert r"\caption{A \& B}" in text


def test_what_is_best_without_linc_and_the_lengths_of_phases() -> None:
    other = accuracies().assign(learning_rate=1e-3, protocol="q", setting="other")
    other.loc[other["recipe"] == "linc", "best_test"] = 0.99
    longer = accuracies()[lambda rows: rows["recipe"] == "linc"].assign(recipe="linc (warm_up=10)", last_test=0.88)
    rows = hyper_parameter_claims(pd.concat([accuracies(), other, longer]))
    said = {str(row["claim"]): str(row["ours"]) for row in rows}
    (lengths,) = [
        text for claim, text in said.items() if claim.endswith("the lengths of the soft phases matter little")
    ]
    assert lengths == "accuracy at the last epoch from 0.8800 to 0.9000 over 2 choices"
    (verdict,) = [text for claim, text in said.items() if "20% noise: learning rate" in claim]
    assert verdict.startswith(
        "does not hold: best without learning rate 0.0005, weight decay 0.0001; with learning rate 0.001"
    )


def test_two_components_over_correct_or_not() -> None:
    about = accuracies()[lambda rows: rows["recipe"] == "linc"].head(1).assign(**{"class": "all"})
    three = about.assign(noisy_share=0.1, noisy_precision=0.9, label_accuracy_after=0.88)
    two = three.assign(recipe="linc (components=2)", noisy_share=0.4, noisy_precision=0.5, label_accuracy_after=0.8)
    (row,) = component_claims(pd.concat([three, two]))
    assert str(row["ours"]).startswith(
        "holds: correctly labelled and in the noisy component 20.0% of the samples with two, 1.0%"
    )
    (row,) = component_claims(pd.concat([three, two.assign(noisy_precision=1.0)]))
    assert str(row["ours"]).startswith("does not hold")


def test_variants_are_not_averaged_with_linc() -> None:
    rows = metrics()
    variant = rows[rows["detector"] == "LiNC"].assign(detector="LiNC (warm_up=10)", auroc=0.1)
    pd.testing.assert_frame_equal(detection_table(pd.concat([variant, rows])), detection_table(rows))


def test_an_interval_over_seeds_needs_five_of_them() -> None:
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0]), 1) == "2.5 ± 1.3"
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0]), 2) == "3.00 ± 1.58 [1.04, 4.96]"


def test_files_of_an_older_version_are_told_in_a_sentence(copied: Path, fails: Callable[..., str]) -> None:
    (copied / "runs.csv").unlink()
    assert "older version" in fails("report", "--results", copied)


def test_most_accurate_on_clean_data_sets() -> None:
    (row,) = clean_claims(accuracies())
    assert (row["paper"], row["ours"]) == ("7 of 10", "1 of 1")
    (row,) = clean_claims(accuracies().assign(best_test=0.5))
    assert row["ours"] == "0 of 1"


def test_linc_leads_or_not() -> None:
    assert lead_claims(metrics())[0]["ours"] == "-0.0200 over AUM"

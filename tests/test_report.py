"""Tables, claims and the page: what they say, and that they come from the committed files alone."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.cli.command_line import main
from benchmark.display.tables import as_latex, escape_latex, mean_and_spread
from benchmark.evaluation.comparisons import against_reference
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


def test_ranks() -> None:
    ranks = rank_table(metrics())
    assert list(ranks["detector"]) == ["AUM", "LiNC"]
    assert list(ranks["mean rank"]) == ["1.00", "2.00"]
    assert rank_table(metrics()[lambda rows: rows["setting"] == "a"]).empty


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


def test_an_interval_over_seeds_needs_five_of_them() -> None:
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0]), 1) == "2.5 ± 1.3"
    assert mean_and_spread(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0]), 2) == "3.00 ± 1.58 [1.04, 4.96]"


def test_files_of_an_older_version_are_told_in_a_sentence(copied: Path, fails: Callable[..., str]) -> None:
    (copied / "runs.csv").unlink()
    assert "older version" in fails("report", "--results", copied)

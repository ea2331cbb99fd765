"""Studies of several settings in one table, under names that people use."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import TABLES
from benchmark.disk.tables import join_runs
from benchmark.evaluation.comparisons import in_common, short_titles
from benchmark.evaluation.epochs import epochs_read
from benchmark.paper.groups import effort_table
from benchmark.report.report import make_report
from benchmark.report.study_tables import accuracy_summary, detection_summary
from benchmark.wording import dataset_title, describe_setting, network_title, paper_dataset, varying_columns
from tests.test_plots import made_up_study

STUDY = made_up_study()


def test_names_are_those_that_people_use() -> None:
    assert dataset_title("organsmnist") == "OrganSMNIST"
    assert dataset_title("dermamnist_rebuilt") == "DermaMNIST (rebuilt)"
    assert dataset_title("my_own_data") == "my_own_data"
    assert paper_dataset("dermamnist_rebuilt") == "dermamnist"
    assert network_title("vit_small_patch14_dinov2") == "ViT-S/14 (DINOv2)"
    assert network_title("resnet18") == "resnet18"


def test_only_what_differs_is_told() -> None:
    rows = pd.DataFrame({"dataset": ["breastmnist"] * 2, "rate": [0.1, 0.2], "epochs": [70, 70]})
    assert varying_columns(rows, ("dataset", "rate", "epochs")) == ["rate"]
    told = varying_columns(rows, ("dataset", "rate", "epochs"), always=("dataset",))
    assert describe_setting(rows.iloc[1], told) == "BreastMNIST, 20%"


def test_detection_has_a_column_per_setting_and_the_best_mean_rank_first() -> None:
    metrics = STUDY["metrics"]
    table = detection_summary(metrics).set_index("detector")
    assert list(table.columns) == [
        "BloodMNIST, 20%", "BloodMNIST, 50%", "digits, 20%", "digits, 50%", "mean rank",
    ]  # fmt: skip
    assert table.index[0] == "LiNC"
    means = metrics[metrics["detector"] == "AUM"].groupby(["dataset", "rate"])["auroc"].mean()
    assert table.loc["AUM", "digits, 50%"].startswith(f"{means['digits', 0.5]:.3f} ± ")
    ranks = table["mean rank"].astype(float)
    assert list(ranks) == sorted(ranks)


def test_a_detector_that_was_not_measured_everywhere_has_no_rank() -> None:
    metrics = STUDY["metrics"].query("detector != 'AUM' or dataset == 'digits'")
    table = detection_summary(metrics).set_index("detector")
    assert list(table.loc["AUM", ["BloodMNIST, 20%", "mean rank"]]) == ["–", "–"]
    assert table.index[-1] == "AUM"
    assert table.loc["LiNC", "mean rank"] == "1.0", "the others are ranked without it"


def test_accuracy_has_a_row_per_recipe_and_a_column_per_rate() -> None:
    accuracy = STUDY["accuracy"].assign(protocol="p")
    table = accuracy_summary(accuracy)
    assert list(table.columns) == ["data set", "recipe", "20% noise", "50% noise"]
    assert len(table) == 4
    own = accuracy.query("dataset == 'digits' and recipe == 'linc' and rate == 0.5")
    cell = table.query("`data set` == 'digits' and recipe == 'linc'")["50% noise"].item()
    assert cell.startswith(f"{own['last_test'].mean():.3f}")
    assert cell.endswith(f"({own['best_test'].mean():.3f})")
    assert "64 px" in in_common(accuracy)
    assert "%" not in in_common(accuracy), "rates differ"


def test_effort_is_told_per_data_set() -> None:
    runs = STUDY["accuracy"].assign(seconds=1800.0)
    table = effort_table(runs).set_index("data set")
    assert table.loc["digits", "runs"] == 12
    assert table.loc["digits", "hours"] == "6.00"
    assert table.loc["digits", "noise rates"] == "20%, 50%"


def test_aurocs_are_computed_densely_where_most_changes() -> None:
    assert epochs_read(3) == [1, 2, 3]
    assert epochs_read(10) == list(range(1, 11))
    assert epochs_read(12) == [*range(1, 11), 12]
    assert epochs_read(30) == [*range(1, 11), 15, 20, 25, 30]


def test_rows_are_joined_with_what_is_known_of_their_runs() -> None:
    runs = STUDY["accuracy"].assign(protocol="p", recipe_name="", recipe_options="")
    rows = runs[["study", "run"]].head(1).assign(auroc=0.9)
    joined = join_runs(rows, runs)
    assert (joined.loc[0, "dataset"], joined.loc[0, "auroc"]) == (runs.loc[0, "dataset"], 0.9)


def test_rows_that_have_these_columns_keep_their_own() -> None:
    """A run that failed is not in the table of runs."""
    failed = STUDY["metrics"].assign(protocol="p", recipe_name="", recipe_options="", run="failed")
    assert join_runs(failed, failed[:0]) is failed


def test_settings_that_differ_in_little_are_told_apart() -> None:
    accuracy = STUDY["accuracy"].query("dataset == 'digits' and rate == 0.2").assign(protocol="p")
    other = accuracy.assign(learning_rate=1e-4, setting="other", protocol="q")
    table = accuracy_summary(pd.concat([accuracy, other]))
    assert not table.duplicated(["data set", "recipe"]).any()
    assert table["data set"].str.contains("learning rate 0.0001").sum() == 2
    alike = accuracy.assign(setting="third")  # in nothing that a title says
    assert len(set(short_titles(pd.concat([accuracy, alike])).values())) == 2


def test_the_page_of_a_study_of_several_settings_is_written(tmp_path: Path) -> None:
    """From the small files alone, as a clone has them."""
    about = {"protocol": "p", "weights": "", "path": "", "seconds": 1.0, "commit": "c", "machine": "m"}
    about |= dict.fromkeys(("python", "torch", "timm", "numpy", "scikit-learn", "medmnist"), "1")
    numbers = (
        "best_batch_mean",
        "last_batch_mean",
        "test_by_noisy_validation",
        "test_by_clean_validation",
        "epochs_used",
    )
    about |= dict.fromkeys(numbers, 1)
    for name in ("runs", "metrics", "accuracy"):
        rows = STUDY["accuracy" if name == "runs" else name]
        floats = [column for column, kind in TABLES["metrics"].columns.items() if kind is float]
        missing = {column: 0.5 for column in floats if column not in rows}
        rows.assign(**missing | about).to_csv(tmp_path / f"{name}.csv", index=False)
    make_report(ResultsFolder(tmp_path), None, Console(quiet=True))
    page = (tmp_path / "report.html").read_text()
    assert "made-up: Detection in every setting" in page
    assert "made-up: Accuracy in every setting" in page

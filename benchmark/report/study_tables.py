"""The tables of one study: detection, accuracy, corrections, duplicates."""

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from benchmark import reference
from benchmark.display.tables import MISSING, Group, Tables, mean_and_spread
from benchmark.report.duplicate_tables import duplicates_group
from benchmark.report.noise_tables import noise_groups
from benchmark.statistics.comparisons import (
    against_reference,
    compared,
    main_line_up,
    mean_aurocs,
    mean_ranks,
    why_no_tests,
)
from benchmark.statistics.hierarchical import EQUIVALENT
from benchmark.wording import (
    FULL_TITLE,
    IN_TITLES,
    by_setting,
    dataset_title,
    describe_setting,
    in_common,
    line_up_title,
    list_of,
    varying_columns,
)

MakeTable = Callable[[pd.DataFrame], pd.DataFrame]
RANKS = "Ranks are by the mean AUROC over seeds, among detectors measured in every run; 1 is the best."
RANK_INTERVALS = (
    "Brackets beside ranks: 95 % intervals of a bootstrap over data sets, then pairs of seeds, then samples."
)
EPOCH = "Accuracy at the last epoch; in brackets at the best epoch, which is chosen on the test labels themselves."
INTERVALS = (
    f"vs. {reference.DETECTOR}: the difference of the AUROCs; better or worse if the 95 % interval of a bootstrap over "
    f"pairs of seeds and samples is beyond {EQUIVALENT:g}, equivalent if it is within ±{EQUIVALENT:g}, undecided "
    "otherwise. At noise rate r, the first 5 % of the data hold at most 5 % / r of the mislabelled samples."
)
AVERAGED = (
    "Each pair of seeds was trained several times on the same wrong labels, and the scores of every detector are means "
    "over these trainings. That costs as many trainings, so these AUROCs are not compared with those of one training."
)
WITHOUT_TWINS = {"best_test": "best_test_without_twins", "last_test": "last_test_without_twins"}
WITHOUT_DUPLICATES = "Without duplicates: without test images that have a duplicate in training."
EPOCHS = "Scored as if training had ended after that many epochs; means over runs."


def study_groups(tables: Mapping[str, pd.DataFrame]) -> dict[str, Group]:
    """Every group of tables that the study has rows for, in the order in which a reader wants them."""
    from benchmark.drawings.variants import variants_group

    groups = summary_groups(tables) | {
        "variants": variants_group(*(tables[name] for name in ("accuracy", "metrics", "corrections"))),
        "epochs": Group(
            "AUROC by epochs read",
            _per_line_up(tables["auc_by_epochs"], "AUROC by epochs read", epochs_table),
            [EPOCHS],
        ),
        "corrections": Group(
            f"{reference.DETECTOR} as a corrector",
            _per_setting(tables["corrections"], f"{reference.DETECTOR} as a corrector", corrections_table),
        ),
        **noise_groups(tables),
        "duplicates": duplicates_group(tables["duplicates"], tables["label_errors"]),
    }
    return {name: group for name, group in groups.items() if group.tables}


def summary_groups(tables: Mapping[str, pd.DataFrame]) -> dict[str, Group]:
    """Detection and accuracy: all settings in one table if there are several, and each setting in its own."""
    metrics, accuracy, draws, groups = tables["metrics"], tables["accuracy"], tables["auroc_draws"], {}
    if metrics["setting"].nunique() > 1:
        in_all = [
            (f"AUROC of {line_up_title(str(line_up))}: {in_common(metrics)}", detection_summary(rows, draws))
            for line_up, rows in metrics.groupby("line_up", sort=False)
        ]
        intervals = [RANK_INTERVALS, *why_no_tests(metrics)] if len(draws) else []
        notes = [spread_note(metrics), RANKS, *intervals, *same_order_notes(metrics)]
        groups["summary"] = Group("Detection in every setting", in_all, notes, for_print=True)
    if accuracy["setting"].nunique() > 1:
        in_all = [(f"Test accuracy: {in_common(accuracy)}", accuracy_summary(accuracy))]
        if len(without := without_twins(accuracy)):
            title = f"Test accuracy without images that have a duplicate in training: {in_common(without)}"
            in_all.append((title, accuracy_summary(without)))
        notes = [spread_note(accuracy), EPOCH]
        groups["accuracy-summary"] = Group("Accuracy in every setting", in_all, notes, for_print=True)
    groups["auc"] = Group(
        "Detection",
        _per_line_up(metrics, "Detection", partial(auc_table, draws=draws)),
        [spread_note(metrics), INTERVALS, *missing_notes(metrics)],
        for_print="summary" not in groups,
    )
    averaged = tables["averaged"][tables["averaged"]["status"] == "ok"]
    in_all = [
        (
            f"AUROC averaged over {trainings} trainings, {line_up_title(str(line_up))}: {in_common(rows)}",
            detection_summary(rows, draws[:0]),
        )
        for (line_up, trainings), rows in averaged.groupby(["line_up", "runs_averaged"], sort=False)
    ]
    notes = [AVERAGED, spread_note(averaged), RANKS]
    groups["averaged"] = Group("Detection averaged over several trainings", in_all, notes, for_print=True)
    groups["accuracy"] = Group(
        "Test accuracy",
        _per_setting(accuracy, "Test accuracy", accuracy_table),
        [spread_note(accuracy), *([WITHOUT_DUPLICATES] if len(without_twins(accuracy)) else [])],
        for_print="accuracy-summary" not in groups,
    )
    return groups


def _per_line_up(rows: pd.DataFrame, title: str, make: MakeTable) -> Tables:
    by_line_up = rows.groupby("line_up", sort=False)
    return [
        table for name, part in by_line_up for table in _per_setting(part, f"{title}, {line_up_title(str(name))}", make)
    ]


def _per_setting(rows: pd.DataFrame, title: str, make: MakeTable) -> Tables:
    return [(f"{title}: {name}", make(part)) for name, part in by_setting(rows, FULL_TITLE)]


def spread_note(rows: pd.DataFrame) -> str:
    """What ± stands for in tables of these rows."""
    pairs = rows.drop_duplicates(["setting", "noise_seed", "training_seed"]).groupby("setting").size()
    fewest, most = (pairs.min(), pairs.max()) if len(pairs) else (0, 0)
    if most <= 1:
        return "One pair of seeds: no spread over seeds is known."
    same = ", all with the same wrong labels" if rows["noise_seed"].nunique() == 1 else ""
    count = f"{most}" if fewest == most else f"{fewest} to {most}"
    brackets = " Brackets beside it: the 95 % interval of the mean over these pairs (Student's t)." if most >= 5 else ""
    return f"± is the standard deviation over {count} pairs of noise and training seeds{same}.{brackets}"


def same_order_notes(metrics: pd.DataFrame) -> list[str]:
    """Which detectors have the same AUROC in every run on two classes: of one epoch's outputs there is one order."""
    rows = main_line_up(metrics[(metrics["status"] == "ok") & (metrics["classes"] == 2)])
    wide = rows.pivot_table("auroc", ["setting", "noise_seed", "training_seed"], "detector").dropna(axis=1).round(9).T
    alike = [part.index for _, part in wide.groupby([*wide.columns])] if len(wide.columns) else []
    where = list_of([dataset_title(name) for name in rows["dataset"].unique()])
    return [
        f"{list_of([*names])} have the same AUROC in every run on two classes ({where}): they order samples alike."
        for names in alike
        if len(names) > 1
    ]


def missing_notes(metrics: pd.DataFrame) -> list[str]:
    """A line for each reason why a number is missing."""
    missing = metrics[metrics["status"] != "ok"]
    return [
        f"{', '.join(dict.fromkeys(rows['detector']))}: {status}, {reason}."
        for (status, reason), rows in missing.groupby(["status", "reason"], sort=True)
    ]


def auc_table(metrics: pd.DataFrame, draws: pd.DataFrame) -> pd.DataFrame:
    """One row per detector, the best first, for the rows of one setting and line-up."""
    means = mean_aurocs(metrics)
    others = against_reference(_of_same(draws, metrics, "line_up", "setting")).items()
    differences = {
        name: f"{means[name] - means[reference.DETECTOR]:+.4f}, {other.verdict}"
        for name, other in others
        if name in means
    }
    order = metrics.groupby("detector")["auroc"].mean().sort_values(ascending=False, na_position="last").index
    return pd.DataFrame(
        {
            "detector": detector,
            "AUROC": mean_and_spread(rows["auroc"]),
            f"vs. {reference.DETECTOR}": differences.get(detector, MISSING),
            "AUPRC": mean_and_spread(rows["auprc"]),
            "AUPRC of chance": mean_and_spread(rows["auprc_chance"].head(1), 3),
            "precision at the true rate": mean_and_spread(rows["precision_at_rate"], 3),
            "recall in the first 5 %": mean_and_spread(rows["recall_5"], 3),
            "recall in the first 20 %": mean_and_spread(rows["recall_20"], 3),
            "ties": f"{rows['ties'].mean():.0%}" if rows["ties"].notna().any() else MISSING,
            "runs": int((rows["status"] != "failed").sum()),
            "epochs used": int(rows["epochs_used"].max()),
            "scoring seconds": f"{rows['seconds'].mean():.3f}" if rows["seconds"].notna().any() else MISSING,
        }
        for detector, rows in ((name, metrics[metrics["detector"] == name]) for name in order)
    )


def _of_same(rows: pd.DataFrame, as_in: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Those with the values that all others have in these columns."""
    return rows[(rows[list(columns)] == as_in.iloc[0][list(columns)]).all(axis=1)]


def epochs_table(aucs: pd.DataFrame) -> pd.DataFrame:
    """AUROC by the number of epochs read, for the rows of one setting: mean over runs, and the best number."""
    means = aucs.groupby(["detector", "epochs_read"])["auroc"].mean().unstack()
    last = int(means.columns.max())
    shown = [count for count in (1, 2, 3, 5, 10, 20, 30, 50, 70) if count < last] + [last]
    table = means[shown].map("{:.4f}".format).rename(columns=str)
    table["best"] = [f"{row.max():.4f} after {row.idxmax()}" for _, row in means.iterrows()]
    return table.loc[means.max(axis=1).sort_values(ascending=False).index].reset_index()


def corrections_table(corrections: pd.DataFrame) -> pd.DataFrame:
    """What relabelling did in one setting: over all samples, then by true class; variants over all samples only."""
    columns = {
        "noisy_share": "in the noisy component",
        "noisy_precision": "of these mislabelled",
        "noisy_recall": "mislabelled samples found",
        "ambiguous_share": "ambiguous",
        "corrected_right": "corrected labels that are right",
        "label_accuracy_before": "labels right before",
        "label_accuracy_after": "labels right after",
    }
    rows = corrections[(corrections["class"] == "all") | (corrections["recipe_options"] == "")]
    table = pd.DataFrame(
        {"recipe": recipe, "true class": name} | _cells(group, columns, 3)
        for (recipe, name), group in rows.groupby(["recipe", "class"], sort=False)
    )
    return table if rows["recipe"].nunique() > 1 else table.drop(columns="recipe")


def _cells(rows: pd.DataFrame, heads: Mapping[str, str], digits: int = 4) -> dict[str, str]:
    """Mean and spread of some columns, each under its head."""
    return {head: mean_and_spread(rows[column], digits) for column, head in heads.items()}


def detection_summary(metrics: pd.DataFrame, draws: pd.DataFrame) -> pd.DataFrame:
    """AUROC of each detector in every setting, for the rows of one line-up; the best mean rank first."""
    measured = metrics[metrics["status"] == "ok"]
    titles = {rows["setting"].iloc[0]: title for title, rows in by_setting(measured)}
    drawn = _of_same(draws, metrics, "line_up")
    found = compared(drawn) if set(drawn["setting"]) >= set(titles) else None
    intervals = found.rank_intervals() if found else {}
    ranks = mean_ranks(measured[measured["detector"].isin(intervals)] if intervals else measured)
    ends = {name: f" [{low:.1f}, {high:.1f}]" for name, (low, high) in intervals.items()}
    shown = {name: f"{rank:.1f}{ends.get(str(name), '')}" for name, rank in ranks.items()}
    means = measured.groupby(["detector", "setting"])["auroc"].mean().unstack()
    order = [*ranks.index, *means.drop(ranks.index).mean(axis=1).sort_values(ascending=False).index]
    cells = {key: _auroc_cell(rows) for key, rows in measured.groupby(["detector", "setting"])}
    table = [
        (
            detector,
            *(cells.get((detector, setting), MISSING) for setting in titles),
            shown.get(detector, MISSING),
        )
        for detector in order
    ]
    return pd.DataFrame(table, columns=["detector", *titles.values(), "mean rank"])  # a data set may be called so, too


def _auroc_cell(rows: pd.DataFrame) -> str:
    """AUROC over pairs of seeds; where there is no spread, why."""
    return f"{mean_and_spread(rows['auroc'], 3)}{' (1 pair)' if len(rows) == 1 else ''}"


def accuracy_summary(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracy at the last epoch, and at the best one in brackets: a row per data set and recipe, a column per rate."""
    columns = varying_columns(accuracy, [column for column in IN_TITLES if column != "rate"], always=("dataset",))
    rows = []
    for (*_, recipe), group in accuracy.groupby(["dataset", "noise", "protocol", "recipe"], sort=False):
        cells = {
            rate: f"{mean_and_spread(runs['last_test'], 3)} ({runs['best_test'].mean():.3f})"
            for rate, runs in group.groupby("rate")
        }
        by_rate = {f"{rate:.0%} noise": cells.get(rate, MISSING) for rate in sorted(accuracy["rate"].unique())}
        rows.append({"data set": describe_setting(group.iloc[0], columns), "recipe": recipe} | by_rate)
    return pd.DataFrame(rows)


def accuracy_table(accuracy: pd.DataFrame) -> pd.DataFrame:
    """One row per recipe for the rows of one setting."""
    columns = {
        "best_test": "best epoch",
        "last_test": "last epoch",
        "test_by_noisy_validation": "by noisy validation",
        "test_by_clean_validation": "by clean validation (oracle)",
    }
    table = pd.DataFrame(
        {"recipe": recipe, "runs": len(rows)} | _cells(rows, columns)
        for recipe, rows in accuracy.groupby("recipe", sort=False)
    )
    without = without_twins(accuracy).groupby("recipe")["last_test"].agg(mean_and_spread)
    if len(without):
        table.insert(4, "last epoch, without duplicates", table["recipe"].map(without).fillna(MISSING))
    return table


def without_twins(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Rows with the accuracy on test images without a duplicate in training, where that is another and always known.

    Always: for every run that is averaged, so that both means are over the same runs.
    """
    usual, without = accuracy[list(WITHOUT_TWINS)], accuracy[list(WITHOUT_TWINS.values())]
    is_known = without.notna().all(axis=1).groupby([accuracy["setting"], accuracy["recipe"]]).transform("all")
    differs = (usual.to_numpy() != without).any(axis=1) & is_known
    in_dataset = differs.groupby(accuracy["dataset"]).transform("any")
    return accuracy.assign(**without.set_axis(usual.columns, axis=1))[is_known & in_dataset]

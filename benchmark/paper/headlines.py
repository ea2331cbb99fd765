"""What the studies found: the answer to each question in one sentence over all data sets.

Every sentence is computed from counts and means, so it says the opposite when the rows do.
"""

import numpy as np
import pandas as pd

from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.statistics.comparisons import against_reference, mean_ranks, measured_together
from benchmark.statistics.hierarchical import BETTER, EQUIVALENT, SAME, UNDECIDED, WORSE
from benchmark.wording import by_setting, dataset_title, ordinal

POST_HOC, RIVAL = "post-hoc trust", "AUM"
MORE_ACCURATE = f"Does {DETECTOR} make the classifier more accurate?"
HURTS = f"When does {DETECTOR} hurt?"
STOPPING_EARLY = "Would stopping early do as well?"
TO_CORRECT = "Does the mixture find the labels to correct?"
FEWEST_DETECTORS = 5  # that make a comparison of detectors
HOW = (
    "How these are counted: symmetric noise, in which a wrong label is never the true one; two classes at 50 % noise "
    "are left out, because their labels are coin tosses; means are over seeds, then rates, then data sets."
)


def headlines(tables: select.Tables) -> list[str]:
    """Each question with its answer, if there is one; from rows on the paper's data sets, trained as in the paper."""
    counted = {name: counted_rows(rows) for name, rows in tables.items()}
    metrics, epochs, draws = (compared_rows(counted[name]) for name in ("metrics", "auc_by_epochs", "auroc_draws"))
    cells = accuracy_cells(counted["accuracy"])
    corrections = select.with_default_recipe(counted["corrections"], RECIPE)
    noisy, wrong = (rows[rows["rate"] > 0] for rows in (cells, corrections))
    answers = {
        f"Is {DETECTOR} the best detector?": _best_detector(metrics, draws) if len(metrics) else "",
        "Does the ranking depend on the epochs that are read?": _epochs_read(epochs),
        "Does feeding trust back into training improve detection?": _feedback(metrics, draws),
        MORE_ACCURATE: _more_accurate(noisy) if len(noisy) else "",
        HURTS: _hurts(cells, corrections),
        STOPPING_EARLY: _early_stopping(noisy) if len(noisy) else "",
        TO_CORRECT: _relabelling(wrong) if len(wrong) else "",
    }
    return [f"{question} {answer}" for question, answer in answers.items() if answer]


def counted_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """As `HOW` says."""
    is_coin_toss = (rows["classes"] == 2) & np.isclose(rows["rate"], 0.5)
    return rows[(rows["noise"] == "symmetric") & ~is_coin_toss]


def compared_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The settings in which LiNC was compared with others, at the paper's rate."""
    rows = select.at_the_papers_rate(select.original_line_up(rows))
    has_linc = rows["setting"].isin(rows.loc[rows["detector_name"] == DETECTOR, "setting"])
    return rows[has_linc & (rows.groupby("setting")["detector"].transform("nunique") >= FEWEST_DETECTORS)]


def accuracy_cells(accuracy: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and rate: differences in points, as means over the seeds that both recipes have."""
    standard, reference = (
        select.with_default_recipe(accuracy, recipe)
        .groupby(["dataset", "rate", *select.SEEDS])[["last_test", "best_test", "test_by_noisy_validation"]]
        .mean()
        .set_axis(["last", "best", "stopped"], axis=1)
        for recipe in (BASELINE_RECIPE, RECIPE)
    )
    differences = {
        "last": reference["last"] - standard["last"],
        "best": reference["best"] - standard["best"],
        "stopped_minus_last": standard["stopped"] - reference["last"],
        "both_stopped": standard["stopped"] - reference["stopped"],
    }
    cells = (100 * pd.DataFrame(differences).dropna()).groupby(["dataset", "rate"])
    hurts = (cells["last"].max() < 0) & (cells.size() > 1)  # in every seed, of several
    return cells.mean().assign(seeds=cells.size(), hurts=hurts).reset_index()


def _best_detector(metrics: pd.DataFrame, draws: pd.DataFrame) -> str:
    ranks, ranked = [], []
    for title, rows in by_setting(metrics):
        means = measured_together(rows).mean()
        ranks.append(int(means.rank(ascending=False, method="min")[DETECTOR]))
        ranked.append(f"ranked {ordinal(ranks[-1])} of {len(means)} on {title} (best: {means.idxmax()})")
    firsts, of = ranks.count(1), _data_sets(len(ranks))
    often = f"the best on {firsts} of {of}" if firsts else f"never the best ({of})"
    overall = mean_ranks(metrics)
    winner = str(overall.index[0])
    return (
        f"At {paper.DETECTION_RATE:.0%} noise it is {often}: {', '.join(ranked)}. Of the {len(overall)} detectors "
        f"measured on all of them, {winner} has the best mean rank ({overall.iloc[0]:.1f}); that of {DETECTOR} is "
        f"{overall[DETECTOR]:.1f}.{_compared_over_datasets(draws)}"
    )


def _compared_over_datasets(draws: pd.DataFrame) -> str:
    """How many others are better, worse, equivalent, or none of these for certain."""
    verdicts = [other.verdict for other in against_reference(draws).values()]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in (BETTER, WORSE, SAME, UNDECIDED)]
    how = f"over data sets, pairs of seeds and samples, with a margin of {EQUIVALENT:g}"
    return f" Of {len(verdicts)} others, compared {how}: {', '.join(counts)}." if verdicts else ""


def _data_sets(count: int) -> str:
    return f"{count} data set{'' if count == 1 else 's'}"


def _in_brackets(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _epochs_read(auc: pd.DataFrame) -> str:
    """Whether LiNC's lead over AUM, and over the paper's others, depends on the epochs that they read."""
    means = auc.groupby(["setting", "detector_name", "epochs_read"])["auroc"].mean().unstack()
    if not {DETECTOR, RIVAL} <= set(auc["detector_name"]) or not {*select.EARLY} <= set(means):
        return ""
    early, last = select.EARLY[0], int(means.columns.max())
    reference, rival = (means.xs(name, level="detector_name") for name in (DETECTOR, RIVAL))
    late, same = ((reference[last] - rival[epochs]).dropna() for epochs in (last, early))
    by_detector = means.groupby("detector_name")
    reads_on = means[select.EARLY[-1]].ne(means[last]).groupby("detector_name").any()
    change = by_detector[early].mean() - by_detector[last].mean()
    others = [name for name in paper.OTHERS if reads_on.get(name)]
    better = [name for name in others if change[name] > 0]
    return (
        f"{DETECTOR} reads the {early} epochs of its warm-up. It is ahead of {RIVAL} on {(late > 0).sum()} of "
        f"{_data_sets(len(late))} if {RIVAL} reads all {last} epochs (mean lead {late.mean():+.3f}), and on "
        f"{(same > 0).sum()} if {RIVAL} reads the same {early} ({same.mean():+.3f}). Of the paper's other detectors "
        f"that read every epoch, {len(better)} of {len(others)} find more after {early} epochs than after "
        f"{last}{_in_brackets(better)}."
    )


def _feedback(metrics: pd.DataFrame, draws: pd.DataFrame) -> str:
    post_hoc = metrics[(metrics["detector_name"] == POST_HOC) & metrics["minus_linc"].notna()]
    settings = [rows for _, rows in post_hoc.groupby("setting")]
    if not settings:
        return ""
    differences = [rows["minus_linc"].mean() for rows in settings]
    verdict = against_reference(draws).get(POST_HOC)
    overall = f"; over all, with samples, seeds and data sets drawn again, it is {verdict.verdict}" if verdict else ""
    return (
        f"Trust computed afterwards, from the logits of standard training, has a higher AUROC than {DETECTOR} on "
        f"{sum(difference > 0 for difference in differences)} of {_data_sets(len(differences))}; the difference is "
        f"{min(differences):+.4f} to {max(differences):+.4f}{overall}."
    )


def _in_settings(cells: pd.DataFrame, column: str) -> str:
    mean = cells.groupby("dataset")[column].mean().mean()
    return f"in {(cells[column] > 0).sum()} of {len(cells)} settings (mean difference {mean:+.1f} points)"


def _more_accurate(noisy: pd.DataFrame) -> str:
    return (
        f"With noise it is more accurate than standard training at the last epoch {_in_settings(noisy, 'last')}, and "
        f"at the best epoch, chosen on the test labels, {_in_settings(noisy, 'best')}. A setting is one of "
        f"{_data_sets(noisy['dataset'].nunique())} at one noise rate, with {noisy['seeds'].min()} or more pairs of "
        "seeds."
    )


def _hurts(cells: pd.DataFrame, corrections: pd.DataFrame) -> str:
    clean, noisy, said = cells[cells["rate"] == 0], cells[cells["rate"] > 0], []
    if len(clean):
        said.append(
            f"Without noise {DETECTOR} is less accurate at the last epoch on {(clean['last'] < 0).sum()} of "
            f"{_data_sets(len(clean))} (mean difference {clean['last'].mean():+.1f} points)."
        )
    all_right = corrections[(corrections["rate"] == 0) & (corrections["class"] == "all")]
    if len(all_right):
        after = _means(all_right, "label_accuracy_after").mean()
        said.append(f"Where all labels are right, {after:.0%} are right after its corrections.")
    if len(noisy):
        hurts = noisy[noisy["hurts"]].groupby("dataset")["rate"]
        names = [f"{dataset_title(str(name))} at {' and '.join(map('{:.0%}'.format, rates))}" for name, rates in hurts]
        said.append(
            f"With noise it is less accurate at the last epoch, in every seed, in {noisy['hurts'].sum()} of "
            f"{(noisy['seeds'] > 1).sum()} settings with several seeds{_in_brackets(names)}."
        )
    return " ".join(said)


def _early_stopping(noisy: pd.DataFrame) -> str:
    return (
        "Standard training, stopped where accuracy on noisy validation labels is best, is more accurate than "
        f"{DETECTOR} trained to the end {_in_settings(noisy, 'stopped_minus_last')}, and more accurate than {DETECTOR} "
        f"stopped in the same way {_in_settings(noisy, 'both_stopped')}."
    )


def _relabelling(corrections: pd.DataFrame) -> str:
    overall = corrections[corrections["class"] == "all"]
    change = overall["label_accuracy_after"] - overall["label_accuracy_before"]
    by_size = corrections[corrections["class"] != "all"].sort_values("in_class", kind="stable")
    smallest, largest = (by_size.drop_duplicates("run", keep=which) for which in ("first", "last"))
    return (
        f"{_share(overall, 'noisy_precision')} of its noisy component are mislabelled, and it holds "
        f"{_share(overall, 'noisy_recall')} of the mislabelled. There are fewer wrong labels after the correction in "
        f"{(change > 0).sum()} of {len(change)} runs with noise, and more in {(change < 0).sum()}. In the smallest "
        f"class {_right(smallest)}, in the largest {_right(largest)}."
    )


def _means(rows: pd.DataFrame, column: str) -> pd.Series:
    """Of each data set: means over runs, then rates."""
    return rows.groupby(["dataset", "rate"])[column].mean().groupby("dataset").mean()


def _share(rows: pd.DataFrame, column: str) -> str:
    """The mean, and the data sets with the lowest and the highest share."""
    means = _means(rows, column)
    ends = means.sort_values().iloc[[0, -1] if len(means) > 1 else [0]]
    extremes = " to ".join(f"{share:.0%} on {dataset_title(str(name))}" for name, share in ends.items())
    return f"{means.mean():.0%} ({extremes})"


def _right(classes: pd.DataFrame) -> str:
    before, after = (_means(classes, f"label_accuracy_{when}").mean() for when in ("before", "after"))
    return f"{before:.0%} of labels are right before and {after:.0%} after"

"""What the studies found: the answer to each question in one sentence over all data sets, and for each data set.

Every sentence is computed from counts and means, so it says the opposite when the rows do.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from benchmark.display.tables import mean_and_spread
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.select import Tables
from benchmark.reference import DETECTOR, RECIPE
from benchmark.statistics.comparisons import against_reference, better_or_worse, mean_ranks
from benchmark.wording import by_setting, dataset_title

POST_HOC, RIVAL = "post-hoc trust", "AUM"
HOW = (
    "How these are counted: symmetric noise, in which a wrong label is never the true one; two classes at 50 % noise "
    "are left out, because their labels are coin tosses; means are over seeds, then rates, then data sets."
)


@dataclass(frozen=True)
class Finding:
    """A question with its answer over all data sets, and for each of them; empty where nothing was measured."""

    question: str
    headline: str = ""
    by_dataset: dict[str, str] = field(default_factory=dict)


def findings(tables: Tables) -> list[Finding]:
    """From rows on the paper's data sets that were trained as in the paper."""
    metrics, epochs = (
        select.at_the_papers_rate(select.without_coin_tosses(select.compared(select.original_line_up(tables[name]))))
        for name in ("metrics", "auc_by_epochs")
    )
    cells = select.accuracy_cells(tables["accuracy"])
    corrections = select.with_default_recipe(tables["corrections"], RECIPE)
    found = (
        _best_detector(metrics),
        _epochs_read(epochs),
        _feedback(metrics),
        _more_accurate(cells),
        _hurts(cells, corrections),
        _early_stopping(cells),
        _relabelling(corrections),
    )
    return [finding for finding in found if finding.headline or finding.by_dataset]


def headlines(found: Iterable[Finding]) -> list[str]:
    return [f"{finding.question} {finding.headline}" for finding in found if finding.headline]


def findings_table(found: Iterable[Finding]) -> pd.DataFrame:
    rows = [(finding.question, *answer) for finding in found for answer in finding.by_dataset.items()]
    return pd.DataFrame(rows, columns=["question", "data set", "answer"])


def _best_detector(metrics: pd.DataFrame) -> Finding:
    answers, ranks, best = {}, [], []
    for title, rows in by_setting(metrics):
        means = rows.groupby("detector_name")["auroc"].mean().sort_values(ascending=False)
        rank = int(means.rank(ascending=False, method="min").get(DETECTOR, 0))
        if not rank:
            continue
        rival = str(means.index.drop(DETECTOR)[0])
        ranked = f"ranked {_ordinal(rank)} of {len(means)}"
        answers[title] = (
            f"{ranked} with an AUROC of {means[DETECTOR]:.4f}; {'next' if rank == 1 else 'the best'} is {rival} with "
            f"{means[rival]:.4f} ({against_reference(rows[rows['detector_name'] == rival])}, in the runs they share)"
        )
        ranks.append(rank)
        best.append(f"{ranked} on {title} (best: {means.index[0]})")
    if not ranks:
        return Finding(f"Is {DETECTOR} the best detector?")
    firsts, of = ranks.count(1), _data_sets(len(ranks))
    often = f"the best on {firsts} of {of}" if firsts else f"never the best ({of})"
    overall = mean_ranks(metrics)
    winner, averaged = str(overall.index[0]), metrics.groupby("detector")["runs_averaged"].max()
    how = f"; its scores are averaged over {averaged[winner]} runs" if averaged[winner] > 1 else ""
    headline = (
        f"At {paper.DETECTION_RATE:.0%} noise it is {often}: {', '.join(best)}. Of the {len(overall)} detectors "
        f"measured on all of them, {winner} has the best mean rank ({overall.iloc[0]:.1f}{how}); that of {DETECTOR} is "
        f"{overall[DETECTOR]:.1f}."
    )
    return Finding(f"Is {DETECTOR} the best detector?", headline, answers)


def _ordinal(number: int) -> str:
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _data_sets(count: int) -> str:
    return f"{count} data set{'' if count == 1 else 's'}"


def _epochs_read(auc: pd.DataFrame) -> Finding:
    """Whether LiNC's lead over AUM, and over the paper's others, depends on the epochs that they read."""
    question, answers = "Does the ranking depend on the epochs that are read?", {}
    means = auc.groupby(["setting", "detector_name", "epochs_read"])["auroc"].mean().unstack()
    if not {DETECTOR, RIVAL} <= set(auc["detector_name"]) or not {*select.EARLY} <= set(means):
        return Finding(question)
    early, last = select.EARLY[0], int(means.columns.max())
    for title, rows in by_setting(auc):
        here: Any = means.loc[rows["setting"].iloc[0]].dropna(axis=1, how="all")
        if DETECTOR not in here.index:
            continue
        shown = [epochs for epochs in dict.fromkeys((*select.EARLY, here.columns.max())) if epochs in here]
        parts = [
            f"after {epochs} epochs {aurocs.idxmax()} ({aurocs.max():.4f}; {DETECTOR} {aurocs[DETECTOR]:.4f})"
            for epochs, aurocs in here[shown].items()
        ]
        best: Any = here.stack().idxmax()
        answers[title] = (
            f"best {'; '.join(parts)}; at its own best epoch {best[0]} after {best[1]} ({here.at[best]:.4f})"
        )
    reference, rival = (means.xs(name, level="detector_name") for name in (DETECTOR, RIVAL))
    late, same = ((reference[last] - rival[epochs]).dropna() for epochs in (last, early))
    by_detector = means.groupby("detector_name")
    reads_on = means[select.EARLY[-1]].ne(means[last]).groupby("detector_name").any()
    change = by_detector[early].mean() - by_detector[last].mean()
    others = [name for name in paper.OTHERS if reads_on.get(name)]
    better = [name for name in others if change[name] > 0]
    headline = (
        f"{DETECTOR} reads the {early} epochs of its warm-up. It is ahead of {RIVAL} on {(late > 0).sum()} of "
        f"{_data_sets(len(late))} if {RIVAL} reads all {last} epochs (mean lead {late.mean():+.3f}), and on "
        f"{(same > 0).sum()} if {RIVAL} reads the same {early} ({same.mean():+.3f}). Of the paper's other detectors "
        f"that read every epoch, {len(better)} of {len(others)} find more after {early} epochs than after "
        f"{last}{_in_brackets(better)}."
    )
    return Finding(question, headline, answers)


def _in_brackets(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _feedback(metrics: pd.DataFrame) -> Finding:
    question, answers, differences, clear = "Does feeding trust back into training improve detection?", {}, [], 0
    for title, rows in by_setting(metrics):
        post_hoc, linc = (rows[rows["detector_name"] == name] for name in (POST_HOC, DETECTOR))
        if post_hoc["minus_linc"].notna().any():
            differences.append(post_hoc["minus_linc"].mean())
            clear += better_or_worse(post_hoc) != "unclear"
            answers[title] = (
                f"{POST_HOC} {mean_and_spread(post_hoc['auroc'])}, {DETECTOR} {mean_and_spread(linc['auroc'])}; "
                f"{POST_HOC} minus {DETECTOR} {against_reference(post_hoc)}"
            )
    if not differences:
        return Finding(question)
    headline = (
        f"Trust computed afterwards, from the logits of standard training, has a higher AUROC than {DETECTOR} on "
        f"{sum(difference > 0 for difference in differences)} of {_data_sets(len(differences))}; the difference is "
        f"{min(differences):+.4f} to {max(differences):+.4f}, and clear (beyond the 95 % interval in every run) on "
        f"{clear}."
    )
    return Finding(question, headline, answers)


def _with_noise(rows: pd.DataFrame) -> pd.DataFrame:
    counted = select.without_coin_tosses(rows)
    return counted[counted["rate"] > 0]


def _in_settings(cells: pd.DataFrame, column: str) -> str:
    mean = cells.groupby("dataset")[column].mean().mean()
    return f"in {(cells[column] > 0).sum()} of {len(cells)} settings (mean difference {mean:+.1f} points)"


def _by_dataset(cells: pd.DataFrame, answer: Callable[[pd.DataFrame], str]) -> dict[str, str]:
    answers = {
        f"{dataset_title(str(dataset))}, {noise} noise": answer(rows)
        for (dataset, noise), rows in cells.groupby(["dataset", "noise"])
    }
    return {title: text for title, text in answers.items() if text}


def _at_rates(rows: pd.DataFrame, shape: str, separator: str = ", ") -> str:
    """`shape` filled with the columns of each row, that is for each noise rate."""
    return separator.join(
        shape.format(**{str(name): value for name, value in row.items()}) for _, row in rows.iterrows()
    )


def _more_accurate(cells: pd.DataFrame) -> Finding:
    noisy = _with_noise(cells)
    answers = _by_dataset(
        cells,
        lambda rows: (
            f"at the last epoch {_at_rates(rows, '{last:+.1f} at {rate:.0%}')}; at the best epoch "
            f"{_at_rates(rows, '{best:+.1f} at {rate:.0%}')} (points)"
        ),
    )
    headline = (
        f"With noise it is more accurate than standard training at the last epoch {_in_settings(noisy, 'last')}, and "
        f"at the best epoch, chosen on the test labels, {_in_settings(noisy, 'best')}. A setting is one of "
        f"{_data_sets(noisy['dataset'].nunique())} at one noise rate; {(noisy['seeds'] == 1).sum()} of the settings "
        "have one seed."
    )
    return Finding(f"Does {DETECTOR} make the classifier more accurate?", headline if len(noisy) else "", answers)


def _where_it_hurts(rows: pd.DataFrame) -> str:
    hurts = rows["hurts"].astype(bool)
    unclear = rows[(rows["last"] < 0) & ~hurts]
    parts = {
        "less accurate at the last epoch in every seed at": _at_rates(rows[hurts], "{rate:.0%}", " and "),
        "unclear at": _at_rates(unclear, "{rate:.0%}", " and "),
    }
    return "; ".join(f"{says} {rates} noise" for says, rates in parts.items() if rates)


def _hurts(cells: pd.DataFrame, corrections: pd.DataFrame) -> Finding:
    counted, noisy, said = select.without_coin_tosses(cells), _with_noise(cells), []
    clean = counted[counted["rate"] == 0]
    if len(clean):
        said.append(
            f"Without noise {DETECTOR} is less accurate at the last epoch on {(clean['last'] < 0).sum()} of "
            f"{_data_sets(len(clean))} (mean difference {clean['last'].mean():+.1f} points)."
        )
    all_right = select.without_coin_tosses(corrections).query("rate == 0 and `class` == 'all'")
    if len(all_right):
        after = _means(all_right, "label_accuracy_after").mean()
        said.append(f"Where all labels are right, {after:.0%} are right after its corrections.")
    if len(noisy):
        hurts = noisy[noisy["hurts"]].groupby("dataset")
        names = [
            f"{dataset_title(str(dataset))} at {_at_rates(rows, '{rate:.0%}', ' and ')}" for dataset, rows in hurts
        ]
        said.append(
            f"With noise it is less accurate at the last epoch, in every seed, in {noisy['hurts'].sum()} of "
            f"{(noisy['seeds'] > 1).sum()} settings with several seeds{_in_brackets(names)}."
        )
    return Finding(f"When does {DETECTOR} hurt?", " ".join(said), _by_dataset(cells, _where_it_hurts))


def _early_stopping(cells: pd.DataFrame) -> Finding:
    noisy = _with_noise(cells)
    shape = "{rate:.0%} noise: {stopped standard:.4f}, {stopped reference:.4f} and {last reference:.4f}"
    intro = f"standard training stopped, {DETECTOR} stopped, {DETECTOR}'s last epoch: "
    answers = _by_dataset(cells, lambda rows: intro + _at_rates(rows, shape, "; "))
    headline = (
        "Standard training, stopped where accuracy on noisy validation labels is best, is more accurate than "
        f"{DETECTOR} trained to the end {_in_settings(noisy, 'stopped_minus_last')}, and more accurate than {DETECTOR} "
        f"stopped in the same way {_in_settings(noisy, 'both_stopped')}."
    )
    return Finding("Would stopping early do as well?", headline if len(noisy) else "", answers)


def _relabelling(corrections: pd.DataFrame) -> Finding:
    question, answers = "Does the mixture find the labels to correct?", {}
    for title, rows in by_setting(corrections[corrections["class"] == "all"]):
        share = rows[["noisy_precision", "noisy_recall", "label_accuracy_before", "label_accuracy_after"]].mean()
        precision, recall, before, after = (f"{value:.3f}" for value in share)
        answers[title] = (
            f"{precision} of its noisy component are mislabelled, and it holds {recall} of the mislabelled; {before} "
            f"of labels are right before and {after} after"
        )
        if (rows["rate"] == 0).all():
            answers[title] = f"no label is wrong before; {after} of labels are right after its corrections"
    noisy = _with_noise(corrections)
    if noisy.empty:
        return Finding(question, "", answers)
    overall = noisy[noisy["class"] == "all"]
    change = overall["label_accuracy_after"] - overall["label_accuracy_before"]
    by_size = noisy[noisy["class"] != "all"].sort_values("in_class", kind="stable")
    smallest, largest = (by_size.drop_duplicates("run", keep=which) for which in ("first", "last"))
    headline = (
        f"{_share(overall, 'noisy_precision')} of its noisy component are mislabelled, and it holds "
        f"{_share(overall, 'noisy_recall')} of the mislabelled. There are fewer wrong labels after the correction in "
        f"{(change > 0).sum()} of {len(change)} runs with noise, and more in {(change < 0).sum()}. In the smallest "
        f"class {_right(smallest)}, in the largest {_right(largest)}."
    )
    return Finding(question, headline, answers)


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

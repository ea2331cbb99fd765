"""What the studies say over all data sets, in sentences: the first thing that a reader of the results sees.

Every sentence is put together from counts and means, so that it says the opposite when the rows do.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmark.evaluation.comparisons import better_or_worse, mean_ranks
from benchmark.paper import numbers as paper
from benchmark.paper.findings import EARLY, USUAL, at_the_papers_rate, by_setting, compared, original_line_up
from benchmark.wording import dataset_title

SEEDS = ["noise_seed", "training_seed"]
HOW = (
    "How these are counted: symmetric noise, in which a wrong label is never the true one; two classes at 50 % are "
    "left out, since their labels are coin tosses; means are over seeds, then rates, then data sets."
)


def headlines(tables: dict[str, pd.DataFrame]) -> list[str]:
    """From the rows of all studies on real data, by table name; of what was not measured nothing is said."""
    symmetric = {name: _informative(rows) for name, rows in tables.items()}
    metrics, epochs = (
        at_the_papers_rate(compared(original_line_up(symmetric[name]))) for name in ("metrics", "auc_by_epochs")
    )
    cells = accuracy_cells(symmetric["accuracy"])
    clean, noisy = (cells[cells["rate"] == 0], cells[cells["rate"] > 0]) if len(cells) else (cells, cells)
    return [
        *_places(metrics),
        *_epochs_read(epochs),
        *_feedback(metrics),
        *_accuracy(noisy),
        *_hurts(clean, noisy, symmetric["corrections"]),
        *_early_stopping(noisy),
        *_corrections(symmetric["corrections"]),
    ]


def _informative(rows: pd.DataFrame) -> pd.DataFrame:
    """Of symmetric noise, but for labels that are coin tosses."""
    if rows.empty:
        return rows
    return rows[rows["noise"].eq("symmetric") & ~(rows["classes"].eq(2) & np.isclose(rows["rate"], 0.5))]


def _places(metrics: pd.DataFrame) -> Iterator[str]:
    """Who is best, and where LiNC stands."""
    means = {title: rows.groupby("detector")["auroc"].mean() for title, rows in by_setting(metrics)}
    ranks = {title: of_it.rank(ascending=False, method="min").to_dict() for title, of_it in means.items()}
    ranks = {title: rank for title, rank in ranks.items() if "LiNC" in rank}
    if not ranks:
        return
    firsts = sum(rank["LiNC"] == 1 for rank in ranks.values())
    stands = ", ".join(
        f"number {rank['LiNC']:.0f} of {len(rank)} on {title} (best: {min(rank, key=rank.__getitem__)})"
        for title, rank in ranks.items()
    )
    overall = mean_ranks(metrics)
    winner, averaged = str(overall.index[0]), metrics.groupby("detector")["runs_averaged"].max().to_dict()
    how = f"; its scores are averaged over {averaged[winner]} runs" if averaged[winner] > 1 else ""
    yield (
        f"Is LiNC the best detector? At {paper.DETECTION_RATE:.0%} noise it is the best on {firsts} of {len(ranks)} "
        f"data sets: {stands}. Of the {len(overall)} detectors measured on all of them, {winner} has the best mean "
        f"rank ({overall.iloc[0]:.1f}{how}); LiNC's is {overall['LiNC']:.1f}."
    )


def _epochs_read(auc: pd.DataFrame) -> Iterator[str]:
    """Whether LiNC's lead over AUM, and over the paper's others, is one of the epochs that they read."""
    if auc.empty:
        return
    means = auc.groupby(["setting", "detector", "epochs_read"])["auroc"].mean().unstack()
    last, early = int(means.columns.max()), EARLY[0]
    if not {"LiNC", "AUM"} <= set(means.index.unique("detector")) or not {*EARLY} <= set(means):
        return
    linc, aum = (means.xs(name, level="detector") for name in ("LiNC", "AUM"))
    leads = [(linc[last] - aum[epochs]).dropna().to_numpy(float) for epochs in (last, early)]
    change = (means[early] - means[last]).groupby("detector").mean().to_dict()
    keeps_reading = means[EARLY[-1]].ne(means[last]).groupby("detector").any().to_dict()
    others = [name for name in paper.DETECTION if keeps_reading.get(name) and name != "LiNC"]
    better = [name for name in others if change[name] > 0]
    yield (
        f"At which epochs? LiNC reads the {early} epochs of its warm-up. It is ahead of AUM on {(leads[0] > 0).sum()} "
        f"of {len(leads[0])} data sets if AUM reads all {last} epochs (mean lead {leads[0].mean():+.3f}), and on "
        f"{(leads[1] > 0).sum()} if AUM reads the same {early} ({leads[1].mean():+.3f}). Of the paper's other "
        f"detectors that read every epoch, {len(better)} of {len(others)} find more after {early} epochs than after "
        f"{last}{_in_brackets(better)}."
    )


def _in_brackets(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _feedback(metrics: pd.DataFrame) -> Iterator[str]:
    rows = [rows[rows["detector"] == "post-hoc trust"] for _, rows in by_setting(metrics)]
    rows = [some for some in rows if some["minus_linc"].notna().any()]
    if rows:
        differences = np.array([some["minus_linc"].mean() for some in rows])
        clear = sum(better_or_worse(some) != "unclear" for some in rows)
        yield (
            "What does feeding trust back add to detection? Trust computed afterwards, from standard training's "
            f"logits, has a higher AUROC than LiNC on {(differences > 0).sum()} of {len(rows)} data sets; the "
            f"difference is {differences.min():+.4f} to {differences.max():+.4f}, and clear (beyond the 95 % interval "
            f"in every run) on {clear}."
        )


def accuracy_cells(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Differences in points, a row per data set and rate; means over seeds that both recipes have."""
    measures = ["last_test", "best_test", "test_by_noisy_validation"]
    rows = accuracy[accuracy["recipe"].isin(["standard", USUAL])] if len(accuracy) else accuracy
    if rows.empty or rows["recipe"].nunique() < 2:
        return pd.DataFrame()
    table = rows.pivot_table(index=["dataset", "rate", *SEEDS], columns="recipe", values=measures).dropna()
    standard, linc = (table.xs(recipe, axis=1, level="recipe") for recipe in ("standard", USUAL))
    stopped = standard["test_by_noisy_validation"]
    differences = 100 * pd.DataFrame(
        {
            "last": linc["last_test"] - standard["last_test"],
            "best": linc["best_test"] - standard["best_test"],
            "stopped against last": stopped - linc["last_test"],
            "both stopped": stopped - linc["test_by_noisy_validation"],
        }
    )
    by_cell = differences.groupby(["dataset", "rate"])
    hurts = (by_cell["last"].max() < 0) & (by_cell.size() > 1)
    return by_cell.mean().assign(seeds=by_cell.size(), hurts=hurts).reset_index()


def _of_cells(cells: pd.DataFrame, column: str) -> str:
    mean = cells.groupby("dataset")[column].mean().mean()
    return f"in {(cells[column] > 0).sum()} of {len(cells)} settings (mean difference {mean:+.1f} points)"


def _accuracy(noisy: pd.DataFrame) -> Iterator[str]:
    if len(noisy):
        yield (
            "Does LiNC make the classifier more accurate? With noise it is more accurate than standard training at the "
            f"last epoch {_of_cells(noisy, 'last')}, and at the best epoch, chosen on the test labels, "
            f"{_of_cells(noisy, 'best')}. A setting is a data set at a noise rate: there are "
            f"{noisy['dataset'].nunique()} data sets, and {(noisy['seeds'] == 1).sum()} of the settings have one seed."
        )


def _hurts(clean: pd.DataFrame, noisy: pd.DataFrame, corrections: pd.DataFrame) -> Iterator[str]:
    said = []
    if len(clean):
        said.append(
            f"Without any noise LiNC is less accurate at the last epoch on {(clean['last'] < 0).sum()} of {len(clean)} "
            f"data sets (mean difference {clean['last'].mean():+.1f} points)."
        )
    relabelled = _of_everybody(corrections)
    relabelled = relabelled[relabelled["rate"] == 0] if len(relabelled) else relabelled
    if len(relabelled):
        right = _average(relabelled, "label_accuracy_after")
        said.append(f"Of labels that are all right, {right:.0%} are right after its corrections.")
    if len(noisy):
        names = [
            f"{dataset_title(str(dataset))} at {' and '.join(f'{rate:.0%}' for rate in group['rate'])}"
            for dataset, group in noisy[noisy["hurts"]].groupby("dataset")
        ]
        said.append(
            "With noise it is less accurate at the last epoch, in every seed, in "
            f"{noisy['hurts'].sum()} of {(noisy['seeds'] > 1).sum()} settings with several seeds{_in_brackets(names)}."
        )
    if said:
        yield f"When does it hurt? {' '.join(said)}"


def _early_stopping(noisy: pd.DataFrame) -> Iterator[str]:
    if len(noisy):
        yield (
            "Would stopping early do as well? Standard training, stopped where accuracy on noisy validation labels "
            f"is best, is more accurate than LiNC trained to the end {_of_cells(noisy, 'stopped against last')}, and "
            f"more accurate than LiNC stopped likewise {_of_cells(noisy, 'both stopped')}."
        )


def _of_everybody(corrections: pd.DataFrame) -> pd.DataFrame:
    """LiNC's as it is, over all classes."""
    if corrections.empty:
        return corrections
    return corrections[corrections["recipe"].eq(USUAL) & corrections["class"].eq("all")]


def _average(rows: pd.DataFrame, column: str) -> float:
    """Over runs, then rates, then data sets."""
    return float(rows.groupby(["dataset", "rate"])[column].mean().groupby("dataset").mean().mean())


def _corrections(corrections: pd.DataFrame) -> Iterator[str]:
    noisy = corrections[corrections["rate"] > 0] if len(corrections) else corrections
    noisy = noisy[noisy["recipe"] == USUAL] if len(noisy) else noisy
    if noisy.empty:
        return
    of_all = _of_everybody(noisy)
    change = of_all["label_accuracy_after"] - of_all["label_accuracy_before"]
    by_size = noisy[noisy["class"] != "all"].sort_values("in_class", kind="stable")
    smallest, largest = (by_size.drop_duplicates("run", keep=which) for which in ("first", "last"))
    yield (
        f"Does the mixture find whom to relabel? {_share(of_all, 'noisy_precision')} of its noisy component are "
        f"mislabelled, and it holds {_share(of_all, 'noisy_recall')} of the mislabelled. After the correction there "
        f"are fewer wrong labels than before in {(change > 0).sum()} of {len(change)} runs with noise, and more in "
        f"{(change < 0).sum()}. In the smallest class {_right(smallest)}, in the largest {_right(largest)}."
    )


def _share(rows: pd.DataFrame, column: str) -> str:
    """On average, and its extremes by data set."""
    means = rows.groupby(["dataset", "rate"])[column].mean().groupby("dataset").mean().to_dict()
    ends = dict.fromkeys((min(means, key=means.__getitem__), max(means, key=means.__getitem__)))
    extremes = " to ".join(f"{means[name]:.0%} on {dataset_title(str(name))}" for name in ends)
    return f"{_average(rows, column):.0%} ({extremes})"


def _right(classes: pd.DataFrame) -> str:
    before, after = (_average(classes, f"label_accuracy_{when}") for when in ("before", "after"))
    return f"{before:.0%} of labels are right before and {after:.0%} after"

"""What the studies say over all data sets, in sentences: the first thing that a reader of the results sees.

Every sentence is put together from counts and means, so that it says the opposite when the rows do.
"""

from collections.abc import Iterator

import pandas as pd

from benchmark import paper
from benchmark.findings import EARLY, USUAL, accuracy_pairs, by_setting, compared, original_line_up
from benchmark.tables import against_linc

EARLY_EPOCHS = EARLY[-1]


def headlines(tables: dict[str, pd.DataFrame]) -> list[str]:
    """From the rows of all studies on real data, by table name; of what was not measured nothing is said."""
    metrics, epochs = (compared(original_line_up(tables[name])) for name in ("metrics", "auc_by_epochs"))
    return [
        *_places(metrics),
        *_epochs_read(epochs),
        *_feedback(metrics),
        *_accuracy(tables["accuracy"]),
        *_early_stopping(tables["accuracy"]),
        *_corrections(tables["corrections"]),
    ]


def _places(metrics: pd.DataFrame) -> Iterator[str]:
    """Who is best, and where LiNC stands."""
    by_dataset = {title: rows.groupby("detector")["auroc"].mean() for title, rows in by_setting(metrics)}
    by_dataset = {title: means for title, means in by_dataset.items() if "LiNC" in means}
    if not by_dataset:
        return
    ranks = {title: means.rank(ascending=False).to_dict() for title, means in by_dataset.items()}
    firsts = sum(rank["LiNC"] == 1 for rank in ranks.values())
    stands = ", ".join(
        f"number {rank['LiNC']:.0f} of {len(rank)} on {title} (best: {min(rank, key=rank.__getitem__)})"
        for title, rank in ranks.items()
    )
    everywhere = pd.concat(list(by_dataset.values()), axis=1).dropna()
    mean_rank = everywhere.rank(ascending=False).mean(axis=1).to_dict()
    winner = min(mean_rank, key=mean_rank.__getitem__)
    yield (
        f"Is LiNC the best detector? On {firsts} of {len(ranks)} data sets at {paper.DETECTION_RATE:.0%} noise: it is "
        f"{stands}. Of the {len(mean_rank)} detectors measured on all of them, {winner} has the best mean rank "
        f"({mean_rank[winner]:.1f}); LiNC's is {mean_rank['LiNC']:.1f}."
    )


def _epochs_read(auc: pd.DataFrame) -> Iterator[str]:
    """Whether LiNC's lead over AUM, and over the paper's others, is one of the epochs that they read."""
    means = auc.groupby(["setting", "detector", "epochs_read"])["auroc"].mean().unstack() if len(auc) else auc
    if means.empty or EARLY_EPOCHS not in means or not {"LiNC", "AUM"} <= set(means.index.unique("detector")):
        return
    last = int(means.columns.max())
    linc, aum = (means.xs(name, level="detector") for name in ("LiNC", "AUM"))
    late, early = ((linc[last] - aum[epochs]).to_numpy(float) for epochs in (last, EARLY_EPOCHS))
    average = means.groupby("detector").mean()
    others = [name for name in paper.DETECTION if name in average.index and name != "LiNC"]
    falls = (average[EARLY_EPOCHS] > average[last]).to_dict()
    better = [name for name in others if falls[name]]
    yield (
        f"At which epochs? LiNC reads its warm-up. It is ahead of AUM on {(late > 0).sum()} of {len(late)} data sets "
        f"if AUM reads all {last} epochs (mean lead {late.mean():+.3f}), and on {(early > 0).sum()} of them if AUM "
        f"reads the first {EARLY_EPOCHS} ({early.mean():+.3f}). Of the paper's other detectors, {len(better)} of "
        f"{len(others)} find more after {EARLY_EPOCHS} epochs than after {last}"
        f"{f' ({_list(better)})' if better else ''}."
    )


def _feedback(metrics: pd.DataFrame) -> Iterator[str]:
    rows = [rows[rows["detector"] == "post-hoc trust"] for _, rows in by_setting(metrics)]
    rows = [some for some in rows if some["minus_linc"].notna().any()]
    if rows:
        differences = [some["minus_linc"].mean() for some in rows]
        clear = sum(not against_linc(some).endswith("unclear") for some in rows)
        yield (
            "What does feeding trust back add to detection? Trust computed afterwards from standard training's logits "
            f"differs from LiNC's AUROC by {min(differences):+.4f} to {max(differences):+.4f}; the difference is clear "
            f"on {clear} of {len(rows)} data sets."
        )


def _accuracy(accuracy: pd.DataFrame) -> Iterator[str]:
    """Cells are data sets × kinds of noise × rates; each a mean over seeds."""
    gains = _cells(accuracy, {epoch: (f"{epoch}_test", f"{epoch}_test") for epoch in ("last", "best")})
    noisy, clean = gains[gains["rate"] > 0], gains[gains["rate"] == 0]
    if len(noisy):
        parts = [
            f"at the {epoch} epoch in {(noisy[epoch] > 0).sum()} of {len(noisy)} settings with noise, by "
            f"{noisy[epoch].mean():+.1f} points on average"
            for epoch in ("last", "best")
        ]
        yield f"Does LiNC make the classifier more accurate? It does {' and '.join(parts)}."
    if len(clean):
        yield (
            "When does it hurt? Without any noise it is less accurate at the last epoch on "
            f"{(clean['last'] < 0).sum()} of {len(clean)} data sets ({clean['last'].mean():+.1f} points on average): "
            f"its mixture always finds somebody to relabel. With noise: {_named(noisy[noisy['last'] < 0])}."
        )


def _early_stopping(accuracy: pd.DataFrame) -> Iterator[str]:
    cells = _cells(accuracy, {"stopped": ("last_test", "test_by_noisy_validation")})
    noisy = cells[cells["rate"] > 0]
    if len(noisy):
        yield (
            "Would stopping early do as well? Standard training, stopped at its best epoch on noisy validation labels, "
            f"is more accurate than LiNC at its last epoch in {(noisy['stopped'] < 0).sum()} of {len(noisy)} settings "
            f"with noise; over all of them the difference is {-noisy['stopped'].mean():+.1f} points."
        )


def _cells(accuracy: pd.DataFrame, measures: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """LiNC's measure minus standard training's, in points: a row per data set, kind of noise and rate."""
    parts = []
    for title, table in accuracy_pairs(accuracy):
        differences = {
            name: 100 * (table[ours][USUAL] - table[theirs]["standard"]) for name, (ours, theirs) in measures.items()
        }
        parts.append(pd.DataFrame(differences).groupby("rate").mean().reset_index().assign(title=title))
    return pd.concat(parts) if parts else pd.DataFrame(columns=["rate", "title", *measures])


def _corrections(corrections: pd.DataFrame) -> Iterator[str]:
    if corrections.empty:
        return
    rows = corrections[corrections["recipe"].eq(USUAL) & corrections["rate"].gt(0)].drop_duplicates(["run", "class"])
    of_all, of_classes = rows[rows["class"] == "all"], rows[rows["class"] != "all"]
    if of_all.empty:
        return
    change = of_all["label_accuracy_after"] - of_all["label_accuracy_before"]
    by_size = of_classes.sort_values("in_class", kind="stable")
    smallest, largest = (by_size.drop_duplicates("run", keep=which) for which in ("first", "last"))
    yield (
        f"Does the mixture find whom to relabel? Over {len(of_all)} runs with noise, "
        f"{of_all['noisy_precision'].mean():.0%} of its noisy component are mislabelled and it holds "
        f"{of_all['noisy_recall'].mean():.0%} of the mislabelled; after the correction there are fewer wrong labels "
        f"than before in {(change > 0).sum()} of these runs, and more in {(change < 0).sum()}. {_right(smallest)} in "
        f"the smallest class, {_right(largest)} in the largest."
    )


def _right(classes: pd.DataFrame) -> str:
    before, after = (classes[f"label_accuracy_{when}"].mean() for when in ("before", "after"))
    return f"{before:.0%} of labels are right before and {after:.0%} after"


def _named(cells: pd.DataFrame) -> str:
    names = [
        f"{title} at {', '.join(f'{rate:.0%}' for rate in group['rate'])}" for title, group in cells.groupby("title")
    ]
    return "; ".join(names) or "none of the settings"


def _list(names: list[str]) -> str:
    return ", ".join(names)

"""The leaderboard of the page: every view of it that its selectors can choose, computed beforehand."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pandas as pd

from benchmark import reference
from benchmark.display.front_page import Board, BoardDetector, BoardRow, Selector
from benchmark.overhead.tables import added_costs, profiled_on
from benchmark.paper.select import SEEDS, is_ablation, like
from benchmark.statistics.comparisons import SCALE, Compared, compared, mean_aurocs, mean_ranks
from benchmark.statistics.hierarchical import EQUIVALENT
from benchmark.wording import dataset_title, line_up_title, network_title, ordinal
from detectors import LINE_UPS

METRICS = {
    "auroc": "AUROC",
    "auprc": "area under precision and recall",
    "precision_at_rate": "precision at the true noise rate",
    "recall_5": "share of wrong labels in the first 5 %",
    "recall_20": "share of wrong labels in the first 20 %",
}
EPOCHS = (1, 2, 5, 10, 20, 40)  # of those that were read, the views that are offered
ALL, ALL_EPOCHS = "all", "all"
NAMES = {
    "data": "data set",
    "noise": "noise",
    "rate": "noise rate",
    "network": "network",
    "lineup": "line-up",
    "metric": "measure",
    "trainings": "trainings",
    "epochs": "epochs read",
}
GROUP = ["noise", "rate", "backbone", "image_size", "protocol", "line_up", "runs_averaged"]
HOW = (
    "Means over pairs of seeds, then over data sets; rank 1 is the best. In brackets the 95 % interval of a bootstrap "
    "over data sets, pairs of seeds and, for AUROC of one training, samples. "
    f"vs. {reference.DETECTOR}: the difference of the means; better or worse if its interval is beyond {EQUIVALENT:g}, "
    f"equivalent if it is within ±{EQUIVALENT:g}, undecided otherwise. So a lead in every data set, which the ranks "
    f"show, is undecided if it may be less than {EQUIVALENT:g}. Where it says so, a detector was not measured in every "
    "run: it is neither ranked nor compared, since its mean is of other wrong labels. Trainings: how many networks it "
    "trains; those in folds are shorter. Added cost: what it adds to one standard training on cached features if it is "
    "used alone{}."
)


def board(tables: Mapping[str, pd.DataFrame], link: str) -> Board | None:
    """From the rows of all studies but ablations, which have figures of their own; `link` leads to the project."""
    ablations = [str(study) for study, part in tables["accuracy"].groupby("study") if is_ablation(part)]
    rows, draws, by_epochs = (
        _usual(part, ablations)
        for part in (
            pd.concat([tables["metrics"], tables["averaged"]]),
            tables["auroc_draws"],
            tables["auc_by_epochs"],
        )
    )
    views, over = {}, {}
    for _, group in rows.groupby(GROUP):
        alike = group.iloc[0]
        own_draws, own_epochs = (like(table, alike[GROUP]) for table in (draws, by_epochs))
        datasets: list[str] = [*group["dataset"].unique()]
        for dataset in [ALL, *datasets] if len(datasets) > 1 else datasets:
            chosen = [dataset] if dataset != ALL else datasets
            parts = [part[part["dataset"].isin(chosen)] for part in (group, own_draws, own_epochs)]
            for (metric, epochs), entries in _views(*parts):
                address = _address(dataset, alike, metric, epochs)
                if entries:
                    views[address] = entries
                    over[address] = ", ".join(map(dataset_title, chosen))
    if not views:
        return None
    first = max(views, key=lambda address: _comes_first(address, len(views[address])))
    detectors = _detectors(rows, tables["overhead"], link)
    note = HOW.format(profiled_on(tables["overhead"], rows.iloc[0]))
    return Board(_selectors(views, first), views, over, first, detectors, note, reference.DETECTOR)


def verdict(board: Board) -> str:
    """Who finds most, and where the pinned detector stands."""
    rows = board.views[board.first]
    best, own = rows[0], next((row for row in rows if row.detector == board.pinned), None)
    ranked = [row for row in rows if row.ranked]
    rivals = [row.detector for row in rows if row.may_be_best]
    certain = ", for certain" if best.is_best else ""
    if rivals:
        certain = f"; {rivals[0] if len(rivals) == 1 else f'{len(rivals)} others'} may be as good"
    sentence = f"Of {len(ranked)} detectors, {best.detector} has the highest mean AUROC ({best.value}){certain}"
    if own is None or own is best:
        return f"{sentence}."
    return f"{sentence}; {own.detector} is {ordinal(ranked.index(own) + 1)} ({own.value})."


def _usual(rows: pd.DataFrame, ablations: Collection[str]) -> pd.DataFrame:
    """Scored rows, each once although several studies may have it, of the training in which most was measured."""
    if "status" in rows:
        rows = rows[rows["status"] == "ok"].assign(number=0)
    else:  # several rows of a detector in a run
        number = rows.groupby(["study", "run", "line_up", "detector"]).cumcount()
        rows = rows.assign(number=number, runs_averaged=1)
    rows = rows[~rows["study"].isin(ablations)]
    rows = rows.drop_duplicates(["run", "line_up", "detector", "runs_averaged", "number"])
    cell = ["dataset", "noise", "rate", "backbone", "image_size"]
    counts: pd.DataFrame = rows.groupby([*cell, "protocol"])[["detector"]].nunique().reset_index()
    most = counts.sort_values("detector", ascending=False, kind="stable").drop_duplicates(cell)
    return rows.merge(most[[*cell, "protocol"]])


def _views(
    rows: pd.DataFrame, draws: pd.DataFrame, by_epochs: pd.DataFrame
) -> Iterator[tuple[tuple[str, str], list[BoardRow]]]:
    for metric in METRICS:
        drawn = compared(draws, scale=SCALE) if metric == "auroc" and len(draws) else None
        yield (metric, ALL_EPOCHS), _view(rows, metric, drawn)
    for epochs in EPOCHS:
        read = by_epochs[by_epochs["epochs_read"] == epochs] if len(by_epochs) else by_epochs
        if len(read) and epochs < by_epochs["epochs_read"].max():
            yield ("auroc", str(epochs)), _view(read, "auroc", None)


def _view(rows: pd.DataFrame, column: str, drawn: Compared | None) -> list[BoardRow]:
    """The best first; then what was not measured in every run."""
    rows = rows[rows[column].notna()]
    if rows.empty:
        return []
    means, ranks = mean_aurocs(rows, column), mean_ranks(rows, column)
    found = drawn if drawn and set(means.index) <= set(drawn.names) else None
    if found is None and len(rows[SEEDS].drop_duplicates()) > 1:
        found = compared(rows, column, 1)
    ends, rank_ends = (found.auroc_intervals(), found.rank_intervals()) if found else ({}, {})
    first, *others = means.index if len(means) else [""]
    rivals = {other for other in others if found and found.difference(first, other).low <= 0}
    board = []
    for name, mean in zip(map(str, means.index), means, strict=True):
        versus: tuple[float, str] = (0.0, "")
        if found and name != reference.DETECTOR and reference.DETECTOR in found.names:
            versus = mean - means[reference.DETECTOR], found.difference(name, reference.DETECTOR).verdict
        value, rank = _with_ends(mean, ends.get(name), 3), _with_ends(ranks[name], rank_ends.get(name), 1)
        is_best = found is not None and name == first and not rivals
        board.append(BoardRow(name, value, rank, *versus, is_best, name in rivals))
    by_run = rows.pivot_table(column, ["dataset", *SEEDS], "detector").drop(columns=means.index)
    in_part: pd.Series = by_run.groupby("dataset").mean().mean()
    return board + [
        BoardRow(str(name), f"{mean:.3f} in {by_run[name].notna().sum()} of {len(by_run)} runs")
        for name, mean in in_part.sort_values(ascending=False, kind="stable").items()
    ]


def _with_ends(value: float, ends: tuple[float, float] | None, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if ends else "")


def _address(dataset: str, alike: pd.Series, metric: str, epochs: str) -> tuple[str, ...]:
    network = f"{alike['backbone']}@{alike['image_size']}"
    return (
        *(dataset, alike["noise"], f"{alike['rate']:g}", network, alike["line_up"], metric),
        *(str(alike["runs_averaged"]), epochs),
    )


def _comes_first(address: tuple[str, ...], detectors: int) -> tuple[bool | int, ...]:
    """The larger, the better for the view that a reader sees first."""
    data, noise, rate, _, line_up, metric, _, epochs = address
    is_usual = line_up == reference.LINE_UP and metric == "auroc" and epochs == ALL_EPOCHS
    return is_usual, noise == reference.NOISE, data == ALL, float(rate) == reference.RATE, detectors


def _selectors(views: Mapping[tuple[str, ...], Any], first: tuple[str, ...]) -> tuple[Selector, ...]:
    """What can be chosen in each place of an address, the first view's choice first."""

    def title(name: str, value: str) -> str:
        backbone, _, size = value.partition("@")
        titles = {
            "data": "all data sets" if value == ALL else dataset_title(value),
            "noise": f"{value} noise",
            "rate": f"{float(value):.0%}" if name == "rate" else "",
            "network": f"{network_title(backbone)}, {size} px",
            "lineup": line_up_title(value),
            "metric": METRICS.get(value, value),
            "trainings": "one training" if value == "1" else f"averaged over {value} trainings",
            "epochs": "epochs that their authors read" if value == ALL_EPOCHS else f"at most the first {value} epochs",
        }
        return titles.get(name, value)

    selectors = []
    for place, (name, label) in enumerate(NAMES.items()):
        values = dict.fromkeys([first[place], *(address[place] for address in views)])
        selectors.append(Selector(name, label, {value: title(name, value) for value in values}))
    return tuple(selectors)


def _detectors(rows: pd.DataFrame, costs: pd.DataFrame, link: str) -> dict[str, BoardDetector]:
    """By label."""
    of_label = {detector.label: detector for detectors in LINE_UPS.values() for detector in detectors}
    known = {detector.name: detector for detector in LINE_UPS[reference.LINE_UP]}
    of_hcat = {detector.label for detector in LINE_UPS["hcat"]} - {detector.label for detector in known.values()}
    usual = rows[rows["protocol"] == rows["protocol"].mode()[0]]
    cost, epochs = added_costs(costs, usual.iloc[0]), int(usual["epochs"].iloc[0])
    found = {}
    for label, name in rows[["detector", "detector_name"]].drop_duplicates().itertuples(index=False):
        if (detector := known.get(name)) is None:  # a user's own
            found[label] = BoardDetector(label, added=cost.get(label))
            continue
        detector = of_label.get(label, detector)
        cited, number = detector.paper
        found[label] = BoardDetector(
            f"{name}, HCAT" if label in of_hcat else label,
            label if label in of_hcat else detector.summary,
            cited,
            f"https://arxiv.org/abs/{number}" if number else "",
            f"{link}{type(detector).__module__.replace('.', '/')}.py" if link else "",
            str(detector.training.trainings if detector.epochs_used(epochs) else 0),
            cost.get(label),
        )
    return found

"""The paper's tables and figures by name: what trains them, which rows they show, and how much of them was measured."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from benchmark.display.tables import Tables, titled
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.tables import BESIDE, clean_table, detection_tables, noisy_table
from benchmark.paper.verdicts import NOT_TESTED, TABLE_1, TABLE_2, TABLE_3
from benchmark.reference import DETECTOR, LINE_UP
from benchmark.wording import dataset_title, network_title

ITS_DATASET = dataset_title(paper.DETECTION_DATASET)
LEGEND = BESIDE  # of these tables
NETWORK = str(select.NETWORK["backbone"])
IN_ITS_SETTING = (
    f"Differs from the paper: its ViT-S/8 is taken to be timm's {NETWORK}, and three pairs of seeds "
    "are trained; the paper names neither."
)


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper."""

    what: str
    study: str = ""  # in the paper's setting; a drawing without data has none
    part: tuple[str, ...] = ()  # of the study, as options of `run`
    rows: Callable[[select.Tables], pd.DataFrame] = lambda tables: tables["accuracy"][:0]  # what it shows
    tables: Callable[[pd.DataFrame], Tables] | None = None
    place: str = ""  # of its numbers, in the table of verdicts
    figure: str = ""  # how the names of its files begin

    @property
    def words(self) -> list[str]:
        """The command that trains it; its rows keep the study's name."""
        return ["run", self.study, *self.part, "--name", self.study]


def _detection(tables: select.Tables) -> pd.DataFrame:
    return select.at_the_papers_rate(tables["metrics"][tables["metrics"]["status"] == "ok"])


def _accuracy(tables: select.Tables, is_noisy: bool) -> pd.DataFrame:
    return tables["accuracy"][(tables["accuracy"]["rate"] > 0) == is_noisy]


_noisy, _clean = partial(_accuracy, is_noisy=True), partial(_accuracy, is_noisy=False)
ITS_DETECTORS = tuple(word for name in paper.DETECTION for word in ("--detector", name))
ITS_RATES = tuple(word for rate in paper.RATES for word in ("--rate", str(rate)))
TARGETS = {
    "table1": Target(
        f"AUC of {len(paper.DETECTION)} detectors, and {DETECTOR}'s lead: {ITS_DATASET}, "
        f"{paper.DETECTION_RATE:.0%} noise",
        "paper-auc",
        ("--rate", str(paper.DETECTION_RATE), "--line-up", LINE_UP, *ITS_DETECTORS),
        *(_detection, detection_tables, TABLE_1),
    ),
    "table2": Target(
        "accuracy without noise: ten data sets",
        *("paper-accuracy", ("--rate", "0"), _clean, lambda rows: titled("", clean_table(rows)), TABLE_2),
    ),
    "table3": Target(
        f"accuracy with and without {DETECTOR}: ten data sets, 10-50 % noise",
        *("paper-accuracy", ITS_RATES, _noisy, lambda rows: titled("", noisy_table(rows)), TABLE_3),
    ),
    "figure1": Target(f"the phases of {DETECTOR}, a drawing", figure="overview"),
    "figure2": Target(
        f"trust of clean and mislabelled samples: {ITS_DATASET}, 10-50 % noise",
        *("paper-auc", ("--line-up", LINE_UP, "--detector", DETECTOR), _noisy),
        figure="trust_histograms",
    ),
    "figure3": Target(
        "accuracy over epochs: DermaMNIST, 50 % noise",
        *("paper-accuracy", ("--dataset", "dermamnist", "--rate", "0.5"), _noisy),
        figure="accuracy_curves",
    ),
}


def as_in_the_paper(tables: select.Tables) -> dict[str, pd.DataFrame]:
    """On its data sets, with its hyper-parameters, and its network if that was run."""
    return {name: select.as_in_the_paper(rows) for name, rows in select.of_the_paper(tables).items()}


def measured(target: Target, judged: pd.DataFrame, rows: pd.DataFrame) -> str:
    """How many of its numbers have a verdict, and where they were measured."""
    verdicts = judged.loc[judged["where"] == target.place, "verdict"]
    count = (verdicts != NOT_TESTED).sum()
    if count:
        return f"{count} of its {len(verdicts)} numbers, by {_setting(rows)}"
    return f"none of its {len(verdicts)} numbers{f', but rows of {_setting(rows)}' if len(rows) else ''}"


def difference(target: Target, rows: pd.DataFrame) -> str:
    """What differs from the paper's setting, in a line; of no rows, nothing."""
    if rows.empty:
        return ""
    if select.have_its_network(rows):
        return IN_ITS_SETTING
    where = target.what.rpartition(": ")[2]
    return f"Differs from the paper: ours is {_setting(rows)}; the paper has ViT-S/8 at 224 px; {where}."


def _setting(rows: pd.DataFrame) -> str:
    network = f"{network_title(rows['backbone'].iloc[0])} at {rows['image_size'].iloc[0]} px"
    datasets = ", ".join(dataset_title(name) for name in rows["dataset"].unique())
    rates = ", ".join(f"{rate:.0%}" for rate in sorted(rows["rate"].unique()))
    return f"{network}; {datasets}; {rates} noise"


def other_setting(rows: pd.DataFrame) -> str:
    """Where rows are from that are not of the paper's network; empty if they are."""
    return "" if rows.empty or select.have_its_network(rows) else _setting(rows)

"""A report is made whatever is missing: a detector or recipe that failed, everywhere or in one setting."""

from collections.abc import Callable
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from benchmark.disk.schema import TABLES
from benchmark.report.front import PaperPart
from benchmark.report.parts import StudyPart
from tests.made_up_study import DETECTORS, Tables, made_up_ablation, made_up_study

MORE = DETECTORS | {
    "post-hoc trust": ("standard", 0.94),
    "DataMaps": ("standard", 0.9),
    "forgetting": ("standard", 0.7),
}
RECIPES = ("standard", "linc", "cross-validation")
AS_IN_THE_PAPER = {"epochs": 70, "batch_size": 128, "study": "detection"}


def like_the_paper(tables: Tables, batch_size: bool = True) -> Tables:
    """On a data set of the paper, in a study of ours, so that what is said about the paper is said about these rows."""
    columns = {name: value for name, value in AS_IN_THE_PAPER.items() if batch_size or name != "batch_size"}
    return {
        name: rows.assign(**columns, dataset=rows["dataset"].replace("digits", "breastmnist"))
        for name, rows in tables.items()
    }


STUDIES = {
    "detection": like_the_paper(made_up_study(rates=(0.0, 0.2), detectors=MORE)),
    "ablation": like_the_paper(made_up_ablation(), batch_size=False),
}
SETTING = "digits0.2"
EMPTY = tuple(STUDIES["detection"])


def without(tables: Tables, is_dropped: Callable[[pd.DataFrame], pd.Series]) -> Tables:
    return {name: rows[~is_dropped(rows)] for name, rows in tables.items()}


def of_detector(name: str, setting: str | None) -> Callable[[pd.DataFrame], pd.Series]:
    def is_dropped(rows: pd.DataFrame) -> pd.Series:
        dropped = pd.Series(False, index=rows.index)
        for column in ("detector", "other"):
            dropped |= rows[column].str.startswith(name) if column in rows else False
        return dropped & (rows["setting"] == setting) if setting else dropped

    return is_dropped


def of_recipe(name: str, setting: str | None) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda rows: (rows["recipe_name"] == name) & ((rows["setting"] == setting) if setting else True)


def report(tables: Tables) -> None:
    tables = {**tables, "overhead": pd.DataFrame(columns=list(TABLES["overhead"].columns))}
    study, paper = StudyPart(tables, "detection"), PaperPart(tables)
    for part in (study, paper):
        assert part.groups is not None
        part.shown()
        part.summary()
        part.runs()
        for drawing in part.drawings():
            drawing.draw(*drawing.rows)
            plt.close("all")


@pytest.mark.long
@pytest.mark.parametrize("kind", STUDIES)
@pytest.mark.parametrize("setting", [None, SETTING])
@pytest.mark.parametrize(
    "drop",
    [*product([of_detector], MORE), *product([of_recipe], RECIPES)],
    ids=lambda drop: f"{drop[0].__name__} {drop[1]}",
)
def test_a_report_lives_without_a_detector_or_recipe(
    kind: str, setting: str | None, drop: tuple[Callable[..., Callable[[pd.DataFrame], pd.Series]], str]
) -> None:
    of, name = drop
    report(without(STUDIES[kind], of(name, setting)))


@pytest.mark.parametrize("kind", STUDIES)
@pytest.mark.parametrize("drop", [(of_detector, "LiNC"), (of_recipe, "linc")], ids=["LiNC", "linc"])
def test_a_report_lives_without_the_reference_in_a_setting(
    kind: str, drop: tuple[Callable[..., Callable[[pd.DataFrame], pd.Series]], str]
) -> None:
    report(without(STUDIES[kind], drop[0](drop[1], SETTING)))


@pytest.mark.long
@pytest.mark.parametrize("kind", STUDIES)
@pytest.mark.parametrize("table", EMPTY)
def test_a_report_lives_without_a_table(kind: str, table: str) -> None:
    report(STUDIES[kind] | {table: STUDIES[kind][table][:0]})

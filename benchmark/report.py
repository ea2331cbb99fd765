"""Makes tables and figures from the committed files alone; works in a clone without a single record."""

from collections.abc import Callable, Collection
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmark.errors import LincBenchError, unknown_name
from benchmark.evaluation import read_table
from benchmark.layout import DEFAULT_RESULTS, ResultsFolder
from benchmark.plots import draw_all
from benchmark.storage import write_text
from benchmark.studies import STUDIES
from benchmark.tables import (
    accuracy_table,
    as_markdown,
    auc_table,
    for_terminal,
    settings,
    speed_table,
    spread_note,
    troubles,
)

README = Path("README.md")


def make_report(
    results: ResultsFolder, study: str | None, console: Console, runs: Collection[str] | None = None
) -> None:
    """For one study, or for each that has rows; of a study's runs all, or only those that are named."""
    there = read_table(results.table_data("accuracy"))
    studies = sorted(there["study"].unique()) if not there.empty else []
    if study is not None and study not in studies and study not in {known.name for known in STUDIES}:
        raise unknown_name("study", study, [*studies, *(known.name for known in STUDIES)])
    if not studies or (study is not None and study not in studies):
        others = f" (but of {', '.join(studies)})" if studies else ""
        raise LincBenchError(
            f"{results.root} has no results of {study or 'any study'} yet{others}. "
            f"Make them with: linc-bench run {study or 'demo'}"
        )
    for name in studies if study is None else [study]:
        _report_study(results, name, console, runs)
    speed = read_table(results.table_data("speed"))
    if results.root == DEFAULT_RESULTS and not speed.empty:
        _fill_readme("speed", as_markdown("Measured by `make bench` on two cores", speed_table(speed)))


def _report_study(results: ResultsFolder, study: str, console: Console, runs: Collection[str] | None) -> None:
    def rows(table: str) -> pd.DataFrame:
        everything = read_table(results.table_data(table))
        if everything.empty:
            return everything
        return everything[(everything["study"] == study) & (everything["run"].isin(runs) if runs else True)]

    tables = {
        "auc": [
            titled
            for line_up, group in _by_line_up(rows("metrics"))
            for titled in _tables(group, f"Detection, {line_up} line-up", auc_table)
        ],
        "accuracy": _tables(rows("accuracy"), "Test accuracy", accuracy_table),
    }
    notes = {
        "auc": [spread_note(rows("metrics")), *troubles(rows("metrics"))] if tables["auc"] else [],
        "accuracy": [spread_note(rows("accuracy"))] if tables["accuracy"] else [],
    }
    for name, titled in tables.items():
        for title, table in titled:
            console.print(for_terminal(title, table))
        if titled:
            console.print("\n".join(notes[name]), highlight=False, markup=False, soft_wrap=True)
            text = "\n".join(as_markdown(title, table) for title, table in titled)
            write_text(results.tables(study) / f"{name}.md", text + "\n" + "\n\n".join(notes[name]) + "\n")
    figures = draw_all(rows, results.figures(study))
    console.print(
        f"Tables: {results.tables(study)}. Figures: {results.figures(study)} ({', '.join(figures)}).",
        highlight=False,
        soft_wrap=True,
    )
    if results.root == DEFAULT_RESULTS:
        blocks = []
        for name, titled in tables.items():
            # Times differ from run to run, and would change a committed file each time.
            blocks += [
                as_markdown(title, table.drop(columns="scoring seconds", errors="ignore")) for title, table in titled
            ]
            blocks += [f"{note}\n" for note in notes[name]]
        _fill_readme(study, "\n".join(blocks))


def _by_line_up(metrics: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """In the order in which a study has them."""
    if metrics.empty:
        return []
    return [(name, metrics[metrics["line_up"] == name]) for name in dict.fromkeys(metrics["line_up"])]


def _tables(
    rows: pd.DataFrame, what: str, make: Callable[[pd.DataFrame], pd.DataFrame]
) -> list[tuple[str, pd.DataFrame]]:
    return [(f"{what}: {name}", make(group)) for name, group in settings(rows)] if not rows.empty else []


def _fill_readme(study: str, text: str) -> None:
    """Rewrites what stands between the README's markers for this study, if it has them."""
    begin, end = f"<!-- results of {study}: written by `linc-bench report` -->", f"<!-- end of {study} -->"
    if not README.exists():
        return
    readme = README.read_text()
    if begin in readme and end in readme:
        before, after = readme.split(begin)[0], readme.split(end)[1]
        filled = f"{before}{begin}\n{text}{end}{after}"
        if filled != readme:
            write_text(README, filled)

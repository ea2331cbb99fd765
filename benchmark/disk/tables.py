"""Reads and merges the CSV tables of a results folder; merging changes no byte of a row it keeps."""

from collections.abc import Callable, Sequence
from io import StringIO

import numpy as np
import pandas as pd

from benchmark.disk.files import locked, write_text
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import ABOUT_RUNS, OF_STUDY, TABLES, Table
from benchmark.errors import LincBenchError
from benchmark.identity import Json

SEPARATOR = "|"  # between the values of a series in one cell


def read_table(results: ResultsFolder, name: str) -> pd.DataFrame:
    """Typed columns, one row per value of a series; a table that is not there is empty, with all its columns."""
    return typed(read_as_text(results, name), name)


def typed(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of text with the table's types, one row per value of a series."""
    table = TABLES[name]
    if table.series:
        cells = rows.assign(**{column: rows[column].str.split(SEPARATOR) for column in table.series})
        rows = cells.explode(list(table.series), ignore_index=True)
    return pd.DataFrame({column: _typed(rows[column], kind) for column, kind in table.columns.items()})


def read_as_text(results: ResultsFolder, name: str) -> pd.DataFrame:
    """Cells exactly as the file has them."""
    path, columns = results.table_data(name), list(TABLES[name].columns)
    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame(columns=columns, dtype=str)
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    missing = ", ".join(column for column in columns if column not in rows)
    unknown = ", ".join(str(column) for column in rows if column not in columns)
    if missing or unknown:
        what = f"lacks the columns {missing}" if missing else f"has columns that no table has: {unknown}"
        raise LincBenchError(
            f"{path} {what}. It was written by another version, or saved by another program. Restore it from version "
            "control, or move it away and run its studies again."
        )
    return rows


def _typed(column: pd.Series, kind: type) -> pd.Series:
    if kind is str:
        return column.astype(str)
    if kind is bool:
        return column == "True"
    return pd.to_numeric(column.replace("", np.nan)).astype(kind)


def merge_rows(
    results: ResultsFolder, name: str, rows: Sequence[Json], is_replaced: Callable[[pd.DataFrame], pd.Series]
) -> None:
    """Adds rows (one per value of a series) to a table, in the place of those that `is_replaced` picks."""
    table, path = TABLES[name], results.table_data(name)
    if not rows and not path.exists():
        return
    new = _as_text(table, rows)
    with locked(results.locks, "tables"):
        old = read_as_text(results, name)
        merged = pd.concat([old[~is_replaced(old).to_numpy(bool)], new]).fillna("")
        order = [column for column in table.order if column in table.columns]
        write_text(path, merged.sort_values(order, kind="stable").to_csv(index=False, lineterminator="\n"))


def _as_text(table: Table, rows: Sequence[Json]) -> pd.DataFrame:
    """As the file will have them, so that merging is text and nothing else."""
    cells = pd.DataFrame(list(rows), columns=list(table.columns))
    if table.series and len(cells):
        kept = [column for column in table.columns if column not in table.series]
        joined = {
            column: cells[column].map("{:.6g}".format if kind is float else str)
            for column, kind in table.series.items()
        }
        groups = cells.assign(**joined).groupby(kept, sort=False, dropna=False)
        cells = groups.agg(dict.fromkeys(table.series, SEPARATOR.join)).reset_index()
    return pd.read_csv(StringIO(cells.to_csv(index=False)), dtype=str, keep_default_na=False)


def matches(columns: Sequence[str], new: Sequence[Json], old: pd.DataFrame) -> pd.Series:
    """Which old rows have a new one that is the same in these columns."""
    measured = {tuple(str(row[column]) for column in columns) for row in new}
    return pd.Series([tuple(row) in measured for row in old[list(columns)].itertuples(index=False)], index=old.index)


def join_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows that say only which run they are of, with what is known of it; once for each study that has it."""
    key = [column for column in OF_STUDY if column in rows]
    about = [column for column in (*OF_STUDY, *ABOUT_RUNS) if column not in rows]
    return rows.merge(runs[[*key, *about]], on=key) if about else rows

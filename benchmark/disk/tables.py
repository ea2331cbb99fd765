"""Reads and merges the CSV tables of a results folder; merging changes no byte of a row it keeps."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path

import pandas as pd

from benchmark.disk.files import locked, write_bytes, write_text
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import ABOUT_RUNS, GROUPING, OF_STUDY, TABLES, Table
from benchmark.disk.spreadsheets import as_csv, restored
from benchmark.errors import LincBenchError
from benchmark.identity import Json, file_digest
from benchmark.names import check_name

SEPARATOR = "|"  # between the values of a series in one cell
OPTIONS = ("recipe_options", "detector_options")  # columns of JSON
EXPECTED = {int: "a whole number", float: "a number", bool: "True or False", str: "a JSON object"}
ADVICE = "Restore it from version control, or move it away and run its studies again."


class OtherColumnsError(LincBenchError):
    """A whole table, but not one of this version."""


def check_tables(results: ResultsFolder) -> None:
    """Before hours of work whose rows could not be added to them: can all tables be read?"""
    for name in TABLES:
        read_table(results, name)


def read_table(results: ResultsFolder, name: str) -> pd.DataFrame:
    """Typed columns, one row per value of a series; a table that is not there is empty, with all its columns."""
    table, path, rows = TABLES[name], results.table_data(name), read_as_text(results, name)
    if table.series:
        cells = pd.DataFrame({column: rows[column].str.split(SEPARATOR) for column in table.series})
        uneven = cells.map(len).nunique(axis=1) > 1
        if uneven.any():
            raise _damaged(path, f"has different numbers of {', '.join(table.series)}", uneven.idxmax())
        rows = rows.assign(**cells).explode(list(table.series))
    columns = {}
    for column, kind in table.columns.items():
        columns[column], is_wrong = _typed(rows[column], kind)
        if is_wrong.any():
            first = int(is_wrong.to_numpy().argmax())
            what = f"has {rows[column].iloc[first]!r} in the column {column}, where {EXPECTED[kind]} is expected"
            raise _damaged(path, what, rows.index[first])
    return pd.DataFrame(columns).reset_index(drop=True)


def _typed(cells: pd.Series, kind: type) -> tuple[pd.Series, pd.Series]:
    """Values of the column's type, and which of the cells are none."""
    if kind is str:
        is_wrong = (
            ~cells.map({cell: _is_json(cell) for cell in cells.unique()}) if cells.name in OPTIONS else cells != cells
        )
        return cells.astype(str), is_wrong.astype(bool)
    if kind is bool:
        return cells == "True", ~cells.isin(["True", "False"])
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    if kind is float:
        is_missing = numbers.isna() & ~cells.isin(["", "nan"])
        return numbers, ~(numbers.abs() < math.inf) if cells.name in GROUPING else is_missing
    is_whole = (numbers % 1 == 0) & (numbers.abs() < 2**53)
    return numbers.where(is_whole, 0).astype(int), ~is_whole


def _is_json(cell: str) -> bool:
    try:
        return isinstance(json.loads(cell or "{}"), dict)
    except ValueError:
        return False


def read_as_text(results: ResultsFolder, name: str) -> pd.DataFrame:
    """Cells as they were given; the index is the line that each row begins in."""
    path, schema, columns = results.table_data(name), TABLES[name], list(TABLES[name].columns)
    if not path.exists():
        return pd.DataFrame(columns=columns, dtype=str)
    (_, header), *rows = _lines(path)
    _check_header(path, header, columns, schema.later)
    for line, cells in rows:
        if len(cells) != len(header):
            raise _damaged(path, f"has {len(cells)} cells instead of {len(header)}", line)
    table = pd.DataFrame([cells for _, cells in rows], [line for line, _ in rows], header, dtype=str)
    if not set(schema.later) <= set(header):
        table = table.reindex(columns=columns, fill_value="")
    text = [column for column, kind in schema.columns.items() if kind is str]
    table = table.assign(**{column: table[column].map(restored) for column in text})
    _check_names(path, table)
    return table


def _check_names(path: Path, rows: pd.DataFrame) -> None:
    """Of studies and line-ups, which name folders and files of the report."""
    for column, kind in {"study": "study", "line_up": "line-up"}.items() if "study" in rows else ():
        for line, name in rows[column].drop_duplicates().items() if column in rows else ():
            if not name and kind == "line-up":  # a row of no line-up names no file
                continue
            try:
                check_name(kind, name)
            except LincBenchError as error:
                raise _damaged(
                    path, f"has a wrong name in the column {column}: {str(error).rstrip('.')}", line
                ) from error


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of every line, with the number at which it begins; the header first."""
    if not path.is_file():
        raise _damaged(path, "is not a file")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _damaged(path, "is not text in UTF-8", content.count(b"\n", 0, error.start) + 1) from error
    if "\0" in text:
        raise _damaged(path, "has a NUL byte", text.count("\n", 0, text.index("\0")) + 1)
    if not text.strip():
        raise _damaged(path, "is empty, without even a header")
    if not text.endswith(("\n", "\r")):
        raise _damaged(path, "is cut off", text.count("\n") + 1)
    reader, line = csv.reader(StringIO(text, newline=""), strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise _damaged(path, f"is not CSV ({error})", line) from error


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str], later: Sequence[str]) -> None:
    missing = ", ".join(column for column in columns if column not in (*header, *later))
    unknown = ", ".join(column for column in header if column not in columns)
    twice = ", ".join(dict.fromkeys(column for column in header if header.count(column) > 1))
    if missing and len(header) == 1:
        raise _damaged(
            path, f"has no commas between the columns {', '.join(columns[:3])} …, as a spreadsheet saves it", 1
        )
    if twice:
        raise _damaged(path, f"has columns twice: {twice}", 1)
    if missing or unknown:
        what = f"lacks the columns {missing}" if missing else f"has columns that no table has: {unknown}"
        raise OtherColumnsError(
            f"{path} {what}. It was written by another version, or saved by another program. {ADVICE}"
        )


def _damaged(path: Path, what: str, line: object = None) -> LincBenchError:
    where = f"{path}, line {line}," if line is not None else path
    return LincBenchError(f"{where} {what}. Another program saved it, or it is damaged. {ADVICE}")


def merge_rows(
    results: ResultsFolder, name: str, rows: Sequence[Json], is_replaced: Callable[[pd.DataFrame], pd.Series]
) -> None:
    """Adds rows (one per value of a series) to a table, in the place of those that `is_replaced` picks."""
    table, path = TABLES[name], results.table_data(name)
    if not rows and not path.exists():
        return
    new = _as_text(table, rows)
    with locked(results.locks, "tables"):
        try:
            old = read_as_text(results, name)
        except LincBenchError as error:
            raise LincBenchError(f"{error} {_put_aside(path, table, new)}") from error
        merged = pd.concat([old[~is_replaced(old).to_numpy(bool)], new]).fillna("")
        order = [column for column in table.order if column in table.columns]
        write_text(path, _table_csv(table, merged.sort_values(order, kind="stable")))


def _put_aside(path: Path, table: Table, new: pd.DataFrame) -> str:
    """Rows that cannot be added, beside the table; and a copy of the table, whatever is done to it next."""
    rows = path.with_name(f"{path.name}.new-rows")
    write_text(rows, _table_csv(table, new))
    if not path.is_file():
        return f"The new rows are in {rows}."
    copy = path.with_name(f"{path.name}.backup-{file_digest(path)[:8]}")
    write_bytes(copy, path.read_bytes())
    return f"Nothing was changed; there is a copy in {copy}, and the new rows are in {rows}."


def _table_csv(table: Table, rows: pd.DataFrame) -> str:
    numbers = [column for column, kind in table.columns.items() if kind is not str]
    return as_csv(rows, numbers).replace("\0", "\N{SYMBOL FOR NULL}")


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
    written = cells.to_csv(index=False, lineterminator="\r\n")  # so that it quotes a lone carriage return, too
    return pd.read_csv(StringIO(written), dtype=str, keep_default_na=False)


def matches(columns: Sequence[str], new: Sequence[Json], old: pd.DataFrame) -> pd.Series:
    """Which old rows have a new one that is the same in these columns."""
    measured = {tuple(str(row[column]) for column in columns) for row in new}
    return pd.Series([tuple(row) in measured for row in old[list(columns)].itertuples(index=False)], index=old.index)


def join_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows that say only which run they are of, with what is known of it; once for each study that has it.

    Rows of a run that is not known are left out (`unknown_runs`).
    """
    key, about = _joined_on(rows)
    return rows.merge(runs[[*key, *about]], on=key) if about else rows


def unknown_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> list[str]:
    """Runs that rows name and the table of runs does not describe."""
    key, about = _joined_on(rows)
    if not about:
        return []
    known = pd.MultiIndex.from_frame(runs[key])
    return sorted(set(rows.loc[~pd.MultiIndex.from_frame(rows[key]).isin(known), "run"]))


def _joined_on(rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns that name a run, and those that the rows lack."""
    key = [column for column in OF_STUDY if column in rows]
    return key, [column for column in (*OF_STUDY, *ABOUT_RUNS) if column not in rows]

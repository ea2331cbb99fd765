"""The small CSV files of a results folder: rows are added in the place of older ones, and no other byte changes."""

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import pandas as pd

from benchmark.identity import Json
from benchmark.layout import ResultsFolder
from benchmark.storage import locked, write_text

# What is known of a run beside its name: in the table of runs, and in those that people read by themselves.
ABOUT_RUNS = (
    "dataset", "classes", "samples", "noise", "rate", "noise_seed", "training_seed", "backbone", "image_size", "epochs",
    "batch_size", "learning_rate", "weight_decay", "images", "recipe", "setting", "protocol", "true_rate",
)  # fmt: skip
OWN = ", by its own row"


def merge_rows(
    results: ResultsFolder,
    table: str,
    rows: list[Json],
    is_replaced: Callable[[pd.DataFrame], pd.Series],
    order: Sequence[str] = ("study", "run"),
) -> None:
    """Adds rows to a table of the results folder, in the place of those that `is_replaced` picks."""
    path = results.table_data(table)
    if not rows and not path.exists():
        return
    new = _as_text(pd.DataFrame(rows).to_csv(index=False)) if rows else pd.DataFrame()
    with locked(results.locks, "tables"):
        old = read_as_text(path) if path.exists() else new[:0]
        kept = old[~is_replaced(old)] if set(order) <= set(old) else old[:0]
        merged = pd.concat([kept, new]).fillna("") if len(new) else kept
        merged = merged.sort_values(list(order), kind="stable") if len(merged) else merged
        columns = [*new.columns, *(column for column in merged.columns if column not in new.columns)]
        write_text(path, merged[columns].to_csv(index=False, lineterminator="\n"))


def same_in(columns: Sequence[str], new: list[Json], old: pd.DataFrame) -> pd.Series:
    """Which old rows have a new one that is the same in these columns."""
    measured = {tuple(str(row[column]) for column in columns) for row in new}
    return pd.Series([tuple(row) in measured for row in old[list(columns)].itertuples(index=False)], index=old.index)


def read_as_text(path: Path) -> pd.DataFrame:
    """Numbers as they are written, so that merging changes no byte of a row it keeps."""
    return _as_text(path.read_text()) if path.exists() and path.stat().st_size else pd.DataFrame()


def _as_text(csv: str) -> pd.DataFrame:
    return pd.read_csv(StringIO(csv), dtype=str, keep_default_na=False)


def read_table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.exists() and path.stat().st_size else pd.DataFrame()


def with_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows that may say only which run they are of, with what the table of runs says of it."""
    key, about = ["study", "run"], [column for column in ABOUT_RUNS if column in runs]
    if rows.empty or not about:
        return rows
    joined = rows.merge(runs[[*key, *about]], on=key, how="left", suffixes=(OWN, ""))
    for column in (column for column in about if f"{column}{OWN}" in joined):
        own = joined.pop(f"{column}{OWN}")
        if joined[column].isna().any():  # a run that failed has no row in the table of runs
            joined[column] = joined[column].fillna(own).astype(own.dtype)
    return joined

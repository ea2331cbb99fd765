"""CSV text whose cells a spreadsheet shows and never runs: a formula gets an apostrophe in front.

The apostrophe is removed when we read the file; a text that has one itself gets a second. The review page's
`asCsv` (templates/review_decisions.js) does the same.
"""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd  # data sets are read without it

_SPECIAL = re.compile(r"[=+\-@\t\r\n']")  # the first character of a formula, or of what is guarded
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)
_QUOTED = re.compile(r'[",\r\n]')


def guarded(text: str) -> str:
    return f"'{text}" if _SPECIAL.match(text) and not _NUMBER.fullmatch(text) else text


def restored(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _SPECIAL.match(cell, 1) else cell


def as_csv(table: "pd.DataFrame", numbers: Collection[str] = (), floats: str = "") -> str:
    """Columns of `numbers` are text already, and stay as they are; other floats are formatted like `.6g`."""
    columns = [
        [_cell(value, floats, column not in numbers) for value in table.iloc[:, at].tolist()]
        for at, column in enumerate(table.columns)
    ]
    header = [_quoted(str(column)) for column in table.columns]
    return "".join(",".join(row) + "\n" for row in (header, *zip(*columns, strict=True)))


def _cell(value: object, floats: str, is_text: bool) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return _quoted(guarded(value) if is_text else value)
    return format(value, floats) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    """As RFC 4180 says; `csv.writer` leaves a lone carriage return without quotes."""
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text

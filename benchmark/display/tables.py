"""Formats tables: for the terminal, as Markdown, as LaTeX; one rule for cells and for the columns that hold numbers."""

import math
import re
from dataclasses import dataclass, field

import pandas as pd
from rich.table import Table
from rich.text import Text

MISSING = "–"
# 0.9936 ± 0.0018, −2.1 %, 5.4 ms (3 × plain), 12,345 [12,000, 13,000]; templates/page.js reads the same number from it.
NUMBER = re.compile(
    r"[<>≤≥≈~]?\s*[+−-]?\d[\d,\u2009\u202f]*(\.\d+)?(e[+-]?\d+)?\s?(%|points|ms|s|×|[KMG]i?B)?(\s*[±\[(].*)?",
    re.IGNORECASE,
)
ARXIV = re.compile(r"\barXiv (\d{4}\.\d{5})\b")
Tables = list[tuple[str, pd.DataFrame]]


@dataclass(frozen=True)
class Group:
    """Tables of one kind, each with its title: a Markdown file, and a section of the page."""

    title: str
    tables: Tables
    notes: list[str] = field(default_factory=list)
    for_print: bool = False  # a paper would print them: they become a LaTeX file too


def titled(title: str, table: pd.DataFrame) -> Tables:
    """The one table of a group; none if it has no rows."""
    return [] if table.empty else [(title, table)]


def mean_and_spread(values: pd.Series, digits: int = 4, with_interval: bool = True) -> str:
    """The mean ± the standard deviation; with five values or more, also the 95 % interval of the mean."""
    known = values.dropna()
    if known.empty:
        return MISSING
    mean, spread = known.mean(), known.std(ddof=1)
    text = f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if len(known) > 1 else "")
    if len(known) < 5 or not with_interval:
        return text
    from scipy.special import stdtrit  # takes long to import, and few tables need it

    reach = stdtrit(len(known) - 1, 0.975) * spread / len(known) ** 0.5
    return f"{text} [{mean - reach:.{digits}f}, {mean + reach:.{digits}f}]"


def in_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Every value as text: floats of a column with the same decimals, a dash for what is missing."""
    columns = [_cells(table.iloc[:, at].tolist()) for at in range(table.shape[1])]
    return pd.DataFrame(dict(enumerate(columns)), dtype=str).set_axis(table.columns.astype(str), axis=1)


def _cells(values: list[object]) -> list[str]:
    """Four significant digits of the largest float."""
    fractions = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    is_whole = all(value.is_integer() for value in fractions)
    decimals = 0 if is_whole else min(max(3 - math.floor(math.log10(max(fractions))), 0), 6)
    return [_cell(value, decimals) for value in values]


def _cell(value: object, decimals: int) -> str:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return MISSING
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def are_numbers(cells: pd.DataFrame) -> list[bool]:
    """For each column of a table `in_cells`, whether all that is known in it are numbers."""
    return [_is_numeric(cells.iloc[:, at].tolist()) for at in range(cells.shape[1])]


def _is_numeric(column: list[str]) -> bool:
    known = [cell for cell in column if cell not in ("", MISSING)]
    return bool(known) and all(NUMBER.fullmatch(cell) for cell in known)


def for_terminal(title: str, table: pd.DataFrame) -> Table:
    """Text as it is: rich would read `[bold]` and `:bug:` in a string."""
    drawn, cells = Table(title=Text(title, "bold"), title_justify="left"), in_cells(table)
    for column, is_number in zip(cells.columns, are_numbers(cells), strict=True):
        drawn.add_column(Text(column), justify="right" if is_number else "left", overflow="fold")
    for row in cells.itertuples(index=False):
        drawn.add_row(*map(Text, row))
    return drawn


def as_markdown(title: str, table: pd.DataFrame) -> str:
    """Cells are not padded: the files are half as large, and a browser shows them alike."""
    cells = in_cells(table).map(_in_markdown).rename(columns=_in_markdown)
    rule = ["---:" if is_number else "---" for is_number in are_numbers(cells)]
    rows = [list(cells.columns), rule, *(row for row in cells.itertuples(index=False))]
    return f"**{title}**\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _in_markdown(cell: str) -> str:
    """A bar would end it, and a line break the table; papers are linked."""
    cell = " ".join(cell.splitlines()).replace("|", r"\|")
    return ARXIV.sub(r"[\g<0>](https://arxiv.org/abs/\1)", cell)


def as_latex(title: str, table: pd.DataFrame, label: str) -> str:
    """With booktabs rules; `title` becomes the caption."""
    cells = in_cells(table)
    columns = "".join("r" if is_number else "l" for is_number in are_numbers(cells))
    return (
        cells.map(escape_latex)
        .rename(columns=escape_latex)
        .to_latex(
            index=False,
            escape=False,
            column_format=columns,
            caption=escape_latex(title),
            label=f"tab:{label}",
            position="t",
        )
    )


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
        "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "~": r"\textasciitilde{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "^": r"\textasciicircum{}",
    }
)  # fmt: skip


def escape_latex(text: object) -> str:
    return str(text).translate(LATEX)

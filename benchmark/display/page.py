"""Writes the report page: one self-contained HTML file that opens offline, from tables and figures it is given."""

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmark.disk.files import write_text
from benchmark.errors import LincBenchError

TEMPLATES = Path(__file__).parent / "templates"
MISSING = "–"
ROWS_TO_SEARCH = 10  # a table with more rows has a search field, whether it has filters or not

# 0.9936 ± 0.0018, −2.1 %, 5.4 ms (3 × plain), 12,345 [12,000, 13,000]; templates/page.js reads the same number from it.
NUMBER = re.compile(
    r"[<>≤≥≈~]?\s*[+−-]?\d[\d,\u2009\u202f]*(\.\d+)?(e[+-]?\d+)?\s?(%|points|ms|s|×|[KMG]i?B)?(\s*[±\[(].*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PageTable:
    """A table whose first column names the rows; text stays as given, floats are rounded, missing cells a dash."""

    title: str
    frame: pd.DataFrame
    note: str = ""
    filterable: tuple[str, ...] = ()  # columns that offer their values in a list

    def __post_init__(self) -> None:
        if unknown := set(self.filterable) - set(map(str, self.frame.columns)):
            raise LincBenchError(f"table {self.title!r} cannot be filtered by {sorted(unknown)}: no such column")

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Each column's name, and whether it holds numbers."""
        rows = self.rows
        return [(str(name), _is_numeric([row[at] for row in rows])) for at, name in enumerate(self.frame.columns)]

    @property
    def rows(self) -> list[list[str]]:
        columns = [_cells(self.frame.iloc[:, at].tolist()) for at in range(self.frame.shape[1])]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def searchable(self) -> bool:
        return bool(self.filterable) or len(self.frame) > ROWS_TO_SEARCH


@dataclass(frozen=True)
class PageFigure:
    caption: str
    picture: bytes
    kind: str = "svg+xml"  # or "webp"

    @property
    def address(self) -> str:
        return f"data:image/{self.kind};base64," + base64.b64encode(self.picture).decode()


@dataclass(frozen=True)
class Section:
    """What an entry of the contents leads to; blank lines divide its text into paragraphs."""

    anchor: str
    title: str
    text: str = ""
    tables: tuple[PageTable, ...] = ()
    figures: tuple[PageFigure, ...] = ()
    part: str = ""  # of the page; sections of a part stand together in the contents

    @property
    def heading(self) -> str:
        return f"{self.part}: {self.title}" if self.part else self.title

    @property
    def paragraphs(self) -> list[str]:
        return [part.strip() for part in self.text.split("\n\n") if part.strip()]


@dataclass(frozen=True)
class Page:
    title: str
    summary_lines: tuple[str, ...]
    sections: tuple[Section, ...]

    def __post_init__(self) -> None:
        anchors = [section.anchor for section in self.sections]
        if wrong := [name for name in anchors if anchors.count(name) > 1 or not re.fullmatch(r"[a-z][a-z0-9-]*", name)]:
            raise LincBenchError(
                f"sections of a page need different anchors of small letters, digits and -, not {wrong}"
            )

    @property
    def parts(self) -> list[tuple[str, list[Section]]]:
        return [(part, list(sections)) for part, sections in groupby(self.sections, attrgetter("part"))]


def write_page(path: Path, page: Page) -> None:
    write_html(path, "page.html", ("page.css",), ("page.js",), {"page": page})


def write_html(
    path: Path, template: str, styles: tuple[str, ...], scripts: tuple[str, ...], content: Mapping[str, object]
) -> None:
    """A page with its styles and scripts inside it; no other script may run there.

    The same content gives the same bytes, always.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ("".join(map(_template, names)) for names in (styles, scripts))
    html = environment.get_template(template).render(
        content, style=Markup(style), script=Markup(script), script_hash=_content_hash(script)
    )
    write_text(path, html + "\n")


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _content_hash(script: str) -> str:
    """How the page's security policy names the one script that may run in it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _cells(values: list[object]) -> list[str]:
    """Numbers with a fraction share their decimals: four digits of the largest."""
    fractions = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    whole = all(value.is_integer() for value in fractions)
    decimals = 0 if whole else min(max(3 - math.floor(math.log10(max(fractions))), 0), 6)
    return [_cell(value, decimals) for value in values]


def _cell(value: object, decimals: int) -> str:
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return MISSING
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _is_numeric(cells: list[str]) -> bool:
    known = [cell for cell in cells if cell not in ("", MISSING)]
    return bool(known) and all(NUMBER.fullmatch(cell) for cell in known)

"""Writes the report page: one self-contained HTML file that opens offline, from tables and figures it is given."""

import base64
import hashlib
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
from benchmark.display.tables import are_numbers, in_cells
from benchmark.errors import LincBenchError

TEMPLATES = Path(__file__).parent / "templates"
ROWS_TO_SEARCH = 10  # a table with more rows has a search field, whether it has filters or not


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
        cells = in_cells(self.frame)
        return list(zip(cells.columns, are_numbers(cells), strict=True))

    @property
    def rows(self) -> list[list[str]]:
        return [list(row) for row in in_cells(self.frame).itertuples(index=False)]

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

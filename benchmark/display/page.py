"""Makes the page of details: every table, in one self-contained HTML file that opens offline."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmark.display.tables import are_numbers, in_cells

TEMPLATES = Path(__file__).parent / "templates"
ROWS_TO_SEARCH = 10  # a table with more rows has a search field, whether it has filters or not


@dataclass(frozen=True)
class PageTable:
    """A table whose first column names the rows; text stays as given, floats are rounded, missing cells a dash."""

    title: str
    frame: pd.DataFrame
    note: str = ""
    filterable: tuple[str, ...] = ()  # columns that offer their values in a list

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
class Section:
    """What an entry of the contents leads to."""

    anchor: str  # without spaces
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()


@dataclass(frozen=True)
class PagePart:
    """Sections that stand together in the contents."""

    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    title: str
    summary_lines: tuple[str, ...]
    parts: tuple[PagePart, ...]


def render_page(page: Page) -> str:
    return render_html("page.html", ("page.css",), ("sorting.js", "page.js"), page=page)


def render_html(
    template: str, styles: tuple[str, ...], scripts: tuple[str, ...], functions: str = "", **content: object
) -> str:
    """A page that contains its styles, scripts and JavaScript functions; no other script can run in it.

    Same content, same bytes.
    """
    style, script = ("".join((TEMPLATES / name).read_text("utf-8") for name in names) for names in (styles, scripts))
    script += functions
    # How the page's security policy names the one script that may run in it.
    script_hash = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {"style": Markup(style), "script": Markup(script), "script_hash": script_hash, **content}
    return _environment().get_template(template).render(values) + "\n"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""Makes the front page: the answer, a leaderboard with selectors, the paper's claims, and one figure per question."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from benchmark.display.page import PageTable, render_html
from benchmark.display.svg import inline


@dataclass(frozen=True)
class Selector:
    """A choice of the reader; its name stands in the page's address."""

    name: str
    label: str
    titles: Mapping[str, str]  # of its values, the default first


@dataclass(frozen=True)
class BoardDetector:
    """What the leaderboard says of a detector in every view."""

    title: str
    summary: str = ""
    paper: str = ""
    paper_link: str = ""
    file_link: str = ""
    trainings: str = ""
    added: float | None = None  # cost, as a share of one standard training

    @property
    def cost(self) -> str:
        return "" if self.added is None else f"{self.added:.1%}"


@dataclass(frozen=True)
class BoardRow:
    detector: str
    value: str
    ranked: str = ""  # empty if it was not measured in every run
    difference: float = 0.0  # from the pinned detector
    verdict: str = ""  # on that; empty if they were not compared
    is_best: bool = False  # for certain
    may_be_best: bool = False  # although another stands first

    @property
    def versus(self) -> str:
        return f"{self.difference:+.4f}, {self.verdict}" if self.verdict else ""

    @property
    def cells(self) -> list[str | bool]:
        return [self.detector, self.value, self.ranked, self.versus, self.is_best]


@dataclass(frozen=True)
class Board:
    """Views by address: the value of every selector."""

    selectors: tuple[Selector, ...]
    views: Mapping[tuple[str, ...], list[BoardRow]]
    over: Mapping[tuple[str, ...], str]  # the data sets of each view
    first: tuple[str, ...]
    detectors: Mapping[str, BoardDetector]
    note: str
    pinned: str  # the detector that stands first in every view

    @property
    def first_titles(self) -> list[str]:
        """What the first view shows."""
        return [self.over[self.first], *(next(iter(selector.titles.values())) for selector in self.selectors[1:])]

    @property
    def first_parts(self) -> list[list[BoardRow]]:
        """The pinned detector's row, if there is one, and the others."""
        pinned, others = (
            [row for row in self.views[self.first] if (row.detector == self.pinned) is is_pinned]
            for is_pinned in (True, False)
        )
        return [part for part in (pinned, others) if part]

    @property
    def has_pinned(self) -> bool:
        return len(self.first_parts) > 1

    @property
    def data(self) -> Markup:
        """For the script; no character of it can end its element."""
        views = {"|".join(address): [row.cells for row in rows] for address, rows in self.views.items()}
        detectors = {name: vars(detector) | {"cost": detector.cost} for name, detector in self.detectors.items()}
        over = {"|".join(address): datasets for address, datasets in self.over.items()}
        known = {"views": views, "over": over, "detectors": detectors, "pinned": self.pinned}
        text = json.dumps(known, separators=(",", ":"))
        return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


@dataclass(frozen=True)
class Claims:
    """What became of the paper's numbers: a bar, and the table behind it."""

    sentence: str
    counts: Mapping[str, int]  # by verdict
    table: PageTable

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class PageFigure:
    name: str  # of letters, digits and dashes: no other figure of the page has it
    caption: str
    svg: str
    follows_theme: bool = True  # otherwise it is drawn on white: its cells have colours that text stands on

    @property
    def inlined(self) -> Markup:
        return Markup(inline(self.svg, self.name, self.follows_theme))


@dataclass(frozen=True)
class Topic:
    """A question with its answer, and a figure for each setting that was measured."""

    anchor: str
    title: str
    sentence: str
    figures: Mapping[str, PageFigure]  # by what a selector calls them
    answers: tuple[str, ...] = ()  # each a question and its answer


@dataclass(frozen=True)
class FrontPage:
    question: str
    verdict: str
    answers: tuple[str, ...]
    origin: str  # when, and from which commit
    hero: PageFigure | None
    board: Board | None
    claims: Claims | None
    topics: tuple[Topic, ...]
    more: tuple[Topic, ...]  # closed until wanted
    links: Mapping[str, str]  # addresses by title: the page of details, and the tables as CSV
    about: str = ""  # what its words mean


def render_front_page(page: FrontPage) -> str:
    return render_html("front.html", ("page.css", "front.css"), ("sorting.js", "front.js"), page=page)

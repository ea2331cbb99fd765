"""What stands on the front page: the answer, the leaderboard, the paper's claims, and figures by question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from benchmark.disk import ResultsFolder
from benchmark.display import Group
from benchmark.display.front_page import Board, Claims, FrontPage, PageFigure, Topic, render_front_page
from benchmark.display.page import PageTable
from benchmark.paper.headlines import HURTS, MORE_ACCURATE, STOPPING_EARLY, TO_CORRECT
from benchmark.paper.verdicts import VERDICTS, WORDS, in_a_sentence
from benchmark.reference import DETECTOR
from benchmark.report.parts import Part, Tables

if TYPE_CHECKING:
    from benchmark.display.canvas import Drawing

QUESTION = "Which label-noise detector finds mislabelled images best, and at what cost?"
ABOUT = (
    f"{DETECTOR} is the method under test: it learns one trust value per image while a classifier trains. AUROC says "
    "how well a detector's scores separate wrong labels from right ones: 0.5 is chance, 1 is perfect."
)
HERO = "quality_against_cost"
# By kind of figure: where it stands, under which title, and the headlines that go with it, by their questions.
TOPICS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "accuracy_curves": ("accuracy", "Accuracy", (MORE_ACCURATE, HURTS, STOPPING_EARLY)),
    "trust_histograms": ("trust", "Trust and the mixture", (TO_CORRECT,)),
    "overhead_by_detector": ("cost", "Cost", ()),
    "audit_counts": ("audit", "Audit", ()),
}
MORE = {
    "auc_by_detector": "AUROC of every detector, run by run",
    "auc_averaged": "AUROC of scores averaged over several trainings",
    "every_two": "Every two detectors compared",
    "auc_by_epochs": "AUROC by the number of epochs read",
    "auc_by_rate": "AUROC by noise rate",
    "by_noise_kind": "AUROC by kind of noise",
    "roc_curves": "ROC curves",
    "gain_heat_map": f"What {DETECTOR} adds to accuracy, by data set and noise rate",
    "variants": f"What each change of {DETECTOR} does",
    "first_batches": "Trust in the first batches",
    "data_map": "Data map of one run",
    "agreement": "How far detectors agree",
    "overhead_growth": "How costs grow with the data",
    "overview": f"{DETECTOR} in one picture",
}
CSV_FILES = {
    "metrics": "AUROC and other measures of every detector in every run",
    "accuracy": "accuracy of every run",
    "runs": "settings, versions and commit of every run",
    "overhead": "what each detector costs",
    "audit_counts": "trials of the audit",
}


class PaperPart(Part):
    """What all studies say about the paper."""

    name, title = "paper", "All studies"

    def __init__(self, rows: Tables, link: str = ""):
        super().__init__(rows)
        self._link = link  # to the project, from the page

    @cached_property
    def board(self) -> Board | None:
        from benchmark.paper.board import board

        return board(self.rows, self._link)

    def make_groups(self) -> dict[str, Group]:
        from benchmark.paper.tables import paper_groups

        return paper_groups(self.rows, self.board)

    def drawings(self) -> "Iterator[Drawing]":
        from benchmark.paper.diagram import OVERVIEW

        yield OVERVIEW


@dataclass(frozen=True)
class Drawn:
    """A figure that a part of the report has."""

    part: str
    kind: str
    name: str
    caption: str
    svg: str
    follows_theme: bool


def front_page(paper: PaperPart, drawn: Sequence[Drawn], results: ResultsFolder) -> str:
    from benchmark.paper.board import verdict

    groups, board = paper.groups, paper.board
    figures = {
        figure: PageFigure(f"figure-{number}", figure.caption, figure.svg, figure.follows_theme)
        for number, figure in enumerate(drawn)
    }
    hero = next((figures[figure] for figure in drawn if figure.kind == HERO), None)
    page = FrontPage(
        QUESTION,
        verdict(board) if board else "",
        tuple(groups["answer"].notes[1:]) if "answer" in groups else (),
        _origin(paper.rows["runs"]),
        hero,
        board,
        _claims(groups["verdicts"].tables[0][1]) if "verdicts" in groups else None,
        tuple(_topics(paper, figures)),
        tuple(_more(paper, figures)),
        {"Every table of every study, with settings and runs": results.details.name}
        | {f"{name}.csv: {what}": f"{name}.csv" for name, what in CSV_FILES.items() if len(paper.rows[name])},
        ABOUT,
    )
    return render_front_page(page)


def _origin(runs: pd.DataFrame) -> str:
    def all_of(column: str) -> str:
        return ", ".join(sorted(filter(None, runs[column].unique())))

    dates = sorted(filter(None, runs["date"].unique()))
    when = f", the last on {dates[-1]}" if dates else ""
    count = runs["run"].nunique()
    return (
        f"From {count:,} training runs{when}, with the code of commit {all_of('commit')} and torch {all_of('torch')}."
    )


def _claims(judged: pd.DataFrame) -> Claims:
    counts = judged["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    return Claims(
        in_a_sentence(judged),
        {(WORDS if count > 1 else {}).get(str(word), str(word)): int(count) for word, count in counts.items()},
        PageTable("The paper's numbers and ours", judged),
    )


def _topics(paper: PaperPart, figures: dict[Drawn, PageFigure]) -> Iterator[Topic]:
    said = paper.groups["headlines"].notes if "headlines" in paper.groups else []
    for kind, (anchor, title, questions) in TOPICS.items():
        own = {figure: shown for figure, shown in figures.items() if figure.kind == kind}
        titles = [f"{figure.part}{figure.name.removeprefix(kind).replace('_', ' ')}" for figure in own]
        answers = [note for note in said if note.startswith(questions)]
        if own:
            sentence = _costs(paper.board) if anchor == "cost" else ""
            yield Topic(anchor, title, sentence, dict(zip(titles, own.values(), strict=True)), tuple(answers))


def _costs(board: Board | None) -> str:
    detectors = board.detectors if board else {}
    paid = {name: detector.added for name, detector in detectors.items() if detector.added is not None}
    if DETECTOR not in paid:
        return ""
    cheap = sum(cost < 0.01 for cost in paid.values())
    return (
        f"Used alone, {DETECTOR} adds {paid[DETECTOR]:.1%} to one standard training on cached features; {cheap} of "
        f"{len(paid)} detectors that were profiled add less than 1 %."
    )


def _more(paper: PaperPart, figures: dict[Drawn, PageFigure]) -> Iterator[Topic]:
    """Of each kind those of the first part that has it, which is named if it is a study."""
    for kind, title in MORE.items():
        own = {figure: shown for figure, shown in figures.items() if figure.kind == kind}
        first = next(iter(own)).part if own else ""
        shown = {figure.name: page for figure, page in own.items() if figure.part == first}
        if shown:
            yield Topic(kind, title, first if first in {*paper.rows["runs"]["study"]} else "", shown)

"""Makes tables, figures, the page and README blocks from the CSV tables, and again only if something changed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.text import Text

from benchmark.disk import STUDY_TABLES, TABLES, Manifest, Output, ResultsFolder, code_digest, locked
from benchmark.disk.schema import OF_ENTRY
from benchmark.disk.tables import join_runs, read_table, unknown_runs
from benchmark.display.page import Page, PagePart, PageTable, Section, render_page
from benchmark.display.tables import as_latex, as_markdown, for_terminal
from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import digest_of, file_digest
from benchmark.report import readme
from benchmark.report.front import Drawn, PaperPart, front_page
from benchmark.report.parts import AuditPart, CostPart, Part, StudyPart
from benchmark.runs import DEMO, STUDIES

SHARED_CODE = (
    *("wording.py", "reference.py", "disk/schema.py", "disk/tables.py"),
    *("statistics/comparisons.py", "statistics/hierarchical.py", "statistics/bootstrap.py"),
)
DRAWING_CODE = (
    *SHARED_CODE,
    *("display/canvas.py", "display/svg.py", "drawings/*.py"),
    *("overhead/figures.py", "overhead/tables.py", "trials/figures.py", "paper/diagram.py", "paper/numbers.py"),
)
DRAWING_LIBRARIES = ("matplotlib", "seaborn", "pandas", "numpy", "pillow")
REPORT_CODE = (
    *SHARED_CODE,
    *("display/*.py", "display/templates/*", "drawings/*.py", "report/*.py", "paper/*.py", "overhead/*.py"),
    *("audit/*.py", "trials/*.py", "counting/*.py", "runs/studies.py", "../detectors/*.py"),
)
REPORT_LIBRARIES = (*DRAWING_LIBRARIES, "scipy", "jinja2", "medmnist")
AVERAGED = "averaged"  # the rows of the table of metrics whose scores are averaged over several trainings
JOINED = [table.name for table in STUDY_TABLES if table.name != "runs"]


def make_report(
    results: ResultsFolder,
    show: str | None,
    console: Console,
    runs: Collection[str] | None = None,
    is_verbose: bool = False,
) -> None:
    """Of everything; the terminal shows one part, or the first study: its main table, or all.

    Of a study's runs it shows all, or those named.
    """
    tables = {name: file_digest(path) for name in TABLES if (path := results.table_data(name)).is_file()}

    def say(text: str) -> None:
        console.print(Text(text), soft_wrap=True)

    rows = Rows(partial(read_rows, results), say)  # after the digests: what changes from now on is noticed next time
    studies = _in_order(set(rows["accuracy"]["study"]))
    paper = PaperPart(rows, "../" if results.is_committed else "")
    parts = [
        paper,
        *(StudyPart(rows.of_study(study), study) for study in studies),
        CostPart(rows),
        AuditPart(rows),
    ]
    shown = [part for part in parts if part.name == show or (show is None and part.name in studies)]
    if not shown and (
        show is not None or all(rows[name].empty for name in ("overhead", "overhead_growth", "audit_counts"))
    ):
        raise _nothing_to_show(results, show, studies)
    for part in [StudyPart(rows.of_study(show, runs), show)] if show and runs else shown:
        if is_verbose:
            _show_all(part, console, say)
        elif part.name == shown[0].name:
            _show_compact(part, console, say)
    with locked(results.locks, "report"):
        manifest = Manifest(results)
        if not manifest.is_current(_inputs_digest(results, tables)):
            if results.is_committed:
                _fill_readmes(rows, parts)
            manifest.write(_make_outputs(results, manifest, paper, parts, _inputs_digest(results, tables)))
    for part in shown if is_verbose else shown[:1]:
        say(f"Tables: {results.tables(part.name)}{'' if is_verbose else ' (--verbose prints them)'}")
        say(f"Figures: {results.figures(part.name)}")
    if len(shown) > 1 and not is_verbose:
        say(f"Other studies: {', '.join(part.name for part in shown[1:])} (name one to see its table)")
    say(f"Everything on one page: {results.page}")


def _show_all(part: Part, console: Console, say: Callable[[str], None]) -> None:
    for group in part.shown():
        for title, table in group.tables:
            console.print(for_terminal(title, table.drop(columns=readme.WIDE, errors="ignore")))
        say("\n".join(group.notes))
    for note in part.compact().notes:
        say(note)


def _show_compact(part: Part, console: Console, say: Callable[[str], None]) -> None:
    group = part.compact()
    say(group.title)
    for _, table in group.tables:
        drawn = for_terminal("", table.drop(columns=readme.WIDE, errors="ignore"))
        drawn.title, drawn.box, drawn.show_edge = None, box.SIMPLE_HEAD, False
        console.print(drawn)
    for note in group.notes:
        say(note)


def read_rows(results: ResultsFolder, name: str) -> pd.DataFrame:
    """A table with scores of one training; `averaged` has the metrics of averaged scores, which are ranked apart.

    Rows of other tables that belong to averaged scores, as an older version wrote them, are left out.
    """
    rows = read_table(results, "metrics" if name == AVERAGED else name)
    if "runs_averaged" in rows:
        return rows[(rows["runs_averaged"] > 1) == (name == AVERAGED)]
    if "detector" in rows and "study" in rows:
        metrics, key = read_table(results, "metrics"), list(OF_ENTRY)
        trainings = metrics.groupby(key, as_index=False)["runs_averaged"].min()
        averaged = trainings[trainings["runs_averaged"] > 1]
        return rows[~pd.MultiIndex.from_frame(rows[key]).isin(pd.MultiIndex.from_frame(averaged[key]))]
    return rows


class Rows(dict[str, pd.DataFrame]):
    """The CSV tables by name, each read when it is first asked for."""

    def __init__(self, read: Callable[[str], pd.DataFrame], say: Callable[[str], None] = lambda text: None):
        self._read, self._say = read, say

    def __missing__(self, name: str) -> pd.DataFrame:
        """Rows that name their run only are joined with what is known of it."""
        rows = self[name] = self._read(name)
        if name in JOINED:
            self[name] = join_runs(rows, self["runs"])
            if unknown := unknown_runs(rows, self["runs"]):
                self._say(
                    f"note: {name}.csv has rows of {len(unknown)} runs that runs.csv does not describe, as of "
                    f"{unknown[0]}. They are left out. Restore runs.csv, or run their study again."
                )
        return self[name]

    def of_study(self, study: str, runs: Collection[str] | None = None) -> "Rows":
        """Of all its runs, or of those that are named; of its data sets, where rows are of no run."""

        def pick(name: str) -> pd.DataFrame:
            rows = self[name]
            if "run" not in rows:
                return rows[rows["dataset"].isin(own["runs"]["dataset"])]
            return rows[(rows["study"] == study) & (rows["run"].isin(runs) if runs else True)]

        own = Rows(pick)
        return own


def _in_order(studies: Collection[str]) -> list[str]:
    """Ours in their order, of which the demo is the last, then others by name."""
    known = {study.name: number for number, study in enumerate(STUDIES)} | {DEMO.name: len(STUDIES)}
    return sorted(studies, key=lambda name: (known.get(name, len(STUDIES) + 1), name))


def _nothing_to_show(results: ResultsFolder, study: str | None, studies: Sequence[str]) -> LincBenchError:
    known = [*studies, *(known.name for known in STUDIES)]
    if study is not None and study not in known:
        return unknown_name("study", study, known)
    others = f" (but of {', '.join(studies)})" if studies else ""
    return LincBenchError(
        f"{results.root} has no results of {study or 'any study'} yet{others}. "
        f"Make them with: linc-bench run {study or 'demo'}"
    )


def _inputs_digest(results: ResultsFolder, tables: Mapping[str, str]) -> str:
    """Of all that the report depends on."""
    readmes = [readme.blocks(), readme.pictures()] if results.is_committed else []
    return digest_of([tables, readmes, code_digest(*REPORT_CODE, libraries=REPORT_LIBRARIES)])


def _fill_readmes(rows: Rows, parts: Sequence[Part]) -> None:
    texts = readme.suite_blocks(rows["speed"], rows["baseline"])
    part_named = {part.name: part for part in parts}
    for block, _ in readme.blocks():
        name, _, kind = block.partition(", ")
        if name in part_named and part_named[name].groups:
            texts[block] = part_named[name].readme_block(kind)
    readme.fill(texts)


def _make_outputs(
    results: ResultsFolder, manifest: Manifest, paper: PaperPart, parts: Sequence[Part], made_from: str
) -> dict[str, Output]:
    """Tables and pages anew; figures that are current as they are."""
    code = code_digest(*DRAWING_CODE, libraries=DRAWING_LIBRARIES)
    pictures = readme.pictures() if results.is_committed else []
    outputs, page_parts = {}, []
    figures: list[Drawn] = []
    for part in parts:
        outputs[f"tables/{part.name}"] = Output(made_from, _table_files(part))
        for drawing in part.drawings():
            if results.is_committed and part.name == DEMO.name and drawing.name in {figure.name for figure in figures}:
                continue  # shown by a study of medical images; whoever runs the demo has its figures
            name = f"figures/{part.name}/{drawing.name}"
            drawn_from = digest_of([drawing.digest(), code, name in pictures])
            output = manifest.current(name, drawn_from) or Output(drawn_from, drawing.render(name in pictures))
            outputs[name] = output
            for file in output.files:
                if file.endswith(".svg"):
                    about = part.name, drawing.kind, drawing.name, drawing.caption
                    figures.append(Drawn(*about, output.files[file].decode(), drawing.follows_theme))
        page_parts.append(PagePart(part.title, _sections(part)))
    summaries = tuple(filter(None, (part.summary() for part in parts)))
    details = Page("LiNC-Bench: every table", summaries, tuple(part for part in page_parts if part.sections))
    pages = {
        results.page.name: front_page(paper, figures, results).encode(),
        results.details.name: render_page(details).encode(),
    }
    return outputs | {"page": Output(made_from, pages)}


def _table_files(part: Part) -> dict[str, bytes]:
    files = {}
    for kind, group in part.groups.items():
        text = [*(as_markdown(title, table) for title, table in group.tables), *(f"{note}\n" for note in group.notes)]
        files[f"{kind}.md"] = "\n".join(text).encode()
        if group.for_print:
            labelled = enumerate(group.tables)
            latex = [as_latex(title, table, f"{part.name}-{kind}-{at}") for at, (title, table) in labelled]
            files[f"{kind}.tex"] = "\n".join(latex).encode()
    return files


def _sections(part: Part) -> tuple[Section, ...]:
    def section(name: str, title: str, **content: Any) -> Section:
        return Section(f"{part.name}/{name}", title, **content)  # neither has a slash: no two are the same

    sections = []
    for name, group in part.groups.items():
        tables = tuple(PageTable(title, table) for title, table in group.tables)
        sections.append(section(name, group.title, paragraphs=tuple(group.notes), tables=tables))
    if runs := part.runs():
        sections.append(section("runs", "Runs and their settings", tables=(runs,)))
    return tuple(sections)

"""Makes tables, figures and the page from the committed files alone; works in a clone without a single record."""

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image
from rich.console import Console

from benchmark.audit.trial_tables import trial_groups
from benchmark.disk.files import write_json, write_text
from benchmark.disk.results_folder import DEFAULT_RESULTS, ResultsFolder
from benchmark.disk.schema import STUDY_TABLES
from benchmark.disk.tables import join_runs, read_table
from benchmark.display.canvas import save
from benchmark.display.page import Page, PageFigure, PageTable, Section, write_page
from benchmark.display.tables import Group, as_latex, as_markdown, for_terminal
from benchmark.errors import LincBenchError, unknown_name
from benchmark.overhead.figures import draw_overhead
from benchmark.overhead.tables import COST_NOTES, overhead_groups
from benchmark.paper import diagram
from benchmark.paper.groups import paper_groups, study_paper_groups
from benchmark.paper.numbers import DETECTION
from benchmark.report.figures import draw_all
from benchmark.report.study_tables import scoring_table, speed_table, study_groups
from benchmark.runs.studies import ORIGINAL, STUDIES
from benchmark.training import TrainingSettings
from benchmark.wording import dataset_title, network_title

READMES = (Path("README.md"), DEFAULT_RESULTS / "README.md")
CAPTIONS = "captions.json"
SHOWN = ("auc", "accuracy")  # in the terminal and the README; the rest is for files and the page
SHOWN_OF_SEVERAL = ("summary", "accuracy-summary")  # of a study with several settings
OVERHEAD = "overhead"  # the folder of what `profile` measured, beside those of studies
AUDITS = "audit"  # that of what `try-audit` found
PAPER = "paper"  # the folder of what all studies say of the paper
ALL_STUDIES, COSTS, AUDITING = "All studies", "Costs", "Audits"  # parts of the page, beside one per study
LARGE_DRAWING = 40_000  # bytes
COLOURS = 64  # of a large drawing on the page, where nobody sees more
WIDE = [
    *("AUPRC of chance", "precision at the true rate", "recall in the first 5 %", "recall in the first 20 %", "ties"),
    *("while scoring", "slower steps", "outside"),
]
CHANGING = "scoring seconds"  # differs from run to run, and would change a committed file each time


def make_report(
    results: ResultsFolder, study: str | None, console: Console, runs: Collection[str] | None = None
) -> None:
    """For one study, or for each that has rows; of a study's runs all, or only those that are named."""
    studies = _studies(results)
    if study is not None and study not in studies and study not in {known.name for known in STUDIES}:
        raise unknown_name("study", study, [*studies, *(known.name for known in STUDIES)])
    if study is None and not studies and (_overhead_groups(results) or _trial_groups(results)):
        report_overhead(results, console)
        _report_trials(results)
        return
    if not studies or (study is not None and study not in studies):
        others = f" (but of {', '.join(studies)})" if studies else ""
        raise LincBenchError(
            f"{results.root} has no results of {study or 'any study'} yet{others}. "
            f"Make them with: linc-bench run {study or 'demo'}"
        )
    for name in studies if study is None else [study]:
        _report_study(results, name, console, runs)
    speed = read_table(results, "speed")
    if results.is_default and not speed.empty:
        _fill_readme("speed", as_markdown("Measured by `make bench` on two cores", speed_table(speed)))
    baseline = read_table(results, "baseline")
    if results.is_default and not baseline.empty:
        _fill_readme("scoring", as_markdown("Measured by `make bench`", scoring_table(baseline)))
    _report_overhead(results, console, is_shown=False)
    _report_trials(results)
    paper = _paper_groups(results)
    _write_tables(results, PAPER, paper)
    if results.is_default:
        for name, group in paper.items():
            _fill_readme(f"{PAPER}, {name}", _readme_block([group]))
        if paper:
            _fill_readme(f"{PAPER}, headlines", _questions(paper["headlines"].notes))
        _fill_readme("detectors", as_markdown("What each detector computes", detectors_table()))
    _write_page(results, studies)
    console.print(f"Everything on one page: {results.page}", highlight=False, soft_wrap=True)


def _report_study(results: ResultsFolder, study: str, console: Console, runs: Collection[str] | None) -> None:
    tables = _rows_of(results, study, runs)
    groups = _groups(tables)
    shown = [groups[name] for name in _shown(groups) if name in groups]
    for group in shown:
        _show(group, console)
    _write_files(results, study, groups, draw_all(lambda name: tables[name], results.figures(study)), console)
    if results.is_default:
        _fill_readme(study, _readme_block(shown))


def _draw_overview(results: ResultsFolder) -> None:
    save(diagram.overview(), results.figures(PAPER), "overview")
    write_json(results.figures(PAPER) / CAPTIONS, {"overview": diagram.CAPTION})


def _shown(groups: dict[str, Group]) -> tuple[str, ...]:
    return SHOWN_OF_SEVERAL if any(name in groups for name in SHOWN_OF_SEVERAL) else SHOWN


def _show(group: Group, console: Console) -> None:
    for title, table in group.tables:
        console.print(for_terminal(title, table.drop(columns=WIDE, errors="ignore")))
    console.print("\n".join(group.notes), highlight=False, markup=False, soft_wrap=True)


def _write_files(
    results: ResultsFolder, name: str, groups: dict[str, Group], captions: dict[str, str], console: Console
) -> None:
    """Tables, and captions of the figures that were drawn; older figures go."""
    _write_tables(results, name, groups)
    for old in results.figures(name).glob("[!.]*.*"):  # what has a point before its name, another command is writing
        if old.stem not in (*captions, Path(CAPTIONS).stem):
            old.unlink(missing_ok=True)
    write_json(results.figures(name) / CAPTIONS, captions)
    console.print(
        f"Tables: {results.tables(name)}. Figures: {results.figures(name)} ({', '.join(captions)}).",
        highlight=False,
        soft_wrap=True,
    )


def _write_tables(results: ResultsFolder, name: str, groups: dict[str, Group]) -> None:
    """As Markdown and LaTeX."""
    for kind, group in groups.items():
        stable = [(title, table.drop(columns=CHANGING, errors="ignore")) for title, table in group.tables]
        parts = [*(as_markdown(title, table) for title, table in stable), *(f"{note}\n" for note in group.notes)]
        write_text(results.tables(name) / f"{kind}.md", "\n".join(parts))
        latex = [as_latex(title, table, f"{name}-{kind}-{at}") for at, (title, table) in enumerate(stable)]
        if group.for_print and latex:
            write_text(results.tables(name) / f"{kind}.tex", "\n".join(latex))


def _paper_groups(results: ResultsFolder) -> dict[str, Group]:
    return paper_groups({table.name: read_table(results, table.name) for table in STUDY_TABLES})


def report_trials(results: ResultsFolder, console: Console) -> None:
    """What `linc-bench try-audit` found."""
    for group in _trial_groups(results).values():
        _show(group, console)
    _report_trials(results)
    _write_page(results, _studies(results))


def _trial_groups(results: ResultsFolder) -> dict[str, Group]:
    return trial_groups(lambda name: read_table(results, name))


def _report_trials(results: ResultsFolder) -> None:
    groups = _trial_groups(results)
    _write_tables(results, AUDITS, groups)
    if results.is_default and groups:
        _fill_readme(AUDITS, _readme_block([group for name, group in groups.items() if name != "precision"]))


def report_overhead(results: ResultsFolder, console: Console) -> None:
    """What `linc-bench profile` measured; nothing if it did not."""
    _report_overhead(results, console, is_shown=True)
    _write_page(results, _studies(results))
    console.print(f"Everything on one page: {results.page}", highlight=False, soft_wrap=True)


def _report_overhead(results: ResultsFolder, console: Console, is_shown: bool) -> None:
    groups = _overhead_groups(results)
    if not groups:
        return
    if is_shown:
        for group in groups.values():
            _show(group, console)
    captions = draw_overhead(lambda name: read_table(results, name), results.figures(OVERHEAD))
    _write_files(results, OVERHEAD, groups, captions, console)
    if results.is_default and "cost" in groups:
        shown = [_first_line_up(groups["cost"]), *(groups[name] for name in ("terms",) if name in groups)]
        _fill_readme(OVERHEAD, _readme_block(shown))


def _overhead_groups(results: ResultsFolder) -> dict[str, Group]:
    return overhead_groups(lambda name: read_table(results, name))


def _first_line_up(group: Group) -> Group:
    """The README shows one line-up, without the columns that are checks."""
    first = group.tables[0][0].split(":")[0]
    tables = [(title, table) for title, table in group.tables if title.startswith(first)]
    return replace(group, tables=tables, notes=list(COST_NOTES))


def _studies(results: ResultsFolder) -> list[str]:
    """Ours in their order, then others by name; the demo last, since it is no study of medical images."""
    there = read_table(results, "accuracy")
    known = {study.name: number for number, study in enumerate(STUDIES)}
    names = sorted(there["study"].unique()) if not there.empty else []
    return sorted(names, key=lambda name: (name == "demo", known.get(name, len(known))))


def _rows_of(results: ResultsFolder, study: str, runs: Collection[str] | None = None) -> dict[str, pd.DataFrame]:
    """The study's rows of every committed table; of all its runs, or of those that are named."""

    known = read_table(results, "runs")
    of_runs = known.loc[known["study"] == study, "run"]

    def rows(table: str) -> pd.DataFrame:
        everything = read_table(results, table)
        of_study = everything["study"] == study if "study" in everything else everything["run"].isin(of_runs)
        return everything[of_study & (everything["run"].isin(runs) if runs else True)]

    of_study = {table.name: rows(table.name) for table in STUDY_TABLES}
    tables = {table: join_runs(some, of_study["runs"]) for table, some in of_study.items()}
    if tables["runs"].empty or "protocol" not in tables["metrics" if len(tables["metrics"]) else "runs"]:
        raise LincBenchError(
            f"The files in {results.root} were written by an older version of LiNC-Bench. Make them again with: "
            f"linc-bench run {study} (what is trained already is not trained again)."
        )
    return tables


def _groups(tables: dict[str, pd.DataFrame]) -> dict[str, Group]:
    """Every table there is data for, in the order in which a reader wants them."""
    return study_groups(tables) | study_paper_groups(tables)


def _write_page(results: ResultsFolder, studies: list[str]) -> None:
    """All studies on one page, from the committed files and the figures drawn from them."""
    _draw_overview(results)
    overview = _figure_section(results, PAPER, "LiNC in one picture", ALL_STUDIES)
    sections, summary = [*_page_sections(PAPER, _paper_groups(results), ALL_STUDIES), overview], []
    for study in studies:
        tables = _rows_of(results, study)
        runs = tables["runs"].drop(columns="study")
        summary.append(_summary(study, runs))
        sections += [*_page_sections(study, _groups(tables), study), _figure_section(results, study, "Figures", study)]
        with_what = (PageTable("Runs", runs, filterable=("dataset", "recipe")),)
        sections.append(Section(f"{study}-runs", "What was run, and with what", tables=with_what, part=study))
    overhead = _overhead_groups(results)
    if overhead:
        sections += [
            *_page_sections(OVERHEAD, overhead, COSTS),
            _figure_section(results, OVERHEAD, "Figures", COSTS),
        ]
    sections += _page_sections(AUDITS, _trial_groups(results), AUDITING)
    write_page(results.page, Page("LiNC-Bench", tuple(summary), tuple(sections)))


def _page_sections(about: str, groups: dict[str, Group], part: str) -> list[Section]:
    return [
        Section(f"{about}-{name}", group.title, "\n\n".join(group.notes), _page_tables(group), part=part)
        for name, group in groups.items()
    ]


def _figure_section(results: ResultsFolder, about: str, title: str, part: str) -> Section:
    return Section(f"{about}-figures", title, figures=_page_figures(results, about), part=part)


def _summary(study: str, runs: pd.DataFrame) -> str:
    """What was run, in a sentence or two."""

    def all_of(column: str, show: Callable[[Any], str] = str) -> str:
        return ", ".join(show(value) for value in sorted(runs[column].unique()))

    datasets, networks = all_of("dataset", dataset_title), all_of("backbone", network_title)
    return (
        f"{study}: {len(runs)} training runs ({all_of('recipe')}) on {datasets}; {all_of('noise')} noise at "
        f"{all_of('rate', lambda rate: f'{rate:.0%}')}; training seeds {all_of('training_seed')}; noise seeds "
        f"{all_of('noise_seed')}; {networks} at {all_of('image_size')} px; {all_of('epochs')} epochs. "
        f"Code {all_of('commit')}, torch {all_of('torch')}, timm {all_of('timm')}, Python {all_of('python')}."
    )


def _page_tables(group: Group) -> tuple[PageTable, ...]:
    return tuple(PageTable(title, table.drop(columns=CHANGING, errors="ignore")) for title, table in group.tables)


def _page_figures(results: ResultsFolder, study: str) -> tuple[PageFigure, ...]:
    folder = results.figures(study)
    captions = json.loads((folder / CAPTIONS).read_text()) if (folder / CAPTIONS).exists() else {}
    return tuple(_page_figure(folder / f"{name}.svg", caption) for name, caption in captions.items())


def _page_figure(drawing: Path, caption: str) -> PageFigure:
    """As pixels where the drawing is large: the page has many, and is to open at once."""
    if drawing.stat().st_size > LARGE_DRAWING:
        few = Image.open(drawing.with_suffix(".png")).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        smaller = BytesIO()  # by a third
        few.convert("RGB").save(smaller, format="webp", lossless=True, quality=100, method=6)
        return PageFigure(caption, smaller.getvalue(), "webp")
    return PageFigure(caption, drawing.read_bytes())


def _readme_block(groups: list[Group]) -> str:
    """Fewer columns than in the files, so that they fit on a page."""
    left_out = [CHANGING, *WIDE]
    blocks = []
    for group in groups:
        blocks += [as_markdown(title, table.drop(columns=left_out, errors="ignore")) for title, table in group.tables]
        blocks += [f"{note}\n" for note in group.notes]
    return "\n".join(blocks)


def _questions(answers: list[str]) -> str:
    """As a list, with the questions in bold."""
    parted = (answer.partition("?") if "?" in answer else answer.partition(":") for answer in answers)
    return "".join(f"- **{question}{mark}**{answer}\n" for question, mark, answer in parted)


def detectors_table() -> pd.DataFrame:
    """A line for each detector of the suite."""
    epochs = TrainingSettings().epochs
    return pd.DataFrame(
        {
            "detector": one.name,
            "what its score is": one.summary,
            f"epochs read, of {epochs}": one.epochs_used(epochs),
            "in the LiNC paper": "yes" if one.name in DETECTION else "no",
        }
        for one in ORIGINAL.detectors
    )


def _fill_readme(study: str, text: str) -> None:
    """Rewrites what stands between the markers for this study, in each README that has them."""
    begin, end = f"<!-- results of {study}: written by `linc-bench report` -->", f"<!-- end of {study} -->"
    for path in (path for path in READMES if path.exists()):
        readme = path.read_text()
        if begin in readme and end in readme:
            before, after = readme.split(begin)[0], readme.split(end)[1]
            filled = f"{before}{begin}\n{text}{end}{after}"
            if filled != readme:
                write_text(path, filled)

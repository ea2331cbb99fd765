"""Makes tables, figures, the page and README blocks from the CSV tables; what did not change is not made again."""

from collections.abc import Collection, Sequence
from functools import partial

from rich.console import Console

from benchmark.disk import Manifest, ResultsFolder, code_digest, locked
from benchmark.display.page import Page, PageFigure, PagePart, PageTable, Section, render_page
from benchmark.display.tables import as_latex, as_markdown, for_terminal
from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import digest_of
from benchmark.report import readme
from benchmark.report.loading import Rows, paper_rows, rows_digest
from benchmark.report.parts import AuditPart, CostPart, PaperPart, Part, StudyPart
from benchmark.runs import STUDIES

SHARED_CODE = ("wording.py", "reference.py", "disk/schema.py", "disk/tables.py", "statistics/comparisons.py")
DRAWING_CODE = (
    "display/canvas.py",
    "display/svg.py",
    "report/*figure*.py",
    "overhead/figures.py",
    "overhead/tables.py",
    "paper/diagram.py",
    "paper/numbers.py",
)
TABLE_CODE = (
    *("display/*.py", "display/templates/*", "report/*.py", "paper/*.py", "overhead/*.py", "audit/*.py"),
    *("runs/studies.py", "../detectors/*.py"),
)
TABLE_LIBRARIES = ("pandas", "scipy", "jinja2", "medmnist")


def make_report(
    results: ResultsFolder, study: str | None, console: Console, runs: Collection[str] | None = None
) -> None:
    """For one study, or for each that has rows; of a study's runs all, or only those that are named."""
    rows = Rows.read(results)
    studies = _in_order(rows.studies())
    _check_study(results, study, studies)
    parts = _all_parts(rows, studies, study, runs)
    wanted = [part for part in parts if not isinstance(part, StudyPart) or study in (None, part.name)]
    _report(results, console, rows, parts, wanted, [part for part in wanted if isinstance(part, StudyPart)])


def report_overhead(results: ResultsFolder, console: Console) -> None:
    """What `linc-bench profile` measured."""
    _report_only(CostPart, results, console)


def report_trials(results: ResultsFolder, console: Console) -> None:
    """What `linc-bench try-audit` found."""
    _report_only(AuditPart, results, console)


def _report_only(kind: type[Part], results: ResultsFolder, console: Console) -> None:
    rows = Rows.read(results)
    parts = _all_parts(rows, _in_order(rows.studies()))
    wanted = [part for part in parts if isinstance(part, kind)]
    _report(results, console, rows, parts, wanted, wanted)


def _report(
    results: ResultsFolder, console: Console, rows: Rows, parts: Sequence[Part], wanted: Sequence[Part],
    shown: Sequence[Part],
) -> None:  # fmt: skip
    for part in shown:
        for group in part.shown():
            for title, table in group.tables:
                console.print(for_terminal(title, table.drop(columns=readme.WIDE, errors="ignore")))
            console.print("\n".join(group.notes), highlight=False, markup=False, soft_wrap=True)
    with locked(results.locks, "report"):
        manifest, code = Manifest(results), code_digest(*TABLE_CODE, *SHARED_CODE, libraries=TABLE_LIBRARIES)
        for part in wanted:
            _write_tables(manifest, part, code)
            _draw_figures(results, manifest, part)
            if results.is_default:
                _fill_readme(manifest, part, code)
        if results.is_default:
            readme.fill_suite_blocks(manifest, rows["speed"], rows["baseline"])
        _write_page(results, manifest, parts, code)
        manifest.save()
    for part in shown:
        folders = f"Tables: {results.tables(part.name)}. Figures: {results.figures(part.name)}."
        console.print(folders, highlight=False, soft_wrap=True)
    console.print(f"Everything on one page: {results.page}", highlight=False, soft_wrap=True)


def _check_study(results: ResultsFolder, study: str | None, studies: list[str]) -> None:
    known = [*studies, *(known.name for known in STUDIES)]
    if study is not None and study not in known:
        raise unknown_name("study", study, known)
    if study not in (None, *studies) or not (studies or _has_other_rows(results)):
        others = f" (but of {', '.join(studies)})" if studies else ""
        raise LincBenchError(
            f"{results.root} has no results of {study or 'any study'} yet{others}. "
            f"Make them with: linc-bench run {study or 'demo'}"
        )


def _has_other_rows(results: ResultsFolder) -> bool:
    return any(results.table_data(name).exists() for name in ("overhead", "overhead_growth", "audit_counts"))


def _in_order(studies: Sequence[str]) -> list[str]:
    """Ours in their order, then others by name; the demo last, since it is no study of medical images."""
    known = {study.name: number for number, study in enumerate(STUDIES)}
    return sorted(studies, key=lambda name: (name == "demo", known.get(name, len(known))))


def _all_parts(
    rows: Rows, studies: Sequence[str], study: str | None = None, runs: Collection[str] | None = None
) -> list[Part]:
    """In the order of the page."""
    of_studies = [StudyPart(rows.of_study(name, runs if name == study else None), name) for name in studies]
    costs = CostPart(rows.only("overhead", "overhead_terms", "overhead_growth"))
    audits = AuditPart(rows.only("audit_counts", "audit_precision"))
    return [PaperPart(paper_rows(rows, [study.name for study in STUDIES])), *of_studies, costs, audits]


def _write_tables(manifest: Manifest, part: Part, code: str) -> None:
    output, made_from = f"tables/{part.name}", part.rows.digest + code
    if manifest.is_current(output, made_from):
        return
    files = {}
    for kind, group in part.groups.items():
        text = [*(as_markdown(title, table) for title, table in group.tables), *(f"{note}\n" for note in group.notes)]
        files[f"{kind}.md"] = "\n".join(text).encode()
        if group.for_print:
            labelled = enumerate(group.tables)
            latex = [as_latex(title, table, f"{part.name}-{kind}-{at}") for at, (title, table) in labelled]
            files[f"{kind}.tex"] = "\n".join(latex).encode()
    manifest.write(output, made_from, files)


def _draw_figures(results: ResultsFolder, manifest: Manifest, part: Part) -> None:
    """Captions are notes of the manifest, in the order of the figures."""
    code = code_digest(*DRAWING_CODE, *SHARED_CODE, libraries=("matplotlib", "seaborn", "pandas", "numpy", "pillow"))
    pictures = readme.pictures(part.name) if results.is_default else set()
    output, made_from = f"figures/{part.name}", digest_of([part.rows.digest, code, sorted(pictures)])
    names = manifest.note(output) or []
    if manifest.is_current(output, made_from) and all(manifest.is_intact(f"{output}/{name}") for name in names):
        return
    names = []
    for drawing in part.drawings():
        figure = f"{output}/{drawing.name}"
        has_pixels = drawing.name in pictures
        drawn_from = digest_of([rows_digest(*drawing.rows), drawing.caption, code, has_pixels])
        if not manifest.is_current(figure, drawn_from):
            manifest.write(figure, drawn_from, drawing.render(has_pixels), drawing.caption)
        names.append(drawing.name)
    manifest.keep_only(f"{output}/", [f"{output}/{name}" for name in names])
    manifest.write(output, made_from, {}, names)


def _fill_readme(manifest: Manifest, part: Part, code: str) -> None:
    for name in sorted(readme.block_names()):
        if name.partition(", ")[0] == part.name and part.groups:
            readme.fill_block(manifest, name, part.rows.digest + code, partial(part.readme_block, name))


def _write_page(results: ResultsFolder, manifest: Manifest, parts: Sequence[Part], code: str) -> None:
    """Parts that did not change are taken from the page as it is."""
    made_from = {part.name: digest_of([part.rows.digest, code, _figures(manifest, part)]) for part in parts}
    whole = digest_of(list(made_from.items()))  # the order of parts counts
    if manifest.is_current("page", whole):
        return
    old = results.page.read_text() if manifest.is_intact("page") else ""
    rendered, summaries = [], []
    for part in parts:
        output = f"page/{part.name}"
        if old and manifest.is_current(output, made_from[part.name]):
            page_part = PagePart.from_page(old, part.name, part.title, manifest.note(output)["contents"])
        else:
            page_part = PagePart.of(part.name, part.title, _sections(manifest, part))
            note = {"contents": page_part.contents, "summary": part.summary}
            manifest.write(output, made_from[part.name], {}, note)
        if page_part.contents:
            rendered.append(page_part)
            summaries.append(manifest.note(output)["summary"])
    manifest.keep_only("page/", [f"page/{part.name}" for part in parts])
    page = Page("LiNC-Bench", tuple(filter(None, summaries)), tuple(rendered))
    manifest.write("page", whole, {results.page.name: render_page(page).encode()})


def _figures(manifest: Manifest, part: Part) -> list[tuple[str, str]]:
    """Captions and drawings of the figures that the part has."""
    outputs = [f"figures/{part.name}/{name}" for name in manifest.note(f"figures/{part.name}") or ()]
    drawn = [(manifest.note(output), path) for output in outputs for path in manifest.files(output)]
    return [(caption, path.read_text()) for caption, path in drawn if path.suffix == ".svg" and path.exists()]


def _sections(manifest: Manifest, part: Part) -> list[Section]:
    sections = [
        Section(
            f"{part.name}-{name}",
            group.title,
            "\n\n".join(group.notes),
            tuple(PageTable(title, table) for title, table in group.tables),
        )
        for name, group in part.groups.items()
    ]
    if figures := tuple(PageFigure(caption, svg) for caption, svg in _figures(manifest, part)):
        sections.append(Section(f"{part.name}-figures", part.figures_title, figures=figures))
    return [*sections, *part.more_sections()]

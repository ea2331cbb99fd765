"""Fills the blocks of the READMEs that hold results: what is between two markers is rewritten."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from benchmark.disk import DEFAULT_RESULTS, Manifest, code_digest, write_text
from benchmark.display.tables import Group, as_markdown

READMES = (Path("README.md"), DEFAULT_RESULTS / "README.md")
MARKER = re.compile(r"<!-- results of ([^:]+): written by `linc-bench report` -->\n")
# Columns that would make a table too wide for a README or a terminal.
WIDE = [
    *("AUPRC of chance", "precision at the true rate", "recall in the first 5 %", "recall in the first 20 %", "ties"),
    *("while scoring", "slower steps", "outside"),
]


def block_names() -> set[str]:
    return {name for path in READMES if path.exists() for name in MARKER.findall(path.read_text())}


def pictures(part: str) -> set[str]:
    """The names of a part's figures that a README shows."""
    shown = re.compile(rf"figures/{re.escape(part)}/(\w[\w=.-]*)\.png")
    return {name for path in READMES if path.exists() for name in shown.findall(path.read_text())}


def fill_block(manifest: Manifest, name: str, made_from: str, make: Callable[[], str]) -> None:
    """Rewrites a block in each README that has it, unless it stands there already."""
    output = f"readme/{name}"
    if manifest.is_current(output, made_from) and all(
        _digest(block) == manifest.note(output) for block in _blocks(name)
    ):
        return
    text = make()
    begin, end = f"<!-- results of {name}: written by `linc-bench report` -->\n", f"<!-- end of {name} -->"
    for path in (path for path in READMES if path.exists()):
        readme = path.read_text()
        if begin in readme and end in readme:
            before, after = readme.split(begin)[0], readme.split(end)[1]
            if (filled := f"{before}{begin}{text}{end}{after}") != readme:
                write_text(path, filled)
    manifest.write(output, made_from, {}, _digest(text))


def _blocks(name: str) -> list[str]:
    pattern = re.compile(
        f"<!-- results of {re.escape(name)}: .*? -->\n(.*?)<!-- end of {re.escape(name)} -->", re.DOTALL
    )
    return [block for path in READMES if path.exists() for block in pattern.findall(path.read_text())]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_block(groups: Sequence[Group], left_out: Sequence[str]) -> str:
    """With fewer columns than the files have, so that tables fit on a page."""
    blocks = []
    for group in groups:
        narrow = ((title, table.drop(columns=[*WIDE, *left_out], errors="ignore")) for title, table in group.tables)
        blocks += [*(as_markdown(title, table) for title, table in narrow), *(f"{note}\n" for note in group.notes)]
    return "\n".join(blocks)


def as_questions(answers: Sequence[str]) -> str:
    """A list, with the questions in bold."""
    parts = (answer.partition("?") if "?" in answer else answer.partition(":") for answer in answers)
    return "".join(f"- **{question}{mark}**{answer}\n" for question, mark, answer in parts)


def detectors_table() -> pd.DataFrame:
    """A line for each detector of the suite."""
    from benchmark.paper.numbers import DETECTION
    from benchmark.runs import ORIGINAL
    from benchmark.training import TrainingSettings

    epochs = TrainingSettings().epochs
    return pd.DataFrame(
        {
            "detector": detector.name,
            "what its score is": detector.summary,
            f"epochs read, of {epochs}": detector.epochs_used(epochs),
            "in the LiNC paper": "yes" if detector.name in DETECTION else "no",
        }
        for detector in ORIGINAL.detectors
    )


def fill_suite_blocks(manifest: Manifest, speed: pd.DataFrame, baseline: pd.DataFrame) -> None:
    """What `make bench` measured, and what each detector computes."""
    from benchmark.report.loading import rows_digest
    from benchmark.report.study_tables import scoring_table, speed_table

    code = code_digest("report/*.py", "display/*.py", "runs/studies.py", "../detectors/*.py")
    blocks: dict[str, Callable[[], str]] = {
        "speed": lambda: as_markdown("Measured by `make bench` on two cores", speed_table(speed)),
        "scoring": lambda: as_markdown("Measured by `make bench`", scoring_table(baseline)),
        "detectors": lambda: as_markdown("What each detector computes", detectors_table()),
    }
    present = {"speed": not speed.empty, "scoring": not baseline.empty, "detectors": True}
    for name in blocks.keys() & block_names():
        if present[name]:
            fill_block(manifest, name, rows_digest(speed, baseline) + code, blocks[name])

"""Fills the blocks of the READMEs that hold results: what is between two markers is rewritten."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmark.disk import COMMITTED, write_text
from benchmark.display.tables import MISSING, Group, as_markdown

READMES = (
    *(Path("README.md"), COMMITTED / "README.md"),
    *(Path(folder, "README.md") for folder in ("detectors", "benchmark")),
)
BLOCK = re.compile(
    r"(<!-- results of ([^:]+): written by `linc-bench report` -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL
)
PICTURE = re.compile(r"(figures/[^/\s]+/\w[\w=.-]*)\.png")
# Columns that would make a table too wide for a README or a terminal.
WIDE = [
    *("AUPRC of chance", "precision at the true rate", "recall in the first 5 %", "recall in the first 20 %", "ties"),
    *("while scoring", "slower steps", "outside"),
]
CHANGING = "scoring seconds"  # differs from run to run, and would change a committed file each time


def blocks() -> list[tuple[str, str]]:
    """Names and contents."""
    return [(name, text) for path in _existing() for _, name, text, _ in BLOCK.findall(path.read_text("utf-8"))]


def pictures() -> list[str]:
    """The figures that a README shows, such as `figures/demo/roc_curves`."""
    return sorted({figure for path in _existing() for figure in PICTURE.findall(path.read_text("utf-8"))})


def fill(texts: Mapping[str, str]) -> None:
    """Rewrites each block whose text is given."""
    for path in _existing():
        readme = path.read_text("utf-8")
        filled = BLOCK.sub(lambda block: block[1] + texts.get(block[2], block[3]) + block[4], readme)
        if filled != readme:
            write_text(path, filled)


def _existing() -> list[Path]:
    return [path for path in READMES if path.exists()]


def as_block(groups: Sequence[Group]) -> str:
    """With fewer columns than the files have, so that tables fit on a page."""
    texts = []
    for group in groups:
        narrow = ((title, table.drop(columns=[*WIDE, CHANGING], errors="ignore")) for title, table in group.tables)
        texts += [as_markdown(title, table) for title, table in narrow]
        texts += [f"{note}\n" for note in group.notes] if group.tables else [_as_questions(group.notes)]
    return "\n".join(texts)


def _as_questions(answers: Sequence[str]) -> str:
    """A list, with the questions in bold."""
    parts = (answer.partition("?") if "?" in answer else answer.partition(":") for answer in answers)
    return "".join(f"- **{question}{mark}**{answer}\n" for question, mark, answer in parts)


def suite_blocks(speed: pd.DataFrame, baseline: pd.DataFrame) -> dict[str, str]:
    """What `make bench` measured, and what each detector computes."""
    texts = {
        "detectors": as_markdown("What each detector computes", detectors_table()),
        "detector list": detector_list(),
    }
    if not speed.empty:
        texts["speed"] = as_markdown("Measured by `make bench` on two cores", speed_table(speed))
    if not baseline.empty:
        texts["scoring"] = as_markdown("Measured by `make bench`", scoring_table(baseline))
    return texts


def detector_list() -> str:
    """A line for each, with a link to its file."""
    from benchmark.runs import ORIGINAL

    return "".join(
        f"- [{detector.name}]({type(detector).__module__.replace('.', '/')}.py): {detector.summary}\n"
        for detector in ORIGINAL.detectors
    )


def detectors_table() -> pd.DataFrame:
    from benchmark.paper.numbers import DETECTION
    from benchmark.runs import ORIGINAL
    from benchmark.training import TrainingSettings

    training = TrainingSettings()
    return pd.DataFrame(
        {
            "detector": detector.name,
            "what its score is": detector.summary,
            f"epochs read, of {training.epochs}": detector.epochs_used_in(training),
            "in the LiNC paper": "yes" if detector.name in DETECTION else "no",
        }
        for detector in ORIGINAL.detectors
    )


def speed_table(speed: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds per image: a row per measurement, a column per network."""
    compared = zip(speed["ratio"], speed["against"], strict=True)
    ratios = [f" ({ratio:.3g} × {name})" if name else "" for ratio, name in compared]
    cells = speed["milliseconds"].map("{:.3g} ms".format) + ratios
    table = speed.assign(cell=cells).pivot(index="what", columns="model", values="cell").fillna(MISSING)
    rows, columns = (
        speed.groupby(axis)["milliseconds"].max().sort_values(ascending=False).index for axis in ("what", "model")
    )
    return table.loc[rows, columns].reset_index().rename(columns={"what": "per image"})


def scoring_table(baseline: pd.DataFrame) -> pd.DataFrame:
    """Seconds per detector, the fastest first."""
    scoring = baseline[baseline["what"].str.startswith("scoring, ")].sort_values("milliseconds", kind="stable")
    names = scoring["what"].str.removeprefix("scoring, ")
    return pd.DataFrame({"detector": names, "seconds": (scoring["milliseconds"] / 1e3).map("{:.2g}".format)})

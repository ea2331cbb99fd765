"""What may be a name: studies and line-ups name folders and files, data sets and detectors are part of file names."""

import re

from benchmark.errors import LincBenchError

LONGEST = 100
NOT_STUDIES = ("audit", "overhead", "paper")  # other parts of a report, which have folders beside those of studies
_NAME = re.compile(rf"\w[\w.-]{{0,{LONGEST - 1}}}", re.ASCII)


def is_name(text: object) -> bool:
    """Whether it can be a folder's or file's name as it is, on any system."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def check_name(kind: str, name: object) -> None:
    if not is_name(name):
        raise LincBenchError(
            f"{name!r} cannot be the name of a {kind}: it would name a folder or a file. Use 1 to {LONGEST} letters "
            "(a–z, A–Z), digits, '.', '_' and '-', and begin with none of '.' and '-'."
        )
    if kind == "study" and name in NOT_STUDIES:
        raise LincBenchError(f"A study cannot be called {name!r}: a part of every report is. Choose another name.")


def check_title(kind: str, title: object) -> None:
    """Of what is named by people or by a file: any characters, since a slug of it is part of a file's name."""
    if not isinstance(title, str) or not 0 < len(title) <= LONGEST or "|" in title or not title.isprintable():
        raise LincBenchError(
            f"{title!r} cannot be the name of a {kind}: it is part of the names of files, and a cell of tables. "
            f"Rename it: 1 to {LONGEST} characters, without '|' and control characters."
        )

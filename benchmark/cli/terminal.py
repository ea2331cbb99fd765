"""What commands print: sentences and tables, in plain characters where a terminal has no others."""

import codecs
import io
import os
import select
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

PLAIN = {"–": "-", "−": "-", "—": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">=", "±": "+-", "·": "-", "ß": "ss"} | (
    dict.fromkeys("“”„", '"') | dict.fromkeys("‘’", "'")
)


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    return "".join(PLAIN.get(character) or _without_marks(character) or "?" for character in characters), error.end


def _without_marks(character: str) -> str:
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()


codecs.register_error("plain", _plain)


def prepare_streams() -> None:
    """A name may have characters that are not UTF-8, and a terminal may have ASCII only."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started the command
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def is_unread() -> bool:
    """Whether the reader of the output has gone, as `head` does; if so, what is left to write goes nowhere."""
    poll = select.poll()
    for handle in (1, 2):
        poll.register(handle, 0)
    unread = [handle for handle, event in poll.poll(0) if event & (select.POLLERR | select.POLLHUP)]
    for handle in unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
    return bool(unread)


# Imported where they are needed, since `--help` needs neither and they take long.
def terminal(stderr: bool = False) -> "Console":
    """As wide as the terminal; in a log file wide enough for a table."""
    from rich.console import Console

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)


def say(text: str, stderr: bool = False) -> None:
    from rich.text import Text

    terminal(stderr).print(Text(text), soft_wrap=True)


def print_table(title: str, rows: "pd.DataFrame | Sequence[tuple[str, ...]]", columns: list[str] | None = None) -> None:
    import pandas as pd

    from benchmark.display.tables import for_terminal

    terminal().print(for_terminal(title, pd.DataFrame(rows, columns=columns)))

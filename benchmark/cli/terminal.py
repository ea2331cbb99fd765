"""What commands print: sentences and tables."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.text import Text

from benchmark.display.tables import for_terminal


def terminal(stderr: bool = False) -> Console:
    """As wide as the terminal; in a log file wide enough for a table."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)


def say(text: str, stderr: bool = False) -> None:
    terminal(stderr).print(Text(text), soft_wrap=True)


def print_table(title: str, rows: pd.DataFrame | Sequence[tuple[str, ...]], columns: list[str] | None = None) -> None:
    terminal().print(for_terminal(title, pd.DataFrame(rows, columns=columns)))

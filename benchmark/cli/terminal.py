"""What commands print: sentences and tables."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def terminal(stderr: bool = False) -> Console:
    """As wide as the terminal; in a log file wide enough for a table."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)


def say(text: str, stderr: bool = False) -> None:
    terminal(stderr).print(text, highlight=False, markup=False, soft_wrap=True)


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    terminal().print(table)

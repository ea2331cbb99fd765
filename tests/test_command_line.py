"""The command line answers at once, and every command leads somewhere."""

import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmark.cli.command_line import command_line

HEAVY = {"torch", "timm", "medmnist", "pandas", "sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "cleanlab"}


def commands() -> Iterator[tuple[str, str]]:
    (subparsers,) = command_line()._subparsers._group_actions  # type: ignore[union-attr]
    for name, parser in subparsers.choices.items():  # type: ignore[union-attr]
        yield name, parser.get_default("command")


@pytest.mark.parametrize(("name", "function"), list(commands()))
def test_every_command_has_its_function(name: str, function: str) -> None:
    assert callable(pkgutil.resolve_name(f"benchmark.cli.{function}"))


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["list"]])
def test_help_and_list_import_nothing_heavy(arguments: list[str]) -> None:
    script = f"""
import sys
from benchmark.cli import main
try:
    code = main({arguments})
except SystemExit as stop:
    code = stop.code
print("imported:", sorted({HEAVY} & set(sys.modules)))
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("imported: []\n"), done.stdout[-200:]

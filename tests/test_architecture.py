"""The shape of the code: small rooms, small modules, small functions, and nothing that names a machine.

Which room may import which is held by the contracts in pyproject.toml; `make lint` checks them.
"""

import ast
import inspect
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.training.loop import train

ROOT = Path(__file__).parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("benchmark", "detectors")
    for path in sorted((ROOT / package).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}

MOST_MODULES_IN_A_ROOM = 10
MOST_LINES_IN_A_MODULE = 300
MOST_LINES_IN_A_FUNCTION = 50
MOST_IMPORTED_MODULES = 12

NAMES_LINC = {"benchmark.reference", "benchmark.paper.numbers"}  # and detectors/
LINC = re.compile(r"linc|linc[ -]\(.*|.*['\"]linc['\"].*", re.IGNORECASE | re.DOTALL)


def imported_modules(tree: ast.AST) -> set[str]:
    """The project's modules that a module imports, at its top or inside a function."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names & set(MODULES)


def too_large() -> Iterator[str]:
    for room in sorted((ROOT / "benchmark").iterdir()):
        modules = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MOST_MODULES_IN_A_ROOM:
            yield f"benchmark/{room.name}: {len(modules)} modules"
    for name, tree in TREES.items():
        lines = len(MODULES[name].read_text().splitlines())
        if lines > MOST_LINES_IN_A_MODULE:
            yield f"{name}: {lines} lines"
        imported = imported_modules(tree) if MODULES[name].name != "__init__.py" else ()  # there they are a list
        if len(imported) > MOST_IMPORTED_MODULES:
            yield f"{name}: imports {len(imported)} modules of the project"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= MOST_LINES_IN_A_FUNCTION:  # type: ignore[operator]
                yield f"{name}.{node.name}: {node.end_lineno - node.lineno + 1} lines"  # type: ignore[operator]


def test_rooms_modules_and_functions_are_small() -> None:
    assert not (offenders := list(too_large())), "\n".join(offenders)


def test_every_room_is_in_the_contract_of_layers() -> None:
    """The contract says nothing of a room that it does not list."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    listed = set(re.findall(r"[\w.]+", " ".join(layers)))
    assert listed == {"detectors"} | {name for name in MODULES if name.count(".") == 1 and name.startswith("benchmark")}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name: str) -> None:
    assert ast.get_docstring(TREES[name])


def test_the_loop_fits_on_a_screen() -> None:
    assert len(inspect.getsource(train).splitlines()) <= 55


def names_linc(node: ast.AST) -> bool:
    """A string that is LiNC's name or compares with it, or a comparison with one of its classes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return LINC.fullmatch(node.value) is not None
    is_check = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("is")
    classes = ast.walk(node) if is_check or isinstance(node, ast.Compare) else ()
    return any(isinstance(inner, ast.Name) and inner.id.startswith("LiNC") for inner in classes)


def test_no_module_but_the_reference_names_linc() -> None:
    """What is special about LiNC is said as data in benchmark/reference.py; nothing else tests for its name."""
    offenders = [
        f"{name}:{node.lineno}"  # type: ignore[attr-defined]
        for name, tree in TREES.items()
        if name not in NAMES_LINC and not name.startswith("detectors")
        for node in ast.walk(tree)
        if names_linc(node)
    ]
    assert not offenders, "\n".join(offenders)


def test_nothing_but_ci_names_the_developers_machine() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not files:
        pytest.skip("not a git checkout")
    for name in files:
        if name in (".ci/run", "tests/test_architecture.py") or name.endswith(".png"):
            continue
        text = (ROOT / name).read_text()
        assert "../shared" not in text, name
        assert str(ROOT) not in text, name

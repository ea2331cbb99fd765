"""The shape of the code: imports point one way, and nothing names a machine."""

import ast
import inspect
import subprocess
from pathlib import Path

import pytest

from benchmark.training.loop import train

ROOT = Path(__file__).parent.parent
CONTRACTS = {
    f"benchmark.{module}"
    for module in (
        *("record", "recorders", "gradient_recorders", "training", "history", "data", "errors", "identity", "mixture"),
        *("held_out", "error_count"),
    )
}
KNOW_DETECTORS = {
    *("plan", "scores", "evaluation", "figure_data", "studies", "own_detectors", "cli"),
    *("overhead", "profiling", "growth", "overrides", "verify", "suspicion"),
}
MODULES = sorted([*(ROOT / "benchmark").glob("*.py"), *(ROOT / "detectors").glob("*.py")])


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_detectors_see_only_the_contracts() -> None:
    for path in (ROOT / "detectors").glob("*.py"):
        for name in imports(path):
            assert name.split(".")[0] != "benchmark" or ".".join(name.split(".")[:2]) in CONTRACTS, (path.name, name)


def test_only_the_pipeline_and_what_stands_above_it_knows_detectors() -> None:
    for path in (ROOT / "benchmark").glob("*.py"):
        if path.stem not in KNOW_DETECTORS:
            assert not any(name.split(".")[0] == "detectors" for name in imports(path)), path.name


def test_no_import_goes_round_in_a_circle() -> None:
    graph = {f"{path.parent.name}.{path.stem}".removesuffix(".__init__"): imports(path) for path in MODULES}

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        for other in graph.get(module, ()):
            visit(other, (*trail, module))

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_the_loop_fits_on_a_screen() -> None:
    assert len(inspect.getsource(train).splitlines()) <= 55


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

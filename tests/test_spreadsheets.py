"""Cells that a spreadsheet would run: written so that it does not, and read back as they were."""

import csv
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchmark.audit.apply_review import COLUMNS, apply_review, audit_digest
from benchmark.audit.audited_data import read_audited_data
from benchmark.audit.run_audit import Audit, write_audit
from benchmark.audit.settings import AuditSettings
from benchmark.counting.error_count import count_errors
from benchmark.data.datasets import load_dataset
from benchmark.disk import TABLES, ResultsFolder
from benchmark.disk.spreadsheets import as_csv, guarded, restored
from benchmark.disk.tables import _table_csv, merge_rows, read_as_text, read_table

FORMULAS = (
    "=cmd()",
    "@SUM(1+1)",
    "+1+1",
    "-2+3",
    "\t=1",
    "\r=1",
    "\n=1",
    "=cmd|'/C calc'!A0",
    "-",
    "=",
    "'=1",
    "''x",
    "'",
)
PLAIN = (
    "-0.5",
    "+1",
    "-3e-05",
    "1e5",
    "",
    "a",
    "a=b",
    "NA",
    "007",
    "x'y",
    "nevus, blue",
    'say "ah"',
    "a\rb",
    "two\nlines",
)
FORMULA = re.compile(r"[=+\-@\t\r\n]")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
texts = st.one_of(
    st.sampled_from(FORMULAS + PLAIN),
    st.text(st.sampled_from("='+-@\t\r\n\",;|0.5eE a"), max_size=6),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=10),
)


def is_shown(cell: str) -> bool:
    return not FORMULA.match(cell) or NUMBER.fullmatch(cell) is not None


@given(texts)
def test_a_guarded_text_is_no_formula_and_comes_back(text: str) -> None:
    assert is_shown(guarded(text))
    assert restored(guarded(text)) == text
    assert restored(text) == text or text.startswith("'"), "nothing else is changed by reading"


@given(st.lists(st.tuples(texts, texts), max_size=5))
def test_a_table_comes_back_and_no_cell_is_a_formula(rows: list[tuple[str, str]]) -> None:
    written = as_csv(pd.DataFrame(rows, columns=["a", "b"]))
    read = list(csv.reader(StringIO(written, newline=""), strict=True))
    assert all(is_shown(cell) for row in read for cell in row)
    assert [tuple(map(restored, row)) for row in read[1:]] == rows


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables_are_written_as_they_are(name: str) -> None:
    results = ResultsFolder(Path(__file__).parents[1] / "results")
    if results.table_data(name).exists():
        rows = read_as_text(results, name)
        assert _table_csv(TABLES[name], rows).encode() == results.table_data(name).read_bytes()


@pytest.mark.parametrize("cell", [cell for cell in FORMULAS + PLAIN if "|" not in cell])
def test_names_in_results_are_no_formulas(cell: str, tmp_path: Path) -> None:
    """Also where the first name of a series begins a cell; numbers of a series stay as they are."""
    results = ResultsFolder(tmp_path)
    row = {"study": "s", "run": cell, "line_up": "original", "detector": cell, "other": cell, "rank_correlation": -0.5}
    for _ in range(2):  # merging keeps it
        rows = [row, row | {"other": "AUM"}]
        merge_rows(results, "agreement", rows, lambda old: pd.Series(False, index=old.index))
        row |= {"line_up": "hcat"}
    with (tmp_path / "agreement.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert len(written) == 2
    assert all(is_shown(line[column]) for line in written for column in ("run", "detector", "other"))
    assert {line["rank_correlation"] for line in written} == {"-0.5|-0.5"}
    read = read_table(results, "agreement")
    assert read[["run", "detector", "other"]].to_numpy().tolist() == [[cell, cell, cell], [cell, cell, "AUM"]] * 2


CLASSES = ("=cmd()", "-2+3", "'quoted", "007")
GROUPS = ("@SUM(1+1)", "+1+1", "NA", "-0.5")


@pytest.fixture
def moles(tmp_path: Path) -> Path:
    """A CSV with classes, groups and file names that are formulas."""
    rows = []
    for number in range(64):
        name = f"{'=+-@'[number % 4]}{number}.png"
        Image.fromarray(np.full((8, 8), number, np.uint8)).save(tmp_path / name)
        rows.append((name, CLASSES[number // 4 % 4], GROUPS[number // 16], f"@{number}"))
    with (tmp_path / "moles.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label", "site", "id"), *rows])
    return tmp_path / "moles.csv"


def test_from_an_audit_by_a_review_to_labels(moles: Path) -> None:
    """The user's CSV is read as it is; every CSV of ours is neutral, and each is read as it was meant."""
    data, out = read_audited_data(moles, "site"), moles.parent / "out"
    given = np.array(data.class_names, dtype=object)[data.labels]
    columns = {"id": data.ids, "given": given, "suggested": given[::-1], "path": data.paths, "group": data.groups}
    samples = pd.DataFrame(columns).assign(trust=-0.25)
    errors = count_errors(np.full((64, 4), 0.25), data.labels)
    rates = pd.DataFrame({"of": "class", "which": CLASSES, "flagged": -0.5})
    found = Audit(samples, errors, rates, (("=1", "-2+3"),), out)
    write_audit(found, data, AuditSettings().as_json(len(data.ids)))
    decisions = pd.DataFrame({"audit": audit_digest(samples), "id": data.ids, "given": given, "decision": "relabel"})
    decisions["label"] = given[::-1]
    (out / "decisions.csv").write_text(as_csv(decisions[list(COLUMNS)]))  # as the page does
    labels = moles.parent / "labels.csv"
    applied = apply_review(out / "audit.csv", [out / "decisions.csv"], labels)
    assert applied.labels["label"].tolist() == given[::-1].tolist()
    for path in (*out.glob("*.csv"), labels):
        with path.open(newline="") as file:
            assert all(is_shown(cell) for row in csv.reader(file) for cell in row), path
    relabelled = read_audited_data(labels)
    assert relabelled.ids == data.ids
    assert relabelled.paths == data.paths
    assert set(relabelled.class_names) == set(CLASSES)
    assert set(load_dataset(str(labels)).class_names) == set(CLASSES)


def test_the_page_guards_as_we_do() -> None:
    script = (Path(__file__).parents[1] / "benchmark/display/templates/review_decisions.js").read_text()
    assert r"/^[=+\-@\t\r\n']/" in script
    assert r"/^[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$/i" in script

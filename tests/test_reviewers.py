"""Two reviewers or more: how often they agree, where they do not, and what becomes of their decisions."""

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from benchmark.audit.apply_review import COLUMNS, Agreement, agreement, apply_review, audit_digest
from benchmark.cli.command_line import main
from benchmark.disk.spreadsheets import as_csv, restored
from benchmark.errors import LincBenchError

CLASSES = ("cat", "dog", "=1+1")
SAMPLES = pd.DataFrame(
    {"id": [f"{n}.png" for n in range(20)] + ["=cmd()"], "given": [CLASSES[n % 2] for n in range(21)]}
)
Fails = Callable[..., str]


@pytest.fixture
def audit_csv(tmp_path: Path) -> Path:
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "audit.csv").write_text(as_csv(SAMPLES.assign(suggested=CLASSES[2])))
    return tmp_path / "audit" / "audit.csv"


def decide(file: Path, decisions: dict[int, str]) -> Path:
    """A reviewer's file, from sample numbers to `ambiguous`, `skip` or a label."""
    rows = []
    for number, label in decisions.items():
        id, given = SAMPLES.loc[number, ["id", "given"]]
        decision = {"ambiguous": "ambiguous", "skip": "skip", given: "keep"}.get(label, "relabel")
        rows.append((audit_digest(SAMPLES), id, given, decision, label if decision in ("keep", "relabel") else ""))
    file.parent.mkdir(exist_ok=True)
    file.write_text(as_csv(pd.DataFrame(rows, columns=COLUMNS)))
    return file


# Both decided 10 samples and agree on 7. The first says cat 5, dog 4, ambiguous 1; the second cat 4, dog 5, skip 1.
# By chance they would agree on (5 · 4 + 4 · 5) / 100 = 0.4 of them; kappa is (0.7 - 0.4) / (1 - 0.4) = 0.5.
ONE = dict(enumerate(["cat"] * 5 + ["dog"] * 4 + ["ambiguous"])) | {15: "dog"}
TWO = dict(enumerate(["cat"] * 4 + ["dog"] * 4 + ["skip"] + ["dog"])) | {16: "skip"}


def test_agreement_and_kappa_are_those_worked_out_by_hand(audit_csv: Path, tmp_path: Path, fails: Fails) -> None:
    """Counted over the samples that both decided; ambiguous and skip are labels of their own."""
    files = decide(tmp_path / "one" / "decisions.csv", ONE), decide(tmp_path / "two" / "decisions.csv", TWO)
    said: list[str] = []
    with pytest.raises(LincBenchError, match=r"Reviewers disagree on 3 of the samples, such as '4\.png'"):
        apply_review(audit_csv, files, tmp_path / "labels.csv", said.append)
    assert said == [
        f"{files[0]} and {files[1]} agree on 7 of the 10 samples that both decided (70.0%); Cohen's kappa: 0.50."
    ]


def test_disagreements_are_listed_and_no_labels_written(
    audit_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [decide(tmp_path / f"{name}, reviewer.csv", decisions) for name, decisions in [("a", ONE), ("b", TWO)]]
    files.append(decide(tmp_path / "c.csv", {4: "=1+1", 20: "=1+1"}))
    files.append(decide(tmp_path / "d.csv", {20: "ambiguous"}))
    command = ["apply-review", str(audit_csv), *map(str, files)]
    assert main(command) == 1
    printed = capsys.readouterr()
    listed, labels = audit_csv.with_name("disagreements.csv"), audit_csv.with_name("reviewed_labels.csv")
    assert f"'4.png'; {listed} lists them. No labels were written. Agree on one decision for each" in printed.err
    assert printed.out.count("Cohen's kappa") == 4, "of each pair with samples in common"
    assert printed.out.count("decide on no sample in common") == 2
    assert not labels.exists()
    with listed.open(newline="") as lines:
        header, *rows = csv.reader(lines, strict=True)
    assert header == ["id", "given", *(f"{what} of {file}" for file in files for what in ("decision", "label"))]
    assert [[restored(cell) for cell in row] for row in rows] == [
        ["4.png", "cat", "keep", "cat", "relabel", "dog", "relabel", "=1+1", "", ""],
        ["8.png", "cat", "relabel", "dog", "skip", "", "", "", "", ""],
        ["9.png", "dog", "ambiguous", "", "keep", "dog", "", "", "", ""],
        ["=cmd()", "cat", "", "", "", "", "relabel", "=1+1", "ambiguous", ""],
    ]
    assert not any(cell.startswith("=") for row in (header, *rows) for cell in row), "a spreadsheet runs none of them"
    assert main(command) == 1, "its own list is replaced"
    agreed = [decide(file, dict.fromkeys((4, 8, 9), "dog")) for file in files[:2]]
    assert main(["apply-review", str(audit_csv), *map(str, agreed)]) == 0
    assert "agree on 3 of the 3 samples that both decided (100.0%); Cohen's kappa: –." in capsys.readouterr().out
    written = pd.read_csv(StringIO(labels.read_text()), dtype=str, keep_default_na=False).set_index("id")
    assert written.loc[["4.png", "8.png", "9.png"], "decision"].tolist() == ["relabel", "relabel", "keep"]


def test_a_list_of_somebody_else_is_not_replaced(audit_csv: Path, tmp_path: Path, fails: Fails) -> None:
    files = decide(tmp_path / "a.csv", {0: "cat"}), decide(tmp_path / "b.csv", {0: "dog"})
    own = tmp_path / "disagreements.csv"
    own.write_text("id,given,mine\n")
    said = fails("apply-review", audit_csv, *files, "--out", tmp_path / "labels.csv")
    assert f"{own} exists, and no review wrote it" in said
    assert own.read_text() == "id,given,mine\n"


def test_a_file_agrees_with_itself(audit_csv: Path, tmp_path: Path) -> None:
    said: list[str] = []
    file = decide(tmp_path / "a.csv", ONE)
    assert (apply_review(audit_csv, [file, file], tmp_path / "l.csv", said.append).labels["decision"] != "").sum() == 11
    assert said == [], "it is one reviewer's"


def test_classes_called_as_decisions_are_no_decisions() -> None:
    """A sample relabelled to the class `skip` was not skipped."""
    one, two = (
        pd.DataFrame({"decision": [decision, "keep"], "label": ["skip", "a"]}, index=["x", "y"])
        for decision in ("relabel", "skip")
    )
    found = agreement((Path("a"), Path("b")), one, two)
    assert (found.samples, found.same) == (2, 1)
    nothing = Agreement((Path("a"), Path("b")), 0, 0, float("nan"))
    assert nothing.sentence == "a and b decide on no sample in common."

"""CSV tables of a results folder that another program saved, or that are damaged: a sentence, and nothing is lost."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmark.cli.command_line import main
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import GROUPING, TABLES
from benchmark.disk.tables import merge_rows, read_table
from benchmark.errors import LincBenchError
from tests.made_up_study import made_up_study, write_study

Spoil = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "results"
    write_study(ResultsFolder(folder), made_up_study({"digits": 1259}, (0.2,)))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


def in_line(number: int, change: Callable[[list[bytes]], None]) -> Spoil:
    """A change of the cells of one line; no cell of these has a comma, except quoted ones at the end."""

    def spoil(content: bytes) -> bytes:
        lines = content.split(b"\n")
        cells = lines[number - 1].split(b",")
        change(cells)
        lines[number - 1] = b",".join(cells)
        return b"\n".join(lines)

    return spoil


def with_cell(number: int, column: int, cell: bytes) -> Spoil:
    return in_line(number, lambda cells: cells.__setitem__(column, cell))


# In metrics.csv, whose columns begin with study, run, dataset, classes, samples, noise, rate.
SPOILED: dict[str, tuple[Spoil, str]] = {
    "semicolons": (lambda content: content.replace(b",", b";"), "metrics.csv, line 1, has no commas between"),
    "tabs": (lambda content: content.replace(b",", b"\t"), "metrics.csv, line 1, has no commas between"),
    "semicolons and decimal commas": (
        lambda content: content.replace(b",", b";").replace(b".", b","),
        "metrics.csv, line 1, has no commas between",
    ),
    "random bytes": (lambda content: bytes(range(128, 256)) * 9, "metrics.csv, line 1, is not text"),
    "random bytes in a line": (with_cell(3, 2, b"\xff\xfe"), "metrics.csv, line 3, is not text"),
    "UTF-16": (lambda content: content.decode().encode("utf-16"), "metrics.csv, line 1, is not text"),
    "a decimal comma": (with_cell(4, 6, b'"0,2"'), "metrics.csv, line 4, has '0,2' in the column rate"),
    "text instead of a number": (with_cell(2, 6, b"high"), "line 2, has 'high' in the column rate, where a number"),
    "a part of a number": (with_cell(2, 3, b"2.5"), "line 2, has '2.5' in the column classes, where a whole number"),
    "no whole number": (with_cell(5, 3, b""), "line 5, has '' in the column classes"),
    "no rate": (with_cell(4, 6, b""), "line 4, has '' in the column rate, where a number is expected"),
    "a rate that is none": (with_cell(4, 6, b"nan"), "line 4, has 'nan' in the column rate"),
    "an infinite rate": (with_cell(4, 6, b"inf"), "line 4, has 'inf' in the column rate"),
    "a date": (with_cell(2, 4, b"Jan 24"), "line 2, has 'Jan 24' in the column samples"),
    "a huge number": (with_cell(2, 4, b"9" * 400), "in the column samples, where a whole number"),
    "options that are no JSON": (with_cell(3, 21, b"{"), "line 3, has '{' in the column recipe_options"),
    "a missing column": (in_line(1, lambda cells: cells.pop(6)), "lacks the columns rate"),
    "a column twice": (in_line(1, lambda cells: cells.insert(2, cells[1])), "line 1, has columns twice: run"),
    "another column": (in_line(1, lambda cells: cells.append(b"x")), "has columns that no table has: x"),
    "a cell too many": (in_line(2, lambda cells: cells.append(b"x")), "metrics.csv, line 2, has 4"),
    "a cell too few": (in_line(3, lambda cells: cells.pop()), "metrics.csv, line 3, has 4"),
    "a merge conflict": (lambda content: content + b"<<<<<<< HEAD\n", "has 1 cells instead of 4"),
    "a cut last line": (lambda content: content[:-20], "is cut off"),
    "a cut last cell": (lambda content: content[:-1], "is cut off"),
    "a cut quotation": (lambda content: content + b'made-up,"digits\n', "is not CSV"),
    "a NUL byte": (with_cell(2, 2, b"dig\0its"), "metrics.csv, line 2, has a NUL byte"),
    "an empty file": (lambda content: b"", "is empty"),
    "an empty line": (lambda content: b"\n", "is empty"),
}
OF_ANOTHER_VERSION = ("a missing column", "another column")
COMMANDS = {
    "report": ("report",),
    "run": ("run", "--detector", "AUM"),
    "dry run": ("run", "--dry-run"),
    "verify": ("verify", "demo"),
    "profile": ("profile", "--detector", "AUM"),
    "growth": ("profile", "--growth"),
    "try-audit": ("try-audit",),
}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.csv") if path.is_file()}


@pytest.mark.parametrize("what", SPOILED)
def test_a_report_names_what_is_wrong_in_a_table_and_where(
    what: str, folder: Path, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, says = SPOILED[what]
    (folder / "metrics.csv").write_bytes(spoil((folder / "metrics.csv").read_bytes()))
    before = bytes_of(folder)
    said = fails("report", "--results", folder)
    assert f"{folder / 'metrics.csv'}" in said
    assert says in said
    assert "Restore it from version control" in said
    assert main(["doctor", "--results", str(folder)]) == (what not in OF_ANOTHER_VERSION)
    assert "metrics.csv" in capsys.readouterr().out
    assert main(["status", "--results", str(folder)]) == 0, "it reads no table"
    assert bytes_of(folder) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", ["semicolons", "a decimal comma"])
def test_every_command_says_so_before_it_works(
    what: str, command: str, folder: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for work in ("cli.studies.run_study", "cli.profile.profile", "cli.profile.measure_growth", "cli.audit.try_audit"):
        monkeypatch.setattr(f"benchmark.{work}", lambda *_: pytest.fail("it began to work"))
    spoil, says = SPOILED[what]
    (folder / "metrics.csv").write_bytes(spoil((folder / "metrics.csv").read_bytes()))
    before = bytes_of(folder)
    assert says in fails(*COMMANDS[command], "--results", folder)
    assert bytes_of(folder) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_in_the_place_of_a_table(command: str, folder: Path, fails: Callable[..., str]) -> None:
    (folder / "metrics.csv").unlink()
    (folder / "metrics.csv").mkdir()
    assert f"{folder / 'metrics.csv'} is not a file" in fails(*COMMANDS[command], "--results", folder)


def test_series_of_different_lengths(folder: Path, fails: Callable[..., str]) -> None:
    content = (folder / "roc.csv").read_text()
    (folder / "roc.csv").write_text(content.replace("|1\n", "\n", 1))
    said = fails("report", "--results", folder)
    assert "roc.csv, line 2, has different numbers of false_positive_rate, true_positive_rate" in said


def test_a_line_is_counted_as_an_editor_counts_it(folder: Path, fails: Callable[..., str]) -> None:
    """Also after a reason of several lines, and with the line ends and the mark of a spreadsheet."""
    content = (folder / "metrics.csv").read_bytes().replace(b",ok,\n", b',ok,"two\nlines"\n', 1)
    content = b"\xef\xbb\xbf" + with_cell(4, 6, b"x")(content).replace(b"\n", b"\r\n")
    (folder / "metrics.csv").write_bytes(content)
    assert "metrics.csv, line 4, has 'x' in the column rate" in fails("report", "--results", folder)


def test_rows_are_not_merged_into_a_table_that_cannot_be_read(folder: Path) -> None:
    """It was whole when the run began; the table, a copy of it and the new rows are there afterwards."""
    results, path = ResultsFolder(folder), folder / "roc.csv"
    path.write_bytes(content := path.read_bytes().replace(b",", b";"))
    row = {"study": "new", "run": "r", "line_up": "original", "detector": "AUM"}
    new = [row | {"false_positive_rate": x, "true_positive_rate": x} for x in (0.0, 0.5, 1.0)]
    with pytest.raises(LincBenchError, match="has no commas between") as raised:
        merge_rows(results, "roc", new, lambda old: old["study"] == "new")
    assert path.read_bytes() == content
    (copy,) = folder.glob("roc.csv.backup-*")
    assert copy.read_bytes() == content
    assert str(copy) in str(raised.value)
    assert (folder / "roc.csv.new-rows").read_text().splitlines()[1] == "new,r,original,AUM,0|0.5|1,0|0.5|1"


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    results = ResultsFolder(tmp_path)
    reason = 'NUL \0, "quotes", semi;colons,\r\nlines | bars'
    numbers = {name: 1 for name, kind in TABLES["metrics"].columns.items() if kind is int or name in GROUPING}
    row = numbers | {"study": "s", "run": "r", "detector": "nan", "line_up": "NA", "status": "failed", "reason": reason}
    merge_rows(results, "metrics", [row], lambda old: old["study"] == "")
    merge_rows(results, "metrics", [row | {"run": "q"}], lambda old: old["study"] == "")
    rows = read_table(results, "metrics")
    assert rows["reason"].tolist() == [reason.replace("\0", "\N{SYMBOL FOR NULL}")] * 2
    assert rows["detector"].tolist() == ["nan"] * 2

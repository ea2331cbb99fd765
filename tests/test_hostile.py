"""Hostile and clumsy input on the command line: what is wrong is said in a sentence, and nothing is lost."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from benchmark.cli.command_line import main
from benchmark.disk import Manifest, Output, ResultsFolder, code_digest
from benchmark.execution.progress import Progress
from benchmark.runs.scores import has_scores

NO_JSON_OF_OURS = ["", "{", "[]", "null", "7", '"text"', "{}", "[" * 100_000, "\xff"]
no_json_of_ours = pytest.mark.parametrize("content", NO_JSON_OF_OURS, ids=lambda text: text[:9])


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("latin-1"))
    return path


@no_json_of_ours
def test_an_audit_file_that_no_audit_wrote_is_not_overwritten(
    content: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(20):
            Image.fromarray(np.full((4, 4), number, np.uint8)).save(tmp_path / "data" / name / f"{number}.png")
    path = write(tmp_path / "out" / "audit.json", content)
    said = fails("audit", tmp_path / "data", "--out", tmp_path / "out")
    assert "has audit.json, which no audit wrote. Choose another folder with --out DIR" in said
    assert [*path.parent.iterdir()] == [path]
    assert path.read_bytes() == content.encode("latin-1")


@no_json_of_ours
def test_status_of_notes_that_cannot_be_read(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = ResultsFolder(tmp_path)
    write(results.failed("lost"), content)
    write(results.running("begun"), content)
    assert main(["status", "--results", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "its note cannot be read" in said
    assert "0 done, 0 running, 1 failed, 1 interrupted" in said
    progress = Progress(Console(quiet=True))
    progress._pending["begun"] = 7
    assert progress._epochs_left(results) == 7


@pytest.mark.parametrize(
    "content",
    [
        *NO_JSON_OF_OURS,
        *('{"page": []}', '{"page": null}', '{"page": {"made_from": "x"}}', '{"page": {"files": {}}}'),
        *('{"page": {"made_from": "x", "files": []}}', '{"page": {"made_from": "x", "files": {"a": null}}}'),
        *(
            '{"tables/": {"made_from": "x", "files": {"a": "b"}}}',
            '{"tables": {"made_from": "x", "files": {"a": "b"}}}',
        ),
        '{"page": {"made_from": "x", "files": {"a\\u0000": "b"}}}',
        '{"page": {"made_from": "x", "files": {"report.html": null}}}',
        '{"tables/a": {"made_from": "x", "files": {"a.md": null}}}',
    ],
    ids=lambda text: text[:60],
)
def test_a_manifest_that_no_report_wrote_counts_as_absent(content: str, tmp_path: Path) -> None:
    results = ResultsFolder(tmp_path)
    own = write(tmp_path / "own.csv", "mine")
    write(results.manifest, content)
    manifest = Manifest(results)
    assert not manifest.is_current("x")
    assert manifest.current("page", "x") is None
    manifest.write({"page": Output("x", {"report.html": b"page"})})
    assert Manifest(results).is_current("x")
    assert own.read_text() == "mine"


@no_json_of_ours
def test_a_list_that_no_audit_wrote_is_refused(content: str, fails: Callable[..., str], tmp_path: Path) -> None:
    path = write(tmp_path / "samples.audit.json", content)
    said = fails("run", "--dataset", path, "--results", tmp_path / "results")
    assert f"{path} is not a list that an audit wrote" in said
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"labels": [0, 1]},
            {"labels": [0, 1, -1]},
            {"labels": [0, 1, 2]},
            {"labels": "010"},
            {"labels": [0.5, 0, 1]},
        ),
        *({"files": ["a.png"]}, {"files": 7}, {"files": [1, 2, 3]}, {"npz": 7, "files": None}),
        *({"class_names": 7}, {"name": 7}, {"identity": None}, {"images": []}, {"class_names": []}),
    ],
    ids=str,
)
def test_a_list_that_somebody_changed_is_refused(
    change: dict[str, object], fails: Callable[..., str], tmp_path: Path
) -> None:
    about = {"name": "x", "identity": "y", "images": "z", "files": ["a.png"] * 3, "class_names": ["a", "b"]}
    path = write(tmp_path / "samples.audit.json", json.dumps({**about, "labels": [0, 1, 0], **change}))
    said = fails("run", "--dataset", path, "--results", tmp_path / "results")
    assert f"{path} is not a list that an audit wrote" in said


@no_json_of_ours
def test_scores_whose_notes_cannot_be_read_count_as_missing(content: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    write(tmp_path / "x.json", content)
    assert not has_scores(tmp_path / "x.npy", 3)


def test_a_pattern_that_matches_no_code_is_an_error() -> None:
    """A file that was moved would no longer make the report anew."""
    assert code_digest("disk/*.py") != code_digest("disk/schema.py")
    with pytest.raises(ValueError, match=r"no file is called disk/moved\.py"):
        code_digest("disk/*.py", "disk/moved.py")

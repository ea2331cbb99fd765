"""What failed, what is running, what is damaged: told by `status` and `doctor`, and never in the way of the rest."""

import errno
import gc
import json
import multiprocessing
import os
import pickle
import shutil
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from benchmark.cli.command_line import main
from benchmark.data.datasets import Dataset
from benchmark.disk.files import CHECKSUMS, find_damage, locked, open_array, write_checksums
from benchmark.disk.results_folder import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.evaluation import evaluate as evaluation
from benchmark.evaluation.run_rows import JudgedRun
from benchmark.execution.executors import InProcessExecutor, WorkerDied
from benchmark.execution.progress import Progress
from benchmark.identity import digest_of
from benchmark.networks import features
from benchmark.runs import run_unit
from benchmark.runs.plan import Sources
from benchmark.runs.run_study import ATTEMPTS
from benchmark.runs.units import Unit
from benchmark.upkeep.integrity import DAMAGED, ORPHANED, OTHER_VERSION, UNKNOWN, check_integrity
from benchmark.upkeep.status import DONE, FAILED, INTERRUPTED, RUNNING, RunState, read_status
from tests.conftest import score_bytes
from tests.test_interruptions import Quick

pytestmark = pytest.mark.usefixtures("without_report")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def failing(errors: list[Any]) -> Callable[[Unit], object]:
    """LiNC's run fails of each of these, one after the other."""
    real = run_unit.run_unit

    def run(unit: Unit, *others: object) -> object:
        if unit.run.recipe.name == "linc" and errors:
            raise errors.pop(0)
        return real(unit, *others)

    return run


def test_a_unit_that_fails_three_times_is_a_failed_row_and_does_not_stop_the_rest(
    quick: Quick, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors: list[Exception] = [OSError(errno.EIO, "the disk was away") for _ in range(ATTEMPTS)]
    monkeypatch.setattr(run_unit, "run_unit", failing(errors))
    command = [*quick, "--workers", "1", "--results", str(tmp_path / "results")]
    assert main(command) == 1
    assert not errors, "it was tried three times"
    told = said(capsys)
    (linc,) = (path.name for path in (quick_run / "runs").glob("*-linc-*"))
    assert f"failed: {linc}: OSError: [Errno 5] the disk was away" in told
    assert "details: " in told
    rows = pd.read_csv(tmp_path / "results" / "metrics.csv")
    assert set(rows[rows["status"] == "failed"]["detector"]) == {"LiNC"}
    assert set(rows[rows["status"] == "ok"]["detector"]) >= {"AUM", "mean loss"}
    assert main(["status", "--results", str(tmp_path / "results")]) == 0
    told = said(capsys)
    assert "1 done, 0 running, 1 failed, 0 interrupted" in told
    assert "the disk was away (attempts: 3" in told
    log = ResultsFolder(tmp_path / "results").log(linc).read_text()
    assert "Traceback" in log
    assert "the disk was away" in log
    assert main(command) == 0, "the next call does it"
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)
    assert main(["status", "--results", str(tmp_path / "results")]) == 0
    assert "2 done, 0 running, 0 failed, 0 interrupted" in said(capsys)


@pytest.mark.parametrize("error", [TypeError, KeyError, ZeroDivisionError, SystemExit, FileNotFoundError])
def test_what_cannot_pass_is_not_tried_again(
    quick: Quick, copied: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """A mistake in epoch 70 would cost three times seventy epochs."""
    errors: list[BaseException] = [error("x") for _ in range(ATTEMPTS)]
    monkeypatch.setattr(run_unit, "run_unit", failing(errors))
    assert main([*quick, "--name", "new", "--workers", "1", "--results", str(copied)]) == 1
    assert len(errors) == ATTEMPTS - 1
    rows = pd.read_csv(copied / "metrics.csv")
    assert set(rows[rows["status"] == "failed"]["detector"]) == {"LiNC"}
    assert error.__name__ in rows[rows["status"] == "failed"]["reason"].iloc[0]


@pytest.mark.long
def test_what_fails_once_is_tried_again_by_itself(
    quick: Quick, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_unit, "run_unit", failing([MemoryError()]))
    assert main([*quick, "--workers", "1", "--results", str(tmp_path / "results")]) == 0
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)


def _hold(folder: Path, name: str) -> None:
    with locked(folder, name):
        (folder / "held").touch()
        time.sleep(1000)


def runs_in(status: list[RunState], state: str) -> list[str]:
    return [run.run_id for run in status if run.state == state]


def test_status_tells_running_from_interrupted(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = ResultsFolder(copied)
    for name in ("at-work", "gone"):
        note_of(copied, name)
    (copied / "runs" / ".partial-left").mkdir()
    holder = multiprocessing.get_context("spawn").Process(target=_hold, args=(results.locks, "at-work"))
    holder.start()
    try:
        while not (results.locks / "held").exists():
            time.sleep(0.01)
        found = read_status(results)
        assert main(["status", "--results", str(copied)]) == 0
    finally:
        holder.kill()
        holder.join()
    assert len(runs_in(found, DONE)) == 2
    assert runs_in(found, RUNNING) == ["at-work"]
    assert runs_in(found, INTERRUPTED) == ["gone", "left"]
    told = said(capsys)
    assert "epoch 3 of 70" in told
    assert "process 123 on here" in told
    assert "2 done, 1 running, 0 failed, 2 interrupted" in told
    assert runs_in(read_status(results), INTERRUPTED) == ["at-work", "gone", "left"], "whoever held it is gone"


def test_a_run_has_one_state(copied: Path) -> None:
    """Begun and failed is failed; trained and begun again, or killed while it was scored, is begun."""
    results = ResultsFolder(copied)
    again, other = (path.name for path in results.all_runs())
    note_of(copied, again)
    for name in ("lost", other):
        (copied / "failed").mkdir(exist_ok=True)
        results.failed(name).write_text(json.dumps({"reason": "[/conv1] of [enforce fail]", "attempts": 3}))
    (copied / "runs" / ".partial-lost").mkdir()
    found = read_status(results)
    assert runs_in(found, DONE) == []
    assert runs_in(found, INTERRUPTED) == [again]
    assert runs_in(found, FAILED) == sorted(["lost", other])


def test_reasons_are_shown_as_they_are(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets in them are no markup for the terminal."""
    (copied / "failed").mkdir()
    reason = "no tensor [/conv1], [enforce fail at alloc_cpu.cpp:114]"
    ResultsFolder(copied).failed("x").write_text(json.dumps({"reason": reason, "attempts": 3}))
    assert main(["status", "--results", str(copied)]) == 0
    assert reason in said(capsys)
    Progress(Console(width=200)).say(reason)
    assert reason in said(capsys)


def test_a_run_that_no_detector_reads_is_a_failed_row_too(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_unit, "run_unit", failing([LincBenchError("no such thing")]))
    few = [*quick[: quick.index("--detector")], "--detector", "AUM", "--workers", "1"]
    assert main([*few, "--results", str(tmp_path / "results")]) == 1
    rows = pd.read_csv(tmp_path / "results" / "metrics.csv").query("status == 'failed'")
    assert rows[["line_up", "detector", "reason"]].to_numpy().tolist() == [["training", "linc", "no such thing"]]


def test_what_cannot_be_read_now_is_not_called_damaged(
    quick: Quick, copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished run stays finished when files, memory or the network are short for a moment."""
    before = {path: path.read_bytes() for path in copied.rglob("runs/*/*")}

    def too_many(path: Path) -> np.ndarray:
        if "-linc-" in str(path):
            raise OSError(errno.EMFILE, "Too many open files", str(path))
        return open_array(path)

    with monkeypatch.context() as patch:
        patch.setattr("benchmark.record.run_record.open_array", too_many)
        assert main([*quick, "--name", "new", "--workers", "1", "--results", str(copied)]) == 1
        assert "Too many open files" in said(capsys)
        rows = pd.read_csv(copied / "metrics.csv")
        assert set(rows[rows["status"] == "failed"]["detector"]) == {"LiNC"}, "the other run is not in the way"
        assert {finding.state for finding in check_integrity(ResultsFolder(copied))} == {UNKNOWN}
    assert {path: path.read_bytes() for path in copied.rglob("runs/*/*")} == before


def test_records_are_opened_one_at_a_time(copied: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them have more files than a process may have open."""
    real, opened = evaluation.judged_run, []
    alive: list[weakref.ref] = []

    def judged(unit: Unit, sources: Sources) -> JudgedRun:
        gc.collect()
        opened.append(sum(reference() is not None for reference in alive))
        found = real(unit, sources)
        alive.append(weakref.ref(found.record))
        return found

    monkeypatch.setattr(evaluation, "judged_run", judged)
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert len(opened) >= 2
    assert max(opened) <= 1, "the one before may still be in a variable"


@pytest.mark.long
def test_one_data_set_whose_features_cannot_be_had_does_not_stop_the_other(
    quick: Quick, odd_or_even: Path, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = features.compute_chunk

    def chunk(rows: range, dataset: Dataset, *others: object) -> np.ndarray:
        if dataset.info.name == "odd_or_even":
            raise RuntimeError("out of memory")
        return real(rows, dataset, *others)

    monkeypatch.setattr(features, "compute_chunk", chunk)
    command = [*quick, "--dataset", str(odd_or_even), "--workers", "1", "--results", str(tmp_path / "results")]
    assert main(command) == 1
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)
    rows = pd.read_csv(tmp_path / "results" / "metrics.csv").query("dataset == 'odd_or_even'")
    assert (rows["reason"].str.contains("could not be computed: RuntimeError: out of memory")).all()
    assert len(runs_in(read_status(ResultsFolder(tmp_path / "results")), FAILED)) == 2


@pytest.mark.long
def test_a_worker_lost_while_records_are_checked_loses_nothing(
    quick: Quick, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = score_bytes(copied)
    flip(one(copied, "runs/*-standard-*/train_summary.npy"))
    submit = InProcessExecutor.submit

    def lose(executor: InProcessExecutor, function: Callable[..., object], *arguments: object) -> Future[object]:
        if function is not find_damage:
            return submit(executor, function, *arguments)
        future: Future[object] = Future()
        future.set_exception(WorkerDied("killed"))
        return future

    monkeypatch.setattr(InProcessExecutor, "submit", lose)
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert score_bytes(copied) == scores
    assert not list(check_integrity(ResultsFolder(copied)))


def test_commands_that_start_together_can_all_write(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: ResultsFolder(tmp_path).prepare(), range(400)))
    assert not list(tmp_path.iterdir())


READING = ["status", "doctor", "features list", "features clean --all", "verify", "report", "report demo"]


@pytest.mark.parametrize("command", READING)
def test_a_results_folder_that_is_not_there_is_named_and_not_created(
    command: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    said = fails(*command.split(), "--results", tmp_path / "nowhere")
    assert f"There is no results folder {tmp_path / 'nowhere'}. Name another with --results DIR" in said
    (tmp_path / "file").write_text("")
    assert f"The results folder {tmp_path / 'file'} is a file" in fails(
        *command.split(), "--results", tmp_path / "file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_empty_results_folder_stays_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exit_codes = [main([*command.split(), "--results", str(tmp_path)]) for command in READING]
    assert exit_codes == [0, 0, 0, 0, 1, 1, 1]
    assert "0 done, 0 running, 0 failed, 0 interrupted" in said(capsys)
    assert not list(tmp_path.iterdir())


def test_doctor_finds_nothing_where_nothing_is_wrong(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert main(["doctor", "--results", str(copied)]) == 0
    assert "everything is intact" in said(capsys)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before, "it only looks"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-9] ^= 4
    path.write_bytes(content)


def one(results: Path, pattern: str) -> Path:
    return sorted(results.glob(pattern))[0]


def change_settings(results: Path, change: Callable[[dict], None], rename: bool) -> None:
    """Of a record, as another version would have written it."""
    folder = one(results, "runs/*-linc-*")
    about = json.loads((folder / "record.json").read_text())
    change(about["settings"])
    (folder / "record.json").write_text(json.dumps(about))
    write_checksums(folder)
    if rename:
        name = f"{folder.name.rpartition('-')[0]}-{digest_of(about['settings'])}"
        for part in ("runs", "scores"):
            (results / part / folder.name).rename(results / part / name)


def note_of(results: Path, run_id: str) -> None:
    path = ResultsFolder(results).running(run_id)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"epoch": 3, "epochs": 70, "process": 123, "machine": "here"}))


SPOILED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a flipped byte of a record": (DAMAGED, lambda results: flip(one(results, "runs/*-standard-*/train_summary.npy"))),
    "a lost file of a record": (DAMAGED, lambda results: one(results, "runs/*-linc-*/trust.npy").unlink()),
    "a flipped byte of features": (DAMAGED, lambda results: flip(one(results, "features/*/features.npy"))),
    "flipped scores": (DAMAGED, lambda results: flip(one(results, "scores/*/aum-*.npy"))),
    "cut labels": (DAMAGED, lambda results: one(results, "labels/*").write_bytes(b"PK")),
    "a flipped answer": (DAMAGED, lambda results: flip(one(results, "answers/*"))),
    "flipped duplicates": (DAMAGED, lambda results: flip(one(results, "duplicates/*"))),
    "a flipped check": (DAMAGED, lambda results: flip(one(results, "checks/*"))),
    "a cut table": (DAMAGED, lambda results: (results / "metrics.csv").write_text('study,run\n"demo')),
    "an older table": (OTHER_VERSION, lambda results: (results / "metrics.csv").write_text("a,b\n1,2\n")),
    "a record without checksums": (DAMAGED, lambda results: one(results, f"runs/*-linc-*/{CHECKSUMS}").unlink()),
    "a record of another version": (
        OTHER_VERSION,
        lambda results: change_settings(results, lambda settings: settings["training"].pop("threads"), rename=True),
    ),
    "a record under another name": (
        ORPHANED,
        lambda results: change_settings(results, lambda settings: settings["training"].update(epochs=3), rename=False),
    ),
    "a record of settings that nobody knows": (
        OTHER_VERSION,
        lambda results: change_settings(results, lambda settings: settings.clear(), rename=True),
    ),
    "scores without a checksum": (
        DAMAGED,
        lambda results: one(results, "scores/*/aum-*.json").write_text('{"seconds": 1}'),
    ),
    "a note of a run that nobody trains": (ORPHANED, lambda results: note_of(results, "x")),
    "scores without their run": (ORPHANED, lambda results: shutil.rmtree(one(results, "runs/*-linc-*"))),
    "what a killed run left": (ORPHANED, lambda results: (results / "runs" / ".partial-x").mkdir()),
    "what a killed feature computation left": (ORPHANED, lambda results: (results / "features" / ".partial-x").mkdir()),
    "what a killed writer left": (ORPHANED, lambda results: (results / "labels" / ".x.npz.123").touch()),
}


@pytest.mark.parametrize("what", SPOILED)
def test_doctor_names_what_is_wrong_and_what_to_do(what: str, copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, spoil = SPOILED[what]
    spoil(copied)
    findings = list(check_integrity(ResultsFolder(copied)))
    assert {finding.state for finding in findings} == {state}
    assert all(finding.why and finding.what_to_do for finding in findings)
    assert main(["doctor", "--results", str(copied)]) == (state == DAMAGED)
    assert f" {state}" in said(capsys)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps([1, 2]))


def objects(path: Path) -> None:
    save = np.savez if path.suffix == ".npz" else np.save
    save(path, np.array([None, {}], dtype=object), allow_pickle=True)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


OURS = [
    f"{folder}/*.np[yz]"
    for folder in ("runs/*-standard-*", "scores/*", "features/*", "labels", "answers", "duplicates", "checks")
]


@pytest.mark.parametrize("spoil", [pickled, objects, pipe])
def test_doctor_neither_waits_for_a_pipe_nor_advises_to_load_pickles(
    spoil: Callable[[Path], None], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Opening a pipe waits for whoever writes; numpy's words for an array that is none advise to load it unsafely."""
    for path in [path for pattern in OURS for path in sorted(copied.glob(pattern))[:9]]:
        spoil(path)
    assert main(["doctor", "--results", str(copied)]) == 1
    text = said(capsys)
    assert text.count(" damaged") >= len(OURS)
    assert "allow_pickle" not in text
    assert "unsafe" not in text


@pytest.mark.long
@pytest.mark.parametrize("spoil", [pickled, objects, pipe])
@pytest.mark.parametrize("pattern", [pattern for pattern in OURS if "features" not in pattern])
def test_an_array_that_is_none_is_made_again(
    spoil: Callable[[Path], None], pattern: str, quick: Quick, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = score_bytes(copied)
    spoil(one(copied, pattern))
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    told = capsys.readouterr()
    assert "allow_pickle" not in told.out + told.err
    assert not list(check_integrity(ResultsFolder(copied)))
    assert score_bytes(copied) == scores


@pytest.mark.long
@pytest.mark.parametrize("what", ["cut labels", "a flipped answer", "flipped scores"])
def test_what_is_damaged_alone_is_made_again_without_training(quick: Quick, copied: Path, what: str) -> None:
    scores, times = score_bytes(copied), {path: path.read_bytes() for path in copied.glob("runs/*/record.json")}
    SPOILED[what][1](copied)
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert not list(check_integrity(ResultsFolder(copied)))
    assert score_bytes(copied) == scores
    assert {path: path.read_bytes() for path in copied.glob("runs/*/record.json")} == times


@pytest.mark.long
def test_damage_is_not_carried_over_into_a_new_record(quick: Quick, copied: Path, quick_run: Path) -> None:
    """Of a signal that the next command does not read, in a record that it trains again."""
    flip(one(copied, "runs/*-standard-*/eval_summary.npy"))
    first = quick.index("--detector")
    command = [*quick[:first], "--detector", "AUM", "--detector", "LiNC", "--workers", "1", "--results", str(copied)]
    assert main(command) == 0
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert score_bytes(copied) == score_bytes(quick_run)
    logits = "runs/*-standard-*/eval_summary.npy"
    assert one(copied, logits).read_bytes() == one(quick_run, logits).read_bytes()


def test_what_doctor_advises_repairs_it(quick: Quick, copied: Path) -> None:
    """Whatever is damaged is made again by running the study."""
    scores = score_bytes(copied)
    damages = ("a flipped byte of a record", "flipped scores", "a flipped answer", "a flipped byte of features")
    for what in (*damages, "flipped duplicates", "a flipped check"):
        SPOILED[what][1](copied)
    one(copied, "labels/*").unlink()
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert not list(check_integrity(ResultsFolder(copied)))
    assert score_bytes(copied) == scores

"""Records: read-only, cut to their first epochs, made from anybody's arrays, and honest when damaged."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmark.cli.command_line import main
from benchmark.disk import provenance
from benchmark.errors import LincBenchError
from benchmark.record import EVAL_LOGITS, EVAL_SUMMARY, TRAIN_LOGITS, TRAIN_SUMMARY, EvalLogits, RunRecord, TrainLogits
from benchmark.record import run_record as record_module
from benchmark.record.history import History
from benchmark.record.run_record import open_record, read_metadata, write_record
from detectors.linc import COMPONENT, TRUST

ROOT = Path(__file__).parent.parent


def plain(epochs: int = 4, n: int = 50, classes: int = 3) -> RunRecord:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(epochs, n, classes)).astype(np.float32)
    return RunRecord.from_arrays(given_labels=generator.integers(0, classes, n), train_logits=logits)


def test_blocks_cover_every_sample_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    record = plain()
    whole = record.map_samples(lambda labels, logits: logits[:, :, 0].sum(0) + 100 * labels, TRAIN_LOGITS)
    monkeypatch.setattr(record_module, "BLOCK_BYTES", 7 * 4 * 3 * 4)
    sizes: list[int] = []

    def in_blocks(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
        sizes.append(len(labels))
        return logits[:, :, 0].sum(0) + 100 * labels

    assert (record.map_samples(in_blocks, TRAIN_LOGITS) == whole).all()
    assert sizes == [7] * 7 + [1]


def test_first_epochs_is_the_record_as_if_training_had_ended_there() -> None:
    record = plain(epochs=6)
    cut = record.first_epochs(2)
    assert cut.epochs == 2
    assert (cut[TRAIN_LOGITS] == record[TRAIN_LOGITS][:2]).all()
    with pytest.raises(LincBenchError, match="6 epochs"):
        record.first_epochs(7)


@pytest.mark.parametrize(
    ("at_epochs", "rows"),
    [
        ((3,), [2]),
        ((0,), [5]),
        ((-1, 0), [4, 5]),
        ((5, 1), [0, 4]),
        ((9,), [5]),
        ((-9,), [0]),
        ((2, 3, 8, 9), [1, 2, 5]),
    ],
)
def test_logits_of_some_epochs_are_read_from_those_of_all(at_epochs: tuple[int, ...], rows: list[int]) -> None:
    record = plain(epochs=6)
    assert TrainLogits(at_epochs) in record
    assert EvalLogits(at_epochs) not in record
    assert (record[TrainLogits(at_epochs)] == record[TRAIN_LOGITS][rows]).all()
    assert list(TrainLogits(at_epochs).epochs_of(6)) == [row + 1 for row in rows]
    early = record.first_epochs(1)
    assert (early[TrainLogits(at_epochs)] == record[TRAIN_LOGITS][:1]).all(), "as if training had ended there"


def test_logits_of_some_epochs_may_be_all_that_there_is() -> None:
    whole, at_two = plain(epochs=6), TrainLogits((2,))
    record = RunRecord(whole.given_labels, 3, 6, {at_two.key: whole[at_two]})
    assert at_two.key == "train_logits-at_epochs=2"
    for known in (record, record.first_epochs(3), record.first_epochs(4).first_epochs(2)):
        assert (known[at_two] == whole[TRAIN_LOGITS][1:2]).all()
    with pytest.raises(LincBenchError, match="not known after 1 epochs"):
        record.first_epochs(1)[at_two]
    for other in (TRAIN_LOGITS, TrainLogits((3,))):
        assert other not in record
        with pytest.raises(LincBenchError, match=f"no {other.key}; it has {at_two.key}"):
            record[other]


def test_neighbouring_epochs_are_not_copied() -> None:
    """A record may be larger than memory."""
    record = plain(epochs=6)
    assert np.shares_memory(record[TrainLogits((2, 3))], record[TRAIN_LOGITS])


def test_what_belongs_to_the_whole_run_is_not_known_earlier(quick_run: Path) -> None:
    record = open_record(next((quick_run / "runs").glob("*-linc-*")))
    assert record[COMPONENT].shape == record.given_labels.shape
    cut = record.first_epochs(1)
    assert cut[TRUST].shape == (1, len(record.given_labels))
    with pytest.raises(LincBenchError, match="whole run"):
        cut[COMPONENT]


def test_a_signal_that_was_not_recorded_is_named() -> None:
    with pytest.raises(LincBenchError, match=r"no eval_logits; it has train_logits"):
        plain()[EVAL_LOGITS]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"given_labels": np.zeros(3)}, "whole numbers"),
        ({"given_labels": np.zeros((3, 1), int)}, "whole numbers"),
        ({"given_labels": np.array([0, 1, 5]), "train_logits": np.zeros((2, 3, 4))}, "expected 0 to 3"),
        ({"given_labels": np.array([0, 1]), "train_logits": np.zeros((2, 3, 4))}, r"expected \(epochs, 2, classes\)"),
        (
            {"given_labels": np.array([0, 1]), "train_logits": np.zeros((2, 2, 4)), "eval_logits": np.zeros((3, 2, 4))},
            "differ in shape",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(LincBenchError, match=says):
        RunRecord.from_arrays(**arrays)


def test_a_record_is_opened_as_it_was_written(tmp_path: Path) -> None:
    labels, trust = np.array([0, 2, 1]), np.full((1, 3), 0.5, np.float32)
    np.save(tmp_path / "train_logits.npy", np.arange(9, dtype=np.float32).reshape(1, 3, 3))  # a recorder wrote it
    history = History([{"epoch": 1, "validation_accuracy": 0.5}], {"validation": [np.zeros(2, np.int16)]})
    keys = [TRAIN_LOGITS.key, TRUST.key]
    written = write_record(tmp_path, {"dataset": "x"}, labels, 3, history, {TRUST: trust}, keys, time.perf_counter())
    for record in (written, open_record(tmp_path)):
        assert (record.num_classes, record.epochs, record.settings) == (3, 1, {"dataset": "x"})
        assert (record.given_labels == labels).all()
        assert (record[TRUST] == trust).all()
        assert record[TRAIN_LOGITS][0, 2, 2] == 8
    assert "recording for trust" in read_metadata(tmp_path)["seconds"]


def test_arrays_that_no_detector_could_read_are_refused() -> None:
    logits = np.zeros((3, 4, 2), dtype=np.float32)
    with pytest.raises(LincBenchError, match="There is no signal called 'logits'"):
        RunRecord.from_arrays(given_labels=np.zeros(4, dtype=int), logits=logits)
    logits[1, 2, 0] = np.nan
    with pytest.raises(LincBenchError, match="eval_logits has 1 rows that are not finite"):
        RunRecord.from_arrays(given_labels=np.zeros(4, dtype=int), eval_logits=logits)


def test_what_is_missing_from_own_arrays_is_named() -> None:
    with pytest.raises(LincBenchError, match=r"Give `RunRecord.from_arrays` `eval_logits=` or `eval_summary=`"):
        plain()[EVAL_SUMMARY]


def test_records_on_disk_cannot_be_written_to(quick_run: Path) -> None:
    record = open_record(next((quick_run / "runs").glob("*-standard-*")))
    with pytest.raises(ValueError, match="read-only"):
        record[TRAIN_SUMMARY]["loss"][0, 0] = 1.0


def test_a_record_tells_how_it_came_about(quick_run: Path) -> None:
    import json

    about = json.loads((next((quick_run / "runs").glob("*-linc-*")) / "record.json").read_text())
    assert about["settings"]["recipe"] == {
        "name": "linc",
        "version": 2,
        "warm_up": 5,
        "soft_epochs": 5,
        "trust_rate": 1.0,
        "trust_decay": 0.1,
        "components": 3,
        "trust_gradient": "mean",
        "soft_correction": "stopgrad",
    }
    assert about["settings"]["training"]["seed"] == 0
    assert about["settings"]["noise"] == {"kind": "symmetric", "version": 1, "rate": 0.2, "seed": 0}
    assert {"torch", "timm", "numpy", "python"} <= set(about["versions"])
    assert about["commit"]
    assert about["seconds"]["training"] > 0
    assert about["process_peak_bytes"] > 2**20


def test_results_are_no_change_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True
        ).stdout.decode()

    for folder in ("benchmark/disk", "detectors", "results"):
        (tmp_path / folder).mkdir(parents=True)
    code, table = tmp_path / "benchmark" / "disk" / "provenance.py", tmp_path / "results" / "metrics.csv"
    monkeypatch.setattr(provenance, "__file__", str(code))
    commit = provenance.commit.__wrapped__  # without its cache
    git("init")
    code.touch()
    assert commit().startswith("release"), "a repository that does not track the code is another's"
    git("add", ".")
    git("commit", "-m", "code")
    known = git("rev-parse", "--short", "HEAD").strip()
    table.write_text("rows")
    assert commit() == known
    git("add", ".")
    git("commit", "-m", "results")
    assert commit() == known, "committing results makes no other code"
    code.write_text("changed")
    assert commit() == f"{known}-dirty"


@pytest.mark.parametrize(
    "code",
    [
        "from benchmark.record import RunRecord; from detectors.aum import AUM",
        "import detectors; detectors.DETECTORS",
        "import benchmark.disk, benchmark.data, benchmark.networks, benchmark.training, benchmark.statistics",
        "import benchmark.networks.feature_store, benchmark.data.datasets, benchmark.noise",
    ],
)
def test_values_are_imported_without_heavy_libraries(code: str) -> None:
    heavy = "{'torch', 'timm', 'torchvision', 'sklearn', 'pandas', 'scipy', 'matplotlib', 'medmnist'}"
    check = f"import sys; {code}; print(sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout.strip() == "[]"


def test_asking_git_writes_nothing_into_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git status` takes a lock and writes the index anew, which a `git commit` at the same time fails on."""
    code = tmp_path / "benchmark" / "disk" / "provenance.py"
    code.parent.mkdir(parents=True)
    code.write_text("")
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*own, "commit", "-qm", "code")):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    os.utime(code, (1, 1))  # the index has another time, so that git would like to correct it
    before = (tmp_path / ".git" / "index").read_bytes()
    monkeypatch.setattr(provenance, "__file__", str(code))
    assert not provenance.commit.__wrapped__().endswith("-dirty")
    assert (tmp_path / ".git" / "index").read_bytes() == before


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_git_is_asked_once_at_the_start_of_a_command(
    quick: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """Editing while a run is trained does not change which code it notes; workers are told."""
    asked: list[str] = []

    def git(*arguments: str) -> str:
        asked.append(arguments[0])
        started = list((tmp_path / "results").glob("*"))
        return {"log": "late" if started else "start", "status": ""}[arguments[0]]

    monkeypatch.setattr(provenance, "_git", git)
    provenance.commit.cache_clear()
    try:
        few = [*quick[: quick.index("--detector")], "--epochs", "1", "--detector", "AUM", "--workers", workers]
        assert main([*few, "--results", str(tmp_path / "results")]) == 0
    finally:
        provenance.commit.cache_clear()
    records = [read_metadata(folder) for folder in (tmp_path / "results" / "runs").iterdir()]
    assert [record["commit"] for record in records] == ["start", "start"]
    assert asked == ["log", "status"]


@pytest.mark.parametrize("command", [["profile"], ["profile", "--growth"], ["try-audit"], ["audit", "."]])
def test_other_commands_ask_git_before_they_do_anything(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):  # noqa: N818
        pass

    def git(*arguments: str) -> str:
        raise Asked

    monkeypatch.setattr(provenance, "_git", git)
    monkeypatch.chdir(tmp_path)
    provenance.commit.cache_clear()
    with pytest.raises(Asked):
        main([*command, *([] if "audit" in command else ["--results", str(tmp_path / "results")])])
    assert not list(tmp_path.glob("results/*"))


def test_the_processors_model_is_noted_where_linux_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    about = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t: 1\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: about)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert provenance.machine.__wrapped__() == "x86_64, AMD EPYC, family 25, model 17"

    def is_missing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", is_missing)
    assert provenance.machine.__wrapped__() == "x86_64"

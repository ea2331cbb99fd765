"""Packs: a detector is scored on the runs of others without data or weights, and no tar does more than that."""

import hashlib
import io
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from benchmark.cli.command_line import main
from benchmark.disk import CHECKSUMS, ResultsFolder, checksum
from benchmark.identity import settings_of
from benchmark.networks import Backbone
from benchmark.noise import NoiseSettings
from benchmark.runs import STUDIES, RunSettings
from benchmark.training import Recipe, Standard
from benchmark.upkeep.packed_runs import RECIPES, PackedRun
from detectors.aum import AUM
from detectors.linc import LiNCRecipe
from detectors.mean_loss import MeanLoss
from tests.conftest import medmnist_arrays, score_bytes

pytestmark = pytest.mark.usefixtures("without_report")

Files = dict[str, bytes]
Fails = Callable[..., str]
OWN = """
from dataclasses import dataclass
from typing import ClassVar

from benchmark.record import {imports}
from detectors import Detector


@dataclass(frozen=True)
class Own(Detector):
    name: ClassVar[str] = "my own"

    @property
    def needs(self):
        return ({signal},)

    def score(self, record):
        return record[{signal}]["loss"].mean(axis=0).astype("float64")
"""


@pytest.fixture(scope="session")
def pack(quick_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pack") / "runs.tar"
    assert main(["pack", "demo-modified", str(path), "--results", str(quick_run)]) == 0
    return path


def own_detector(folder: Path, signal: str = "TRAIN_SUMMARY") -> str:
    (folder / "own.py").write_text(OWN.format(imports=signal.partition("(")[0], signal=signal))
    return f"{folder / 'own.py'}:Own"


def written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "locks"]


def test_the_same_runs_make_the_same_pack(pack: Path, quick_run: Path, tmp_path: Path, fails: Fails) -> None:
    again = tmp_path / "again.tar"
    command = ["pack", "demo-modified", str(again), "--dataset", "few_digits", "--results", str(quick_run)]
    assert main(command) == 0
    assert again.read_bytes() == pack.read_bytes()
    assert str(quick_run.parents[1]).encode() not in pack.read_bytes(), "no path of this machine"
    assert "again.tar exists" in fails(*command)


def test_records_that_have_logits_in_place_of_summaries_are_scored_too(quick_run: Path) -> None:
    """As those of earlier versions, which have the same names."""
    (folder,) = (quick_run / "runs").glob("*-standard-*")
    run = PackedRun.of_record(ResultsFolder(quick_run), folder.name)
    older = replace(run, about=run.about | {"signals": {"train_logits": {}}})
    assert older.can_score(AUM())
    assert not older.can_score(MeanLoss())


def test_unpacking_gives_back_every_file(pack: Path, quick_run: Path, tmp_path: Path) -> None:
    for _ in range(2):  # what is there is kept
        assert main(["unpack", str(pack), "--results", str(tmp_path / "r")]) == 0
    files = {str(path.relative_to(tmp_path / "r")): path for path in written(tmp_path / "r")}
    packed = [path for kind in ("runs", "labels", "answers", "flips") for path in written(quick_run / kind)]
    assert sorted(files) == sorted(str(path.relative_to(quick_run)) for path in packed)
    assert all((quick_run / name).read_bytes() == path.read_bytes() for name, path in files.items())
    assert main(["doctor", "--results", str(tmp_path / "r")]) == 0


@pytest.fixture
def without_data_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise AssertionError("it is not in this clone")

    for name in ("describe_dataset", "load_dataset", "_digits", "missing_file"):
        monkeypatch.setattr(f"benchmark.data.datasets.{name}", gone)
    for name in (
        "runs.training_job.load_dataset_once",
        "networks.backbone.weights_path",
        "networks.loading.load_backbone",
    ):
        monkeypatch.setattr(f"benchmark.{name}", gone)


@pytest.mark.usefixtures("without_data_and_weights")
def test_a_detector_is_scored_in_a_clone_without_data_or_weights(
    pack: Path, quick_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    command = ["run", "--from-pack", str(pack), "--detector", own_detector(tmp_path), "--results", str(results)]
    assert main([*command, "--dry-run"]) == 0
    assert "0 of 2 runs to train" in capsys.readouterr().out
    assert not results.exists()
    assert main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 of 2 runs trained" in said
    assert "note: left out, since the records lack what they read: AUM, threshold; " in said
    rows = pd.read_csv(results / "metrics.csv").query("line_up == 'original'").set_index("detector")
    assert {"my own", "LiNC", "AUM", "Data-IQ"} <= set(rows.index)
    assert (rows["status"] == "ok").all()
    assert set(rows["study"]) == {"demo-modified-from-pack"}
    scores, known = score_bytes(results), score_bytes(quick_run)
    assert {name: scores[name] for name in known} == known
    kept = pd.read_csv(quick_run / "accuracy.csv")["last_test"]
    assert pd.read_csv(results / "accuracy.csv")["last_test"].tolist() == kept.tolist()
    assert not (results / "features").exists()


def test_an_own_detector_has_the_scores_that_it_has_where_runs_were_trained(
    pack: Path, quick: tuple[str, ...], copied: Path, tmp_path: Path
) -> None:
    own, scores = own_detector(tmp_path), []
    for command, results in (([*quick], copied), (["run", "--from-pack", str(pack)], tmp_path / "clone")):
        assert main([*command, "--detector", own, "--detector", "LiNC", "--results", str(results)]) == 0
        scores.append({name: content for name, content in score_bytes(results).items() if "my-own" in name})
    assert len(scores[0]) == 1
    assert scores[0] == scores[1]
    compared = pd.read_csv(tmp_path / "clone" / "metrics.csv")
    assert set(compared["detector"]) == {"LiNC", "my own"}
    assert compared["minus_linc"].notna().sum() == 1


@pytest.mark.parametrize("detector", ["VoG", "confident learning", "Embedding(7)"])
def test_a_detector_whose_signals_are_missing_is_refused_first(
    detector: str, pack: Path, tmp_path: Path, fails: Fails
) -> None:
    name = own_detector(tmp_path, detector) if "(" in detector else detector
    said = fails("run", "--from-pack", pack, "--detector", name, "--results", tmp_path / "r")
    assert "no run of the pack has that" in said
    assert "standard: eval_summary, train_summary" in said
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "words", [["--rate", "0.1"], ["--seed", "0"], ["--weights", "x"], ["--force"], ["accuracy"], ["--device", "cpu"]]
)
def test_what_changes_runs_cannot_be_asked_of_a_pack(
    words: list[str], pack: Path, tmp_path: Path, fails: Fails
) -> None:
    assert "Leave out what chooses or changes runs" in fails("run", *words, "--from-pack", pack, "--results", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_there_with_other_bytes_is_refused(pack: Path, quick_run: Path, tmp_path: Path, fails: Fails) -> None:
    _, files = read(pack)
    for name in ("answers", "runs"):
        results = tmp_path / name
        path = results / next(file for file in files if file.startswith(name))
        path.parent.mkdir(parents=True)
        path.write_bytes(b"mine")
        assert "is there already, with other content" in fails("unpack", pack, "--results", results)
        assert written(results) == [path]
    shutil.copytree(quick_run / "runs", tmp_path / "more" / "runs")
    further = next((tmp_path / "more" / "runs").iterdir()) / "further.npy"
    further.touch()
    assert "is there already, with other content" in fails("unpack", pack, "--results", tmp_path / "more")


def test_what_cannot_be_packed(copied: Path, tmp_path: Path, fails: Fails) -> None:
    command = ("pack", "demo-modified", tmp_path / "x.tar", "--results", copied)
    assert "no study with runs in" in fails("pack", "demo", *command[2:])
    assert "no data set in the runs of demo-modified called 'digits'" in fails(*command, "--dataset", "digits")
    damaged = next(copied.glob("runs/*/trust.npy"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + b"?")
    assert "cannot be packed: the record" in fails(*command)
    damaged.write_bytes(content)
    next(copied.glob("flips/*")).write_text("{}")
    assert "cannot be packed" in fails(*command)
    shutil.rmtree(copied / "runs")
    assert "has no records of demo-modified, only rows of 2 runs" in fails(*command)
    assert [path.name for path in tmp_path.iterdir()] == [copied.name]


def test_noise_of_other_kinds_and_averaged_trainings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which images are hard is not known without features; trainings that only averages are made of are not packed."""
    digits = load_digits()
    for name, kept in (("zero_or_one", digits.target < 2), ("two_or_three", (digits.target | 1) == 3)):
        images = (digits.images[kept][:160] * 15.9).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", **medmnist_arrays(digits.target[kept][:160] % 2, images, 96, 32))
    here, there, path = str(tmp_path / "here"), str(tmp_path / "there"), str(tmp_path / "x.tar")
    network = ["--image-size", "32", "--batch-size", "32", "--epochs", "1", "--seed", "0", "--workers", "1"]
    noise = ["--noise", f"open-set:{tmp_path / 'two_or_three.npz'}", "--trainings", "2", "--name", "kinds"]
    study = ["--dataset", str(tmp_path / "zero_or_one.npz"), *network, *noise, "--detector", "mean loss"]
    assert main(["run", *study, "--results", here]) == 0
    assert main(["pack", "kinds", path, "--results", here]) == 0
    assert "2 runs of kinds" in " ".join(capsys.readouterr().out.split())
    assert main(["run", "--from-pack", path, "--detector", "mean loss", "--results", there]) == 0
    assert pd.read_csv(tmp_path / "there" / "wrong_labels.csv")["in_hardest_tenth"].isna().all()
    known, scores = score_bytes(tmp_path / "here"), score_bytes(tmp_path / "there")
    assert sorted(scores) == [name for name in sorted(known) if "-t0-" in name] != sorted(known)
    assert all(known[name] == content for name, content in scores.items())


def recipes() -> list[Recipe]:
    own = [LiNCRecipe(), LiNCRecipe(may_abstain=True), LiNCRecipe(trust_from_epoch=2), Standard()]
    return [*own, *(kind() for kind in RECIPES.values()), *(recipe for study in STUDIES for recipe in study.recipes)]


def test_every_run_of_the_studies_is_known_by_its_settings() -> None:
    detectors = {detector for study in STUDIES for detector in study.detectors}
    signals = {signal.key: {} for detector in detectors for signal in (*detector.needs, *detector.training.leaves)}
    about = {"sizes": [3, 2, 1], "num_classes": 2, "epochs": 3, "signals": signals, "commit": "x"}
    noise = NoiseSettings("open-set", 2, 0.25, 3, "digits@123")
    for grid in (grid for study in STUDIES for grid in study.grids):
        for recipe in recipes():
            run = RunSettings("a b", "x", noise, replace(Backbone(), weights="hub"), grid.training, recipe)
            settings = json.loads(json.dumps(settings_of(run)))
            assert PackedRun.of_settings(run.run_id, about | {"settings": settings}).run == run


def read(path: Path) -> tuple[dict[str, Any], Files]:
    with tarfile.open(path) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    return json.loads(files.pop("pack.json")), files


def forge(
    path: Path, about: object, files: Files, *members: tarfile.TarInfo, is_consistent: bool = True, kept: str = ""
) -> Path:
    """A pack, with all digests as they should be unless they are to stay as they were; and further members."""
    for name in [name for name in files if name.endswith(CHECKSUMS) and is_consistent and name != kept]:
        folder = name.removesuffix(CHECKSUMS)
        own = {file.removeprefix(folder): content for file, content in files.items() if file.startswith(folder)}
        sums = {file: {"bytes": len(content), "crc32": checksum([content])} for file, content in own.items()}
        files[name] = json.dumps({file: known for file, known in sums.items() if file != CHECKSUMS}).encode()
    if isinstance(about, dict) and is_consistent:
        listed = {
            name: {"bytes": len(file), "sha256": hashlib.sha256(file).hexdigest()} for name, file in files.items()
        }
        about = {**about, "files": listed}
    header = about if isinstance(about, bytes) else json.dumps(about).encode()
    with tarfile.open(path, "w") as tar:
        for name, content in {"pack.json": header, **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return path


def refused(path: Path, fails: Fails) -> str:
    """Without a file written or changed, in the folder or beside it."""
    before = {file: file.read_bytes() for file in written(path.parent)}
    said = fails("unpack", path, "--results", path.parent / "results")
    assert f"{path} is refused: " in said
    assert "Fetch it again" in said
    assert {file: file.read_bytes() for file in written(path.parent)} == before
    return said


def test_a_pack_that_cannot_be_unpacked_is_not_scored(pack: Path, tmp_path: Path, fails: Fails) -> None:
    (tmp_path / "x.tar").write_bytes(pack.read_bytes().replace(b"NUMPY", b"numpy"))
    said = fails("run", "--from-pack", tmp_path / "x.tar", "--results", tmp_path / "results")
    assert "another SHA-256" in said
    assert written(tmp_path) == [tmp_path / "x.tar"]


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


NAMES = ("../evil", "/tmp/evil", "runs/../../evil", "runs", "labels/evil.npz", ".")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_listed", [False, True])
def test_names_that_a_pack_does_not_have(name: str, is_listed: bool, pack: Path, tmp_path: Path, fails: Fails) -> None:
    about, files = read(pack)
    said = refused(forge(tmp_path / "x.tar", about, files | {name: b"evil"}, is_consistent=is_listed), fails)
    assert ("not those of its runs" if is_listed else "a further member") in said


KINDS = {"symbolic link": tarfile.SYMTYPE, "link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}
KINDS |= {"folder": tarfile.DIRTYPE, "sparse": tarfile.GNUTYPE_SPARSE, "unknown": b"Z"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_members_that_are_no_files(kind: bytes, pack: Path, tmp_path: Path, fails: Fails) -> None:
    about, files = read(pack)
    last = list(files)[-1]
    members = {name: content for name, content in files.items() if name != last}
    for target in ("/etc/passwd", "../../evil", last):
        forge(tmp_path / "x.tar", about, members, special(last, kind, target), is_consistent=False)
        refused(tmp_path / "x.tar", fails)


@pytest.mark.parametrize("size", [-1, -512, -10_240, 10**15])
@pytest.mark.parametrize("is_pax", [False, True])
def test_members_of_impossible_sizes(size: int, is_pax: bool, pack: Path, tmp_path: Path, fails: Fails) -> None:
    about, files = read(pack)
    name, _ = files.popitem()
    about["files"][name]["bytes"] = size
    forge(tmp_path / "x.tar", about, files, is_consistent=False)
    member = tarfile.TarInfo(name)
    member.size, member.pax_headers = (0, {"size": str(size)}) if is_pax else (size, {})
    with tarfile.open(tmp_path / "x.tar", "a", format=tarfile.PAX_FORMAT if is_pax else tarfile.GNU_FORMAT) as tar:
        tar.addfile(member)
    refused(tmp_path / "x.tar", fails)


@pytest.mark.parametrize("change", ["missing", "twice", "order", "longer", "byte", "renamed", "none"])
def test_members_that_are_not_those_listed(change: str, pack: Path, tmp_path: Path, fails: Fails) -> None:
    about, files = read(pack)
    first, *others = files
    changed = {
        "missing": {name: files[name] for name in others},
        "twice": files,
        "order": {name: files[name] for name in (*others, first)},
        "longer": files | {first: files[first] + b"?"},
        "byte": files | {first: files[first][:-1] + b"?"},
        "renamed": {"x" * (name == first) + name: content for name, content in files.items()},
        "none": {},
    }[change]
    again = [tarfile.TarInfo(others[-1])] * (change == "twice")
    refused(forge(tmp_path / "x.tar", about, changed, *again, is_consistent=False), fails)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000, b'{"format": "LiNC-Bench pack 1"}']
)
def test_headers_that_no_pack_has(content: bytes, pack: Path, tmp_path: Path, fails: Fails) -> None:
    refused(forge(tmp_path / "x.tar", content, read(pack)[1]), fails)


CHANGES: dict[str, tuple[tuple[str, ...], object]] = {
    "format": (("format",), "LiNC-Bench pack 2"),
    "study": (("study",), "../evil"),
    "no runs": (("runs",), {}),
    "runs": (("runs",), []),
    "epochs": (("runs", "*", "settings", "training", "epochs"), 13),
    "type": (("runs", "*", "settings", "training", "epochs"), "12"),
    "NaN": (("runs", "*", "settings", "training", "learning_rate"), float("nan")),
    "recipe": (("runs", "*", "settings", "recipe", "name"), "my own"),
    "recipe version": (("runs", "*", "settings", "recipe", "version"), 77),
    "later field": (("runs", "*", "settings", "training", "unheard"), 1),
    "weights": (("runs", "*", "settings", "backbone", "weights"), "other"),
    "size": (("runs", "*", "sizes"), [400, 60, 99]),
    "sizes": (("runs", "*", "sizes"), ["400", 60, 100]),
    "classes": (("runs", "*", "num_classes"), 11),
    "versions": (("runs", "*", "versions"), {}),
    "signals": (("runs", "*", "signals"), {}),
    "list of signals": (("runs", "*", "signals"), ["trust"]),
    "path of a signal": (("runs", "*", "signals"), {"../../evil": {}}),
}


@pytest.mark.parametrize(("keys", "value"), CHANGES.values(), ids=CHANGES)
def test_settings_that_are_not_those_of_the_runs(
    keys: tuple[str, ...], value: object, pack: Path, tmp_path: Path, fails: Fails
) -> None:
    about, files = read(pack)
    inner = about
    for key in keys[:-1]:
        inner = inner[next(iter(inner)) if key == "*" else key]
    inner[keys[-1]] = value
    refused(forge(tmp_path / "x.tar", about, files), fails)


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("unpickled"),)


def array_of(value: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array(value), allow_pickle=True)
    return buffer.getvalue()


def arrays_of(**values: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.array(value) for name, value in values.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


CONTENTS = {
    "objects": ("train_summary.npy", array_of([Evil()] * 3)),
    "given labels of objects": ("given_labels.npy", array_of([Evil()] * 400)),
    "predictions of objects": ("test_predictions.npy", array_of([Evil()])),
    "a pickle": ("trust.npy", pickle.dumps(Evil())),
    "labels of objects": (".npz", arrays_of(train=[Evil()] * 400, validation=[Evil()], test=[Evil()])),
    "labels in a pickle": (".npz", pickle.dumps(Evil())),
    "fewer labels": (".npz", arrays_of(train=[0] * 399, validation=[0] * 60, test=[0] * 100)),
    "labels of no class": (".npz", arrays_of(train=[10] * 400, validation=[0] * 60, test=[0] * 100)),
    "other labels": (".npz", arrays_of(train=[0] * 400, validation=[0] * 60, test=[0] * 100)),
    "other given labels": ("given_labels.npy", array_of([0] * 400)),
    "other predictions": ("test_predictions.npy", array_of([0] * 12)),
    "other signals": ("trust.npy", array_of([0.0] * 12)),
    "flips": ("flips", b'{"flips": {}}'),
    "deep flips": ("flips", b"[" * 100_000),
    "record": ("record.json", b"{}"),
    "history": ("history.json", b"[]"),
    "history of words": (
        "history.json",
        json.dumps([{"test_accuracy": "x", "validation_accuracy": 1.0}] * 12).encode(),
    ),
    "short history": ("history.json", json.dumps([{"validation_accuracy": 1.0}] * 12).encode()),
    "checksums": (CHECKSUMS, b'{"/etc/passwd": {"bytes": 1, "crc32": "0"}}'),
}


@pytest.mark.parametrize(("ending", "content"), CONTENTS.values(), ids=CONTENTS)
def test_files_that_do_not_belong_together(
    ending: str, content: bytes, pack: Path, tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though every digest is right, as in a pack that somebody made by hand."""
    monkeypatch.chdir(tmp_path)
    about, files = read(pack)
    name = next(name for name in files if name.endswith(ending) or name.startswith(f"{ending}/"))
    refused(forge(tmp_path / "x.tar", about, files | {name: content}, kept=name), fails)
    assert not (tmp_path / "unpickled").exists()


def test_files_that_are_no_tars(pack: Path, tmp_path: Path, fails: Fails) -> None:
    whole = pack.read_bytes()
    for size in (0, 100, 512, 5_000, len(whole) // 2, len(whole) - 20_480):
        (tmp_path / "x.tar").write_bytes(whole[:size])
        refused(tmp_path / "x.tar", fails)
    for content in (b"no tar" * 1000, pickle.dumps(Evil()), b"\0" * 10_240):
        (tmp_path / "x.tar").write_bytes(content)
        refused(tmp_path / "x.tar", fails)
    assert "expected a file" in fails("unpack", tmp_path)
    assert "does not exist" in fails("unpack", tmp_path / "nowhere.tar")

"""The command line from end to end: what is made, what is kept, and what happens when something is wrong."""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_info, threadpool_limits

from benchmark.cli import overrides
from benchmark.cli.command_line import main
from benchmark.disk.files import locked
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import merge_rows, read_table
from benchmark.record import TRAIN_SUMMARY, RunRecord, Signal
from benchmark.runs.plan import Sources, plan_study
from benchmark.runs.scores import read_scores
from benchmark.runs.studies import STUDIES, LineUp, Study, study_named
from benchmark.runs.units import detector_id
from detectors import DETECTORS, Detector
from detectors.aum import AUM
from detectors.el2n import EL2N
from detectors.linc import LiNCRecipe
from tests.conftest import QUICK_DETECTORS, medmnist_arrays, score_bytes


def training_times(results: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in (results / "runs").glob("*/record.json")}


def test_a_run_leaves_tidy_tables_figures_and_every_detector(quick_run: Path) -> None:
    metrics = pd.read_csv(quick_run / "metrics.csv")
    wanted = (
        "dataset noise rate true_rate noise_seed training_seed backbone recipe line_up detector epochs_used auroc auprc"
    )
    assert set(wanted.split()) <= set(metrics.columns)
    assert sorted(metrics.loc[metrics["line_up"] == "original", "detector"]) == sorted(QUICK_DETECTORS)
    assert set(metrics["line_up"]) == {"original", "hcat"}
    assert (metrics["status"] == "ok").all()
    assert metrics["auroc"].between(0, 1).all()
    assert metrics["true_rate"].unique() == pytest.approx([80 / 400])
    accuracy = pd.read_csv(quick_run / "accuracy.csv")
    assert sorted(accuracy["recipe"]) == ["linc", "standard"]
    assert (accuracy["best_test"] >= accuracy["last_test"]).all()
    for name in ("auc_by_detector", "accuracy_curves", "trust_histograms"):
        assert (quick_run / "figures" / "demo-modified" / f"{name}.svg").stat().st_size > 1000
    assert "| LiNC" in (quick_run / "tables" / "demo-modified" / "auc.md").read_text()


def test_every_recipe_faces_the_same_wrong_labels(quick_run: Path) -> None:
    labels = [np.load(path) for path in (quick_run / "runs").glob("*/given_labels.npy")]
    assert len(labels) == 2
    assert (labels[0] == labels[1]).all()


@pytest.mark.usefixtures("without_report")
def test_a_second_run_trains_nothing(quick: tuple[str, ...], copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times, kept = training_times(copied), list(copied.glob("scores/*/by_epochs/*.json"))
    written = [file.stat().st_mtime_ns for file in kept]
    assert main([*quick, "--results", str(copied)]) == 0
    assert training_times(copied) == times
    assert kept
    assert [file.stat().st_mtime_ns for file in kept] == written
    assert "0 of 2 runs trained" in capsys.readouterr().out


def test_report_brings_deleted_tables_and_figures_back_without_records(copied: Path) -> None:
    made = {path: path.read_bytes() for folder in ("tables", "figures") for path in (copied / folder).rglob("*.*")}
    for folder in ("tables", "figures", "runs", "scores", "features", "answers", "labels"):
        shutil.rmtree(copied / folder)
    assert main(["report", "--results", str(copied)]) == 0
    assert {path: path.read_bytes() for path in made} == made


@pytest.mark.usefixtures("without_report")
def test_force_trains_again_to_the_same_bytes(quick: tuple[str, ...], copied: Path) -> None:
    scores, times = score_bytes(copied), training_times(copied)
    assert main([*quick, "--workers", "1", "--force", "--results", str(copied)]) == 0
    assert all(training_times(copied)[run] > time for run, time in times.items())
    assert score_bytes(copied) == scores


@pytest.mark.usefixtures("without_report")
def test_a_signal_more_keeps_what_was_recorded(
    quick: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    without_detectors = quick[: quick.index("--detector")]
    arguments = [*without_detectors, "--workers", "1", "--results", str(results)]
    assert main([*arguments, "--detector", "AUM"]) == 0
    standard = next((results / "runs").glob("*-standard-*"))
    first = (standard / "train_summary.npy").read_bytes()
    capsys.readouterr()
    assert main([*arguments, "--detector", "mean loss", "--dry-run"]) == 0
    assert "again, to record" in capsys.readouterr().out
    assert main([*arguments, "--detector", "mean loss"]) == 0
    assert set(json.loads((standard / "record.json").read_text())["signals"]) == {"train_summary", "eval_summary"}
    assert (standard / "train_summary.npy").read_bytes() == first
    names = {label.partition(" (")[0] for label in pd.read_csv(results / "metrics.csv")["detector"]}
    assert names == {"AUM", "mean loss"}, "older rows stay"


def test_logits_of_all_epochs_serve_the_reader_of_one(
    quick: tuple[str, ...], quick_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readers = ("--detector", "EL2N", "--detector", "loss mixture", "--detector", "last loss")
    arguments = (*quick[: quick.index("--detector")], *readers, "--dry-run", "--results", str(quick_run))
    assert main([*arguments]) == 0
    assert "0 of 2 runs to train" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("without_report")
def test_a_study_that_does_not_ask_for_auroc_by_epochs_has_none(
    quick: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = replace(study_named("demo"), by_epochs=False)
    monkeypatch.setattr("benchmark.runs.studies.STUDIES", (demo,))
    arguments = [*quick[: quick.index("--detector")], "--workers", "1", "--results", str(tmp_path)]
    assert main([*arguments, "--detector", "EL2N", "--line-up", "original"]) == 0
    standard = next((tmp_path / "runs").glob("*-standard-*"))
    assert set(json.loads((standard / "record.json").read_text())["signals"]) == {"eval_summary-at_epochs=10"}
    assert not list(tmp_path.glob("scores/*/by_epochs"))
    assert read_table(ResultsFolder(tmp_path), "auc_by_epochs").empty
    assert len(read_table(ResultsFolder(tmp_path), "metrics")) == 1


@pytest.mark.usefixtures("without_report")
def test_auroc_by_epochs_is_computed_with_the_threads_of_scores(
    quick: tuple[str, ...], copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes depend on libraries' threads."""
    for file in copied.glob("scores/*/**/aum-*"):
        file.unlink()
    threads: dict[int, set[int]] = {}

    def score(self: AUM, record: RunRecord) -> np.ndarray:
        threads.setdefault(record.epochs, set()).update(pool["num_threads"] for pool in threadpool_info())
        return np.zeros(len(record.given_labels))

    monkeypatch.setattr(AUM, "score", score)
    with threadpool_limits(limits=2):
        assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert threads == {epochs: {1} for epochs in (12, *range(1, 11))}


def test_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "demo", "--dry-run", "--results", str(tmp_path / "none")]) == 0
    said = capsys.readouterr().out
    assert "18 of 18 runs to train" in said
    assert "MB of disk" in said
    assert re.search(r"EfficientNet-Lite0, 64 px +│ digits +│ 200 \+ 100 +│ +0\.[5-9]\d\d │", said)
    assert "first step, small" in said
    assert "first step, torch" not in said, "the plan has no such classifier"
    assert not (tmp_path / "none").exists()


def test_dry_run_downloads_neither_data_nor_weights_to_check_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it take long."""
    command = ["--dry-run", "--results", str(tmp_path), "--data-root", str(tmp_path)]
    assert main(["run", "--dataset", "breastmnist", *command]) == 0
    assert "EfficientNet-Lite0 is not checked on BreastMNIST: the data set is not here yet" in capsys.readouterr().out
    assert main([*quick, "--backbone", "resnet10t", *command]) == 0
    said = capsys.readouterr().out
    assert "resnet10t is not checked on few_digits: the weights are on the hub" in said
    assert "2 of 2 runs to train" in said
    monkeypatch.setattr("benchmark.evaluation.backbone_checks.LONGEST", 0)
    assert main([*quick, *command]) == 0
    assert "EfficientNet-Lite0 is not checked on few_digits: that would take about" in capsys.readouterr().out


def test_paper_studies_can_be_planned_without_data_or_weights(tmp_path: Path) -> None:
    (grid,) = study_named("paper-auc").grids
    training = grid.training
    assert (training.epochs, training.batch_size, training.learning_rate, training.weight_decay) == (
        70,
        128,
        5e-4,
        1e-4,
    )
    assert (training.milestones, training.decay) == ((10, 20, 40, 60), 0.7)
    assert grid.backbone.name == "vit_small_patch8_224.dino"
    assert len(study_named("paper-accuracy").datasets) == 10
    plan = plan_study(study_named("paper-accuracy"), Sources(ResultsFolder(tmp_path)))
    assert len(plan.units) == 10 * 6 * 3 * 2
    assert len({unit.run.run_id for unit in plan.units}) == len(plan.units)


def test_a_run_that_fails_is_a_row_and_a_report_is_made_all_the_same(
    quick: tuple[str, ...], copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(self: LiNCRecipe, job: object) -> None:
        raise ZeroDivisionError("by a test")

    monkeypatch.setattr(LiNCRecipe, "run", explode)
    assert main([*quick, "--seed", "1", "--workers", "1", "--results", str(copied)]) == 1
    assert "ZeroDivisionError: by a test" in capsys.readouterr().out
    rows = (
        pd.read_csv(copied / "metrics.csv").query("training_seed == 1 and line_up == 'original'").set_index("detector")
    )
    assert rows.loc["LiNC", "status"] == "failed"
    assert rows.loc["AUM", "status"] == "ok"
    assert main(["report", "--verbose", "--results", str(copied)]) == 0
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("studies", ("demo", "paper-auc", "vit_small_patch8_224.dino", "70 epochs")),
        ("detectors", ("LiNC", "AUM", "arXiv 2001.10528")),
        ("datasets", ("organsmnist", "path/to/file.csv")),
        ("backbones", ("tf_efficientnet_lite0", "any timm name")),
        ("noise", ("symmetric-inclusive",)),
    ],
)
def test_list_names_everything(what: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", what]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for name in names:
        assert name in said


def test_list_fits_a_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(study.name) for line in lines) for study in STUDIES)
    assert "detectors" in lines[-1]


# Detectors that go wrong.


@dataclass(frozen=True)
class _Raises(Detector):
    name: ClassVar[str] = "raises"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (TRAIN_SUMMARY,)

    def score(self, record: RunRecord) -> np.ndarray:
        raise ZeroDivisionError("by a test")


@dataclass(frozen=True)
class _NotANumber(_Raises):
    name: ClassVar[str] = "not a number"

    def score(self, record: RunRecord) -> np.ndarray:
        return np.full(len(record.given_labels), np.nan)


@pytest.mark.usefixtures("without_report")
def test_a_failing_detector_is_a_row_with_its_reason_and_the_rest_goes_on(
    quick: tuple[str, ...], copied: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_failures(name: str) -> Study:
        study = study_named(name)
        named = tuple(detector for detector in DETECTORS if detector.name in QUICK_DETECTORS)
        line_up = LineUp("original", (*named, _Raises(), _NotANumber()))
        return replace(study, grids=(replace(study.grids[0], line_ups=(line_up,)),))

    monkeypatch.setattr("benchmark.cli.studies.study_named", with_failures)
    times = training_times(copied)
    assert main([*quick[: quick.index("--detector")], "--workers", "1", "--results", str(copied)]) == 1
    assert training_times(copied) == times
    rows = pd.read_csv(copied / "metrics.csv").query("line_up == 'original'").set_index("detector")
    assert rows.loc["raises", "status"] == "failed"
    assert "ZeroDivisionError: by a test" in rows.loc["raises", "reason"]
    assert "not finite" in rows.loc["not a number", "reason"]
    assert rows.loc["AUM", "status"] == "ok"
    assert "failed: raises" in capsys.readouterr().out
    assert main(["status", "--results", str(copied)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "raises: ZeroDivisionError: by a test; not a number: " in told
    assert "1 done, 0 running, 1 failed, 0 interrupted" in told
    assert main(["doctor", "--results", str(copied)]) == 0
    assert "everything is intact" in capsys.readouterr().out, "a failure is no damage"


# Input that is wrong: a sentence, a non-zero exit, nothing half-written.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "dmeo"], "Did you mean 'demo'?"),
        (["run", "--detector", "AUMM"], "Did you mean 'AUM'?"),
        (["run", "--dataset", "digit"], "Did you mean 'digits'?"),
        (["run", "--noise", "symetric"], "Did you mean 'symmetric'?"),
        (["run", "--backbone", "tf_efficient_lite0"], "Did you mean 'tf_efficientnet_lite0'?"),
        (["run", "--rate", "1.5"], "from 0 to 1"),
        (["run", "--rate", "20"], "Did you mean 0.2?"),
        (["run", "--rate", "nan"], "from 0 to 1"),
        (["run", "--rate", "1e-9"], "None of the 1,259 training labels of digits would be wrong"),
        (["run", "--rate", "0.2", "--rate", "1e-9"], "Choose at least 0.0008, or 0 for labels as they are"),
        (["run", "--rate", "1.0"], "All of the 1,259 training labels of digits would be wrong"),
        (["run", "--rate", "0.9999"], "Choose a lower rate; 1 % is 0.01"),
        (["try-audit", "--rate", "nan"], "from 0 to 1"),
        (["try-audit", "--rate", "1e-9"], "None of the 1,797 labels of digits would be wrong"),
        (["try-audit", "--rate", "1.0"], "All of the 1,797 labels of digits would be wrong"),
        (["run", "--seed", "-1"], "must be from 0"),
        (["run", "--image-size", "100000"], "must be from 8 to 2,048"),
        (["run", "--detector", "nowhere.py:Mine"], "There is no file"),
        (["run", "--epochs", "0"], "must be from 1"),
        (["run", "--batch-size", "100000"], "fewer than one batch"),
        (["run", "--dataset", "chestmnist"], "several labels per image"),
        (["run", "--dataset", "nowhere/file.npz"], "does not exist"),
        (["run", "--weights", "nowhere.safetensors"], "does not exist"),
        (["run", "--workers", "0"], "must be from 1"),
        (["report", "dmeo"], "Did you mean 'demo'?"),
        (["run", "--backbone", "resnet81"], "Did you mean 'resnet18'?"),
        (["run", "--backbone", "vit_small_patch8_224.dinoo"], "Did you mean 'vit_small_patch8_224.dino'?"),
        (["report"], "has no results of any study yet"),
        (["report", "demo"], "linc-bench run demo"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: list[str], says: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "results").mkdir()
    assert says in fails(*arguments, "--results", tmp_path / "results")
    assert not list(tmp_path.rglob("*.npy"))
    assert not list(tmp_path.rglob("*.csv"))


def test_weights_of_another_network_stop_the_run_before_anything_is_written(
    quick: tuple[str, ...], fails: Callable[..., str], tmp_path: Path
) -> None:
    import timm
    from safetensors.torch import save_file

    save_file(timm.create_model("resnet18").state_dict(), tmp_path / "resnet.safetensors")
    said = fails(*quick, "--weights", tmp_path / "resnet.safetensors", "--results", tmp_path / "results")
    assert "does not hold the weights of tf_efficientnet_lite0" in said
    assert not list((tmp_path / "results").iterdir())


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there(device: str, fails: Callable[..., str], tmp_path: Path) -> None:
    if overrides.available_devices()[device]:
        pytest.skip(f"this machine has {device}")
    assert f"has no {device} device" in fails("run", "--device", device, "--results", tmp_path / "results")


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)


@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize(
    ("spoil", "file"),
    [
        pytest.param(cut, "history.json", marks=pytest.mark.long),
        (flip_a_byte, "train_summary.npy"),
        pytest.param(Path.unlink, "given_labels.npy", marks=pytest.mark.long),
    ],
)
def test_a_damaged_record_is_trained_again_to_the_same_bytes(
    quick: tuple[str, ...], copied: Path, spoil: Callable[[Path], None], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = score_bytes(copied)
    standard = next((copied / "runs").glob("*-standard-*"))
    whole = (standard / file).read_bytes()
    spoil(standard / file)
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    captured = capsys.readouterr()
    assert f"{standard.name} is trained again: " in " ".join((captured.out + captured.err).split())
    assert (standard / file).read_bytes() == whole
    assert score_bytes(copied) == scores


@pytest.mark.usefixtures("without_report")
def test_damaged_features_are_computed_again_before_anything_is_trained_on_them(
    quick: tuple[str, ...], copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (store,) = (copied / "features").iterdir()
    whole, scores = (store / "features.npy").read_bytes(), score_bytes(copied)
    flip_a_byte(store / "features.npy")
    assert main([*quick, "--workers", "1", "--force", "--results", str(copied)]) == 0
    assert "features.npy changed since it was written) and are computed again" in " ".join(
        capsys.readouterr().err.split()
    )
    assert (store / "features.npy").read_bytes() == whole
    assert score_bytes(copied) == scores


@pytest.mark.usefixtures("without_report")
def test_what_can_be_made_again_from_whole_records_is_made_again(quick: tuple[str, ...], copied: Path) -> None:
    """Scores, answer keys, given labels and tables damaged or deleted by hand: no training, the same bytes."""
    scores, times = score_bytes(copied), training_times(copied)
    metrics = (copied / "metrics.csv").read_text()
    damaged, lost = sorted((copied / "scores").rglob("*.npy"))[:2]
    damaged.write_bytes(damaged.read_bytes()[:99])
    lost.with_suffix(".json").unlink()
    shutil.rmtree(copied / "answers")
    shutil.rmtree(copied / "labels")
    (copied / "metrics.csv").unlink()
    assert main([*quick, "--workers", "1", "--results", str(copied)]) == 0
    assert training_times(copied) == times
    assert score_bytes(copied) == scores
    aurocs = [pd.read_csv(StringIO(text))["auroc"] for text in (metrics, (copied / "metrics.csv").read_text())]
    assert (aurocs[0] == aurocs[1]).all()


def test_rows_of_other_studies_stay_to_the_byte_when_a_study_is_run_again(tmp_path: Path) -> None:
    results = ResultsFolder(tmp_path)
    old = [{"study": study, "run": study, "detector": "AUM", "auroc": 0.1 + 0.2} for study in ("demo", "other")]
    merge_rows(results, "metrics", old, lambda rows: rows["study"] == "")
    before = (tmp_path / "metrics.csv").read_text().splitlines()
    new = [{"study": "demo", "run": "new", "detector": "AUM", "auroc": 0.9, "status": "ok"}]
    merge_rows(results, "metrics", new, lambda rows: rows["study"] == "demo")
    after = (tmp_path / "metrics.csv").read_text().splitlines()
    assert after[1].startswith("demo,new,")
    assert (after[0], after[2]) == (before[0], before[2])


@pytest.mark.usefixtures("without_report")
def test_averaged_scores_survive_a_training_that_failed(
    quick: tuple[str, ...], copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of one training is there whatever becomes of the others, and an average once made is kept."""
    arguments = [*quick[: quick.index("--detector")], "--trainings", "3", "--detector", "EL2N", "--line-up", "original"]
    arguments += ["--epochs", "2", "--workers", "1", "--results", str(copied), "--name", "averaged"]

    def fail_on_the_last(self: EL2N, record: RunRecord) -> np.ndarray:
        if record.settings["training"]["seed"] == 200:
            raise ZeroDivisionError
        return original(self, record)

    def rows() -> dict[int, str]:
        metrics = pd.read_csv(copied / "metrics.csv").query("study == 'averaged'")
        assert metrics["training_seed"].eq(0).all()
        return dict(zip(metrics["runs_averaged"], metrics["status"], strict=True))

    original = EL2N.score
    monkeypatch.setattr(EL2N, "score", fail_on_the_last)
    assert main(arguments) == 1
    assert rows() == {1: "ok", 3: "failed"}
    monkeypatch.setattr(EL2N, "score", original)
    assert main(arguments) == 0
    assert rows() == {1: "ok", 3: "ok"}
    for file in copied.glob("scores/*-t200-*/el2n-*"):
        file.unlink()
    monkeypatch.setattr(EL2N, "score", fail_on_the_last)
    assert main(arguments) == 1
    assert rows() == {1: "ok", 3: "ok"}, "a failure does not replace it"


@pytest.mark.usefixtures("without_report")
def test_averaged_scores_are_the_means_of_the_trainings(quick: tuple[str, ...], copied: Path) -> None:
    """On the same wrong labels, for every detector; in no table but that of metrics are there rows of them."""
    arguments = [*quick, "--trainings", "2", "--epochs", "2", "--workers", "1", "--results", str(copied)]
    assert main([*arguments, "--name", "averaged"]) == 0
    metrics = pd.read_csv(copied / "metrics.csv").query("study == 'averaged'")
    assert {tuple(rows["runs_averaged"]) for _, rows in metrics.groupby(["line_up", "detector"])} == {(1, 2)}
    runs = pd.read_csv(copied / "runs.csv").query("study == 'averaged'").set_index(["recipe", "training_seed"])["run"]
    assert sorted(runs.index) == [("linc", 0), ("linc", 100), ("standard", 0), ("standard", 100)]
    given = [np.load(copied / "runs" / run / "given_labels.npy") for run in runs]
    assert all((labels == given[0]).all() for labels in given)
    scores = [read_scores(copied / "scores" / run / f"{detector_id(AUM())}.npy")[0] for run in runs["standard"]]
    (answers,) = (copied / "answers").glob("*.npz")
    expected = roc_auc_score(given[0] != np.load(answers)["train"], np.mean(scores, axis=0))
    row = metrics.query("detector == 'AUM' and runs_averaged == 2").iloc[0]
    assert row["auroc"] == pytest.approx(expected, abs=1e-12)
    assert row["run"] == runs["standard", 0]
    for name in ("roc", "agreement", "auc_by_epochs", "auroc_draws", "accuracy", "curves"):
        rows = pd.read_csv(copied / f"{name}.csv")
        assert not rows["run"].str.contains("-t100-").any(), name


def test_a_detector_whose_signal_cannot_be_had_is_refused_before_training(
    fails: Callable[..., str], tmp_path: Path
) -> None:
    own = tmp_path / "hopeful.py"
    own.write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from detectors.base import Detector\nfrom detectors.linc import TRUST\n\n"
        "@dataclass(frozen=True)\nclass Hopeful(Detector):\n    name: ClassVar[str] = 'hopeful'\n"
        "    needs = (TRUST,)\n    def score(self, record): return record[TRUST][0]\n"
    )
    said = fails("run", "--detector", f"{own}:Hopeful", "--results", tmp_path / "results")
    assert "hopeful needs trust, but its recipe 'standard'" in said
    own.write_text(own.read_text().replace("'hopeful'", "'AUM'").replace("(TRUST,)", "()"))
    assert "two detectors called 'AUM'" in fails("run", "--detector", f"{own}:Hopeful", "--results", tmp_path / "r")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_results_folder_without_permission(quick: tuple[str, ...], fails: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "results").mkdir(mode=0o500)
    assert "cannot be written to" in fails(*quick, "--results", tmp_path / "results")


def test_a_results_folder_that_is_a_file(quick: tuple[str, ...], fails: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    assert "is a file" in fails(*quick, "--results", tmp_path / "results")
    assert "is a file" in fails(*quick, "--dry-run", "--results", tmp_path / "results")


def test_without_noise_accuracy_is_reported_and_detection_says_why_not(
    quick: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    assert main([*quick, "--rate", "0", "--workers", "1", "--results", str(results)]) == 0
    metrics = pd.read_csv(results / "metrics.csv")
    assert (metrics["status"] == "undefined").all()
    assert metrics["auroc"].isna().all()
    assert "nothing to detect" in " ".join(capsys.readouterr().out.split())
    assert pd.read_csv(results / "accuracy.csv")["last_test"].notna().all()


@pytest.mark.usefixtures("without_report")
@pytest.mark.long
def test_two_classes_at_half_exclusive_noise_leave_nothing_to_find(odd_or_even: Path, tmp_path: Path) -> None:
    """The labels are coin tosses then: AUCs that lie on one side of 0.5 would be a leak.

    One draw of the noise is not enough: a network learns one of two labels for each cluster of alike images, right or
    wrong by the chance of that draw, and every detector and seed inherits it.
    """
    results = tmp_path / "results"
    seeds = [option for seed in range(6) for option in ("--noise-seed", str(seed))]
    options = ["--dataset", str(odd_or_even), "--rate", "0.5", "--image-size", "32", "--epochs", "6", "--seed", "0"]
    # VoG and cross-validation alone would take most of the time; `linc-bench run` with all of them is in the notes.
    names = [detector.name for detector in DETECTORS if detector.name not in ("VoG", "confident learning")]
    chosen = [option for name in names for option in ("--detector", name)]
    assert main(["run", *options, *seeds, *chosen, "--line-up", "original", "--results", str(results)]) == 0
    metrics = pd.read_csv(results / "metrics.csv")
    assert sorted(metrics["detector"].unique()) == sorted(names)
    for detector, group in metrics.groupby("detector"):
        assert len(group) == 6
        assert ttest_1samp(group["auroc"], 0.5).pvalue > 0.001, detector


@pytest.mark.usefixtures("without_report")
def test_a_data_set_given_by_path_uses_the_inclusive_noise_asked_for(odd_or_even: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    options = ["--noise", "symmetric-inclusive", "--rate", "0.4", "--workers", "1", "--seed", "0", "--epochs", "1"]
    options += ["--detector", "LiNC"]
    assert main(["run", "--dataset", str(odd_or_even), "--image-size", "32", *options, "--results", str(results)]) == 0
    metrics = pd.read_csv(results / "metrics.csv")
    assert set(metrics["dataset"]) == {"odd_or_even"}
    assert metrics["true_rate"].iloc[0] == pytest.approx(0.2, abs=0.03)
    assert (metrics["rate"] == 0.4).all()


@pytest.mark.long
def test_real_medmnist_with_a_real_vit(real_data: Path, tmp_path: Path) -> None:
    weights = real_data / "vit_small_patch14_dinov2.safetensors"
    options = ["--dataset", "breastmnist", "--data-root", str(real_data), "--weights", str(weights)]
    options += ["--backbone", "vit_small_patch14_dinov2", "--image-size", "56", "--epochs", "6", "--seed", "0"]
    assert main(["run", *options, "--line-up", "original", "--results", str(tmp_path)]) == 0
    metrics = pd.read_csv(tmp_path / "metrics.csv").set_index("detector")
    assert sorted(metrics.index) == sorted(detector.name for detector in DETECTORS)
    assert (metrics["status"] == "ok").all()
    assert metrics.loc["LiNC", "auroc"] > 0.6, "far from chance after six epochs, even on 546 images"
    assert metrics.loc["LiNC", "samples"] == 546


@pytest.mark.usefixtures("without_report")
def test_image_folders_run_too(tmp_path: Path) -> None:
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    for i, (image, label) in enumerate(zip(digits.images[:300], digits.target[:300], strict=True)):
        folder = tmp_path / "images" / f"digit {label % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15.9).astype(np.uint8)).save(folder / f"{i}.png")
    options = ["--detector", "LiNC", "--workers", "1", "--image-size", "32", "--epochs", "2", "--seed", "0"]
    assert main(["run", "--dataset", str(tmp_path / "images"), *options, "--results", str(tmp_path / "results")]) == 0
    assert set(pd.read_csv(tmp_path / "results" / "metrics.csv")["samples"]) == {210}


def test_a_file_in_medmnists_layout_with_too_few_samples_for_a_batch(tmp_path: Path, fails: Callable[..., str]) -> None:
    images = np.zeros((80, 8, 8), np.uint8)
    np.savez(tmp_path / "small.npz", **medmnist_arrays(np.arange(80) % 2, images, 40, 20))
    assert "fewer than one batch of 64" in fails(
        "run", "--dataset", tmp_path / "small.npz", "--results", tmp_path / "r"
    )


@pytest.mark.usefixtures("without_report")
def test_features_are_listed_and_cleaned(
    quick: tuple[str, ...], copied: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]
) -> None:
    (store,) = (copied / "features").iterdir()
    (copied / "features" / ".partial-other").mkdir()
    assert main(["features", "list", "--results", str(copied)]) == 0
    said = capsys.readouterr().out
    assert "unfinished" in said
    size = re.search(r"\d+\.\d kB", said)[0]  # type: ignore[index]
    assert "Choose: names" in fails("features", "clean", "--results", copied)
    assert "no feature store called 'nosuch'" in fails("features", "clean", "nosuch", "--results", copied)
    assert main(["features", "clean", "--unfinished", "--results", str(copied)]) == 0
    assert list((copied / "features").iterdir()) == [store]
    (copied / "running").mkdir(exist_ok=True)
    (copied / "running" / "some-run.json").write_text("{}")
    for name in (store.name, "some-run"):
        with locked(copied / "locks", name):
            assert f"{name} is in use" in fails("features", "clean", store.name, "--results", copied)
    before = score_bytes(copied)
    assert main(["features", "clean", store.name, "--results", str(copied)]) == 0
    assert f"1 removed, {size} freed" in capsys.readouterr().out
    assert main([*quick, "--force", "--results", str(copied)]) == 0, "they are computed again when needed"
    assert score_bytes(copied) == before
    assert main(["features", "clean", "--all", "--results", str(copied)]) == 0
    assert not list((copied / "features").iterdir())

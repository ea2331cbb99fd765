"""Trials of the audit: labels made wrong on purpose, beside cleanlab and chance."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from benchmark.audit.audited_data import write_digits
from benchmark.audit.ranking import HELD_OUT
from benchmark.audit.settings import DETECTORS
from benchmark.cli.command_line import main
from benchmark.disk import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.trials.peers import out_of_sample_probabilities
from benchmark.trials.tables import AUDIT, CLEANLAB, CLEANLAB_HELD_OUT, RANDOM, count_table, trial_groups
from benchmark.trials.wrong_labels import given_labels, trials_of

COUNT = 600
SETTING = {"dataset": "breastmnist", "samples": 100, "rate": 0.1, CLEANLAB: 0.2, CLEANLAB_HELD_OUT: 0.1, "share": 0.1}
SETTING |= {
    "data": "0",
    "noise": "symmetric",
    "backbone": "tf_efficientnet_lite0",
    "image_size": 64,
    "trainings": 1,
    "is_known": True,
}
COUNTED = pd.DataFrame(
    [
        SETTING | {"estimate": 0.1, "low": 0.0, "is_evidence": False},
        SETTING | {"estimate": 0.3, "low": 0.2, "is_evidence": True},
    ]
)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of two trials on digits, one of them with labels as they are."""
    folder, digits = tmp_path_factory.mktemp("trials"), load_digits(n_class=4)
    arrays, ends = {}, {"train": (0, 400), "val": (400, 500), "test": (500, COUNT)}
    for split, window in ends.items():
        arrays[f"{split}_images"] = (digits.images[slice(*window)] * 15).astype(np.uint8)
        arrays[f"{split}_labels"] = digits.target[slice(*window)][:, None]
    np.savez(folder / "four.npz", **arrays)
    assert _try(folder) == 0
    return folder


def _try(folder: Path, code: str = "abc1234") -> int:
    options = ["--rate", "0", "--rate", "0.2", "--trials", "1", "--workers", "1", "--image-size", "32"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.disk.provenance.commit", lambda: code)
        return main(["try-audit", str(folder / "four.npz"), "--results", str(folder / "results"), *options])


def test_digits_are_written_as_medmnist_lays_them_out(tmp_path: Path) -> None:
    with np.load(write_digits(tmp_path)) as file:
        parts = [f"{split}_{part}" for split in ("train", "val", "test") for part in ("images", "labels")]
        assert file.files == parts


@pytest.mark.long
def test_an_audit_finds_flipped_labels_better_than_chance(tried: Path) -> None:
    rows = pd.read_csv(tried / "results" / "audit_precision.csv").set_index(["method", "first"])["precision"]
    methods = {AUDIT, HELD_OUT, *(one.name for one in DETECTORS), CLEANLAB, RANDOM}
    assert set(rows.index.get_level_values("method")) == methods
    assert set(rows.index.get_level_values("first")) == {0.01, 0.05, 0.1}
    assert rows[AUDIT, 0.1] > 0.9
    assert rows[CLEANLAB, 0.1] > 0.8
    assert rows[RANDOM, 0.1] == pytest.approx(0.2, abs=0.15)


@pytest.mark.long
def test_true_and_estimated_counts_are_in_one_row(tried: Path) -> None:
    rows = pd.read_csv(tried / "results" / "audit_counts.csv").set_index("rate")
    assert rows["share"].to_dict() == {0.0: 0.0, 0.2: 0.2}
    assert rows["is_evidence"].to_dict() == {0.0: False, 0.2: True}
    assert (rows["low"] <= rows["share"]).all()
    assert rows["low"][0.2] > 0.05
    assert rows[[CLEANLAB, CLEANLAB_HELD_OUT]].notna().all(axis=None)
    assert {"commit", "torch", "scikit-learn", "cleanlab version"} <= set(rows)


@pytest.mark.long
def test_simulated_reviews_are_in_a_table(tried: Path) -> None:
    rows = pd.read_csv(tried / "results" / "audit_reviews.csv")
    assert set(zip(rows["mistakes"], rows["decisions"], strict=True)) == set(product((0, 0.05), (50, 100, 200)))
    perfect = rows[(rows["rate"] == 0.2) & (rows["mistakes"] == 0)].set_index("decisions")
    assert perfect["covers"].all()
    assert (perfect["low"] <= 0.2).all()
    assert (perfect["high"] >= 0.2).all()
    assert (perfect["high"] - perfect["low"]).is_monotonic_decreasing
    assert (perfect["found"] > 2 * perfect["by_chance"]).loc[[50, 100]].all()
    assert "After a review of the random sample" in (tried / "results" / "details.html").read_text()


@pytest.mark.long
def test_the_page_has_the_trials_and_a_second_call_repeats_none(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "How many labels are wrong?" in (tried / "results" / "details.html").read_text()
    assert "cleanlab" in (tried / "results" / "tables" / "audit" / "precision.md").read_text()
    monkeypatch.setattr("benchmark.trials.run_trials.rank_labels", lambda *_: pytest.fail("it was done already"))
    before = (tried / "results" / "audit_counts.csv").read_bytes()
    assert _try(tried) == 0
    assert (tried / "results" / "audit_counts.csv").read_bytes() == before
    with pytest.raises(pytest.fail.Exception, match="it was done already"):
        _try(tried, "abc1234-dirty")
    with np.load(tried / "four.npz") as arrays:
        np.savez(tried / "four.npz", **dict(arrays) | {"val_labels": arrays["val_labels"] % 3})
    with pytest.raises(pytest.fail.Exception, match="it was done already"):
        _try(tried)


def test_a_class_without_samples_does_not_stop_a_trial() -> None:
    """Flips may take a rare class away."""
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 3], [60, 60, 2])
    probabilities = out_of_sample_probabilities(generator.normal(size=(122, 5)) + labels[:, None], labels, None, 5, 0)
    assert probabilities.shape == (122, 5)
    assert (probabilities[:, [2, 4]] == 0).all()
    assert (probabilities.argmax(axis=1) == labels)[:120].mean() > 0.7


def test_labels_that_people_gave_are_tried_on_the_splits_that_have_them(tmp_path: Path) -> None:
    digits, arrays = load_digits(n_class=4), {}
    images, labels = (digits.images * 15).astype(np.uint8), digits.target
    for split, window in {"train": slice(0, 400), "val": slice(400, 500), "test": slice(500, 600)}.items():
        arrays |= {f"{split}_images": images[window], f"{split}_labels": labels[window][:, None]}
    arrays |= {
        "train_labels_hasty": (labels[:400] + (np.arange(400) % 10 == 0)) % 4,
        "val_labels_hasty": labels[400:500],
    }
    np.savez(tmp_path / "four.npz", **arrays)
    work = ResultsFolder(tmp_path / "work")
    ((data, kind, noise),) = trials_of(tmp_path / "four.npz", ["given:train_labels_hasty"], [0.2], [0], work)
    assert (len(data.labels), noise.rate, noise.title) == (500, 0.1, "given:hasty")
    given = given_labels(data, kind, noise)
    assert (given != data.labels).sum() == 40
    (one,) = trials_of(tmp_path / "four.npz", ["boundary"], [0.2], [0], work)
    drawn = given_labels(*one)
    assert len(one[0].labels) == len(drawn) == 600
    assert 0.1 < (drawn != one[0].labels).mean() < 0.3
    with pytest.raises(LincBenchError, match="replaces images"):
        list(trials_of(tmp_path / "four.npz", ["open-set:digits"], [0.2], [0], work))


def test_without_cleanlab_the_error_says_what_to_install(
    tried: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    monkeypatch.setitem(sys.modules, "cleanlab.count", None)
    assert _try(tried) == 1
    assert "pip install cleanlab" in capsys.readouterr().err


def test_the_table_of_counts_has_coverage_and_spread() -> None:
    row = count_table(COUNTED).iloc[0]
    assert row["data set"] == "BreastMNIST"
    assert row["at least"] == "10.0%"
    assert row["holds"] == "1 of 2"
    assert row["claims noise"] == "1 of 2"
    assert row["if even"] == "20.0% (10.0% to 30.0%)"


def test_precision_is_averaged_over_trials_or_over_data_sets() -> None:
    rows = pd.DataFrame(
        {"dataset": ["a", "a", "b"], "method": "audit", "first": 0.05, "precision": [0.5, 0.7, 0.9]}
    ).assign(
        data="an identity", noise="symmetric", rate=0.1, backbone="tf_efficientnet_lite0", image_size=64, trainings=1
    )
    tables = {"audit_precision": rows, "audit_counts": COUNTED}
    groups = trial_groups(lambda name: tables.get(name, COUNTED[:0]))
    column = "10% wrong, first 5%"
    assert groups["summary"].tables[0][1][column].tolist() == ["0.75 (0.60 to 0.90)"]
    assert [table[column].tolist() for _, table in groups["precision"].tables] == [["0.60 ± 0.14"], ["0.90"]]

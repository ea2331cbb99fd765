"""Audits of arrays: held-out probabilities, embeddings and images, or any of them, give the same files as an audit."""

import inspect
import json
from collections.abc import Callable
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import benchmark.audit
from benchmark.audit import audit_arrays
from benchmark.audit.apply_review import apply_review, audit_digest
from benchmark.audit.from_arrays import BY_EMBEDDING, MARGIN
from benchmark.audit.ranking import HELD_OUT
from benchmark.audit.run_audit import audit
from benchmark.audit.settings import DETECTORS
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone
from benchmark.record import EMBEDDING, RunRecord
from benchmark.statistics.held_out import held_out_probabilities
from tests.conftest import medmnist_arrays

SMALL = Backbone(image_size=32)
COUNT, CLASSES = 600, 3
NAMES = ("no finding", "0", "=2")
SOURCES = ("probabilities", "embeddings", "images")
NO_TRAINING = [given for size in (1, 2, 3) for given in combinations(SOURCES, size) if given != ("images",)]


def generated(count: int = COUNT) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Labels, of which a tenth is wrong; which those are; and arrays that know the truth more or less."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, CLASSES, count)
    is_wrong = generator.random(count) < 0.1
    labels = np.where(is_wrong, (truth + 1) % CLASSES, truth)
    embeddings = generator.normal(size=(count, 12)) + 4 * np.eye(12)[truth]
    logits = 2 * np.eye(CLASSES)[truth] + generator.normal(size=(count, CLASSES))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    images = (generator.integers(0, 80, (count, 8, 8, 3)) + 60 * truth[:, None, None, None]).astype(np.uint8)
    return labels, is_wrong, {"probabilities": probabilities, "embeddings": embeddings, "images": images}


LABELS, IS_WRONG, ARRAYS = generated()


@pytest.mark.parametrize("given", NO_TRAINING)
def test_any_of_the_arrays_will_do(given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmark.audit.from_arrays.rank_labels", lambda *_: pytest.fail("nothing is trained"))
    out = tmp_path / "out"
    found = audit_arrays(LABELS, **{name: ARRAYS[name] for name in given}, class_names=NAMES, out=out)
    rows = found.samples
    is_wrong = IS_WRONG[rows["id"].astype(int)]
    assert roc_auc_score(is_wrong, -rows["rank"]) > 0.9
    assert (rows["given"] == np.array(NAMES)[LABELS[rows["id"].astype(int)]]).all()
    by_embedding = [detector.name for detector in BY_EMBEDDING] if "embeddings" in given else []
    names = [*by_embedding, MARGIN, HELD_OUT]
    columns = ["id", "rank", "sample", "given", "suggested", "confidence"]
    assert list(rows) == [*columns, *chain.from_iterable((name, f"{name} rank") for name in names)]
    for name in names:
        assert roc_auc_score(is_wrong, rows[name]) > 0.8, "higher is more suspicious"
    said = " ".join(found.sentences)
    assert "No p_wrong: only an audit that trains, on 200 images or more" in said
    assert ("write decisions.csv by hand" in said) == ("images" not in given)
    for name in SOURCES:
        assert (f"No {name}: " in said) == (name not in given)
    assert ("no page with pictures, no duplicates by pixels" in said) == ("images" not in given)
    written = {path.name for path in out.iterdir()}
    assert written == {"audit.csv", "audit.json", "rates.csv"} | ({"audit.html"} if "images" in given else set())
    about = json.loads((out / "audit.json").read_text())
    assert about["audit"] == audit_digest(rows)
    assert about["arrays"] == list(given)
    assert found.errors.low <= IS_WRONG.mean()


def test_scores_are_those_of_the_probabilities_and_of_the_detectors() -> None:
    found = audit_arrays(LABELS, probabilities=ARRAYS["probabilities"], embeddings=ARRAYS["embeddings"])
    rows = found.samples.set_index(found.samples["id"].astype(int)).sort_index()
    for number in range(0, COUNT, 50):
        own = ARRAYS["probabilities"][number]
        others = np.delete(own, LABELS[number])
        assert rows.loc[number, HELD_OUT] == pytest.approx(1 - own[LABELS[number]])
        assert rows.loc[number, MARGIN] == pytest.approx((1 - (own[LABELS[number]] - others.max())) / 2)
        assert rows.loc[number, "suggested"] == str(own.argmax())
        assert rows.loc[number, "confidence"] == pytest.approx(own.max())
    embeddings = ARRAYS["embeddings"].astype(np.float32)
    record = RunRecord.from_arrays(given_labels=LABELS, num_classes=CLASSES, **{EMBEDDING.key: embeddings})
    for detector in BY_EMBEDDING:
        np.testing.assert_array_equal(rows[detector.name], detector.score(record))


def test_without_probabilities_they_are_held_out_on_the_embeddings() -> None:
    patients = np.arange(COUNT) // 4
    found = audit_arrays(LABELS, embeddings=ARRAYS["embeddings"], fold_by=patients)
    rows = found.samples.set_index(found.samples["id"].astype(int)).sort_index()
    embeddings = ARRAYS["embeddings"].astype(np.float32)
    expected = held_out_probabilities(embeddings, LABELS, CLASSES, 0, groups_N=patients)
    np.testing.assert_allclose(rows["confidence"], expected.max(axis=1))
    others = held_out_probabilities(embeddings, LABELS, CLASSES, 0)
    assert not np.allclose(rows["confidence"], others.max(axis=1)), "folds matter"


def test_help_shows_what_can_be_given() -> None:
    for function, named in ((benchmark.audit.audit, "fold_by"), (audit_arrays, "groups")):
        assert named in inspect.signature(function).parameters


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = audit_arrays(LABELS, probabilities=ARRAYS["probabilities"], images=ARRAYS["images"])
    assert found.folder is None
    assert list(tmp_path.iterdir()) == []


def test_ids_groups_and_splits_are_used_and_a_second_audit_replaces_the_first(tmp_path: Path) -> None:
    ids = [f"scan {number}; a|b" for number in range(COUNT)]
    images = ARRAYS["images"].copy()
    images[-1] = images[0]
    options: dict[str, Any] = {"ids": ids, "groups": np.where(IS_WRONG, "B", "A"), "out": tmp_path / "out"}
    options["splits"] = ["train"] * 500 + ["test"] * 100
    patients = [None, *range(1, COUNT - 1), 1]
    first = audit_arrays(LABELS, probabilities=ARRAYS["probabilities"], images=images, fold_by=patients, **options)
    assert set(first.samples["id"]) == set(ids)
    rates = first.rates[first.rates["of"] == "group"].set_index("which")["other label suggested"]
    assert rates["B"] > rates["A"] + 0.5
    assert any("1 of 100 test images (1.0%) have a duplicate in training or validation" in s for s in first.sentences)
    assert any("1 value of fold_by occurs in more than one split." in s for s in first.sentences)
    assert (tmp_path / "out" / "audit.html").exists()
    decisions = first.samples.head(1).assign(audit=audit_digest(first.samples), decision="keep", label="")
    decisions[["audit", "id", "given", "decision", "label"]].to_csv(tmp_path / "d.csv", index=False)
    applied = apply_review(tmp_path / "out" / "audit.csv", [tmp_path / "d.csv"], tmp_path / "labels.csv")
    assert (applied.labels["decision"] == "keep").sum() == 1
    again = audit_arrays(LABELS, probabilities=ARRAYS["probabilities"], **options)
    assert len(again.samples) == COUNT
    assert not (tmp_path / "out" / "audit.html").exists(), "it would show another list"


def test_images_alone_are_audited_as_an_npz_is(tmp_path: Path) -> None:
    """With a class of one sample."""
    labels, images = LABELS[:60].copy(), ARRAYS["images"][:60]
    labels[7] = 3
    names = ("a", "b", "c", "rare")
    found = audit_arrays(
        labels, images=images, class_names=names, out=tmp_path / "arrays", backbone=SMALL, say=lambda text: None
    )
    np.savez(tmp_path / "same.npz", **medmnist_arrays(labels, images, 60, 0))
    expected = audit(tmp_path / "same.npz", tmp_path / "npz", backbone=SMALL, say=lambda text: None).samples
    assert found.samples["id"].tolist() == expected["id"].str.removeprefix("train/").tolist()
    scores = [*(detector.name for detector in DETECTORS), HELD_OUT, "trust"]
    pd.testing.assert_frame_equal(found.samples[scores], expected[scores])
    assert found.samples["given"].tolist() == [names[int(label)] for label in expected["given"]]
    assert found.notes == ()
    assert (tmp_path / "arrays" / "audit.html").exists()
    assert (tmp_path / "arrays" / "work" / "arrays.npz").exists()


def test_classes_with_one_sample_or_none_are_allowed(tmp_path: Path) -> None:
    labels = LABELS[:50].copy()
    labels[3] = 3
    few = {name: ARRAYS[name][:50] for name in ("embeddings", "images")}
    found = audit_arrays(labels, **few, class_names=["0", "1", "2", "3", "nobody"], out=tmp_path / "out")
    assert np.isfinite(found.samples.select_dtypes(float)).all(axis=None)
    assert set(found.samples["given"]) == {"0", "1", "2", "3"}


def changed(name: str, change: Callable[[np.ndarray], object]) -> dict[str, Any]:
    array = ARRAYS[name].copy()
    return {name: replaced if (replaced := change(array)) is not None else array}


def with_value(row: int, value: float) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array[row, 0] = value

    return change


P = {"probabilities": ARRAYS["probabilities"]}
BAD: list[tuple[object, dict[str, Any], str]] = [
    (LABELS, {}, "nothing to audit the labels by. Give probabilities, embeddings or images"),
    (LABELS[:39], {"probabilities": ARRAYS["probabilities"][:39]}, "There are 39 samples; an audit needs at least 40"),
    ([], P, "There are no labels"),
    (LABELS[:-1], P, "probabilities has 600 rows for 599 labels"),
    (LABELS[:-1], {"embeddings": ARRAYS["embeddings"]}, "embeddings has 600 rows for 599 labels"),
    (LABELS[:-1], {"images": ARRAYS["images"]}, "images has 600 pictures for 599 labels"),
    (LABELS + 0.5, P, r"labels has \d\.5; labels are whole numbers from 0"),
    (np.where(IS_WRONG, np.nan, LABELS), P, "labels has nan; labels are whole numbers from 0"),
    (LABELS.astype(str), P, "labels is <U21 of shape .600,.; expected one whole number per sample"),
    (LABELS[:, None], P, "labels is int64 of shape .600, 1.; expected one whole number per sample"),
    (LABELS - 1, P, "labels run from -1 to 1; expected 0 to 2"),
    (LABELS + 1, P, "labels run from 1 to 3; expected 0 to 2"),
    (LABELS * 1000, {"embeddings": ARRAYS["embeddings"]}, "labels run from 0 to 2000; expected numbers from 0 without"),
    (np.ones(COUNT, int), P, "labels has only one class, 1; an audit needs at least two"),
    (LABELS, changed("probabilities", with_value(7, np.nan)), "probabilities has NaN or infinity in row 7"),
    (LABELS, changed("probabilities", with_value(8, -0.1)), "probabilities has a negative number in row 8"),
    (LABELS, changed("probabilities", with_value(9, 3)), r"probabilities sum to 3\.\d+ in row 9, not to one"),
    (
        LABELS,
        changed("probabilities", lambda array: array[:, 0]),
        "probabilities is float64 of shape .600,.; expected a",
    ),
    (LABELS, changed("embeddings", with_value(3, np.inf)), "embeddings has NaN or infinity in row 3"),
    (LABELS, changed("embeddings", lambda array: array[:, :1]), "embeddings has 1 features per sample; at least 2"),
    (LABELS, {"embeddings": [[1, 2], [3]] * 300}, "embeddings cannot be read as an array"),
    (LABELS, changed("images", lambda array: array / 255), "images is float64 of shape"),
    (
        LABELS,
        changed("images", lambda array: array[..., :2]),
        "images is uint8 of shape .600, 8, 8, 2.; expected 8-bit",
    ),
    (LABELS, P | {"class_names": ["a", "b"]}, "There are 2 class_names for 3 columns of probabilities"),
    (LABELS, P | {"class_names": ["a", "b", "a"]}, "class_names has a name more than once"),
    (LABELS, P | {"ids": ["a"] * COUNT}, "'a' is in ids more than once"),
    (LABELS, P | {"ids": ["", *[""] * (COUNT - 1)]}, "'' is in ids more than once"),
    (LABELS, P | {"ids": [f"{number}\nx" for number in range(COUNT)]}, "ids has a line break in '0.nx'"),
    (LABELS, P | {"groups": ["a"]}, "groups has 1 values for 600 labels"),
    (LABELS, P | {"fold_by": ["a"] * COUNT}, "fold_by has only one value; folds by it need at least two"),
    (LABELS, P | {"seeds": 0}, "at least one seed, sample and worker, not 0, 1000 and 1"),
]


@pytest.mark.parametrize(("labels", "options", "said"), BAD, ids=range(len(BAD)))
def test_bad_arrays_are_refused_in_a_sentence(labels: Any, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(LincBenchError, match=said):
        audit_arrays(labels, out=tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == [], "nothing is half written"


def test_arrays_do_not_replace_the_audit_of_other_data(tmp_path: Path) -> None:
    (tmp_path / "audit.csv").write_text("mine\n")
    with pytest.raises(LincBenchError, match=r"has audit.csv, which no audit wrote"):
        audit_arrays(LABELS, probabilities=ARRAYS["probabilities"], out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.csv"]

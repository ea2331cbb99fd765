"""Images that a data set has twice are found, all of them, and so is what follows for splits and folds."""

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from benchmark.cli.command_line import main
from benchmark.data.datasets import Dataset, load_dataset
from benchmark.data.duplicates import (
    TRAIN,
    VALIDATION,
    Duplicates,
    correlated_pairs,
    duplicates_sentence,
    find_duplicates,
)
from benchmark.data.look_alikes import embeddings, find_look_alikes
from benchmark.disk import ResultsFolder
from benchmark.disk.tables import read_table
from tests.conftest import medmnist_arrays


def test_every_pair_above_the_threshold_is_found_and_no_other() -> None:
    """Against the correlation of all pairs, channel by channel."""
    generator = np.random.default_rng(0)
    pixels = np.repeat(generator.normal(size=(40, 15, 2)), 5, axis=0)
    pixels += generator.normal(size=pixels.shape) * generator.uniform(0, 0.2, (200, 1, 1))
    pairs, correlation = correlated_pairs(pixels + np.array([0, 9]), 0.99)
    whole = np.corrcoef((pixels - pixels.mean(axis=1, keepdims=True)).reshape(200, -1))
    expected = np.argwhere(np.triu(whole > 0.99, 1))
    assert 50 < len(expected) < 400
    assert np.array_equal(pairs, expected)
    assert correlation == pytest.approx(whole[tuple(expected.T)], abs=1e-5)


def test_images_of_one_colour_are_copies_or_nothing() -> None:
    pixels = np.zeros((4, 9, 3)) + np.arange(12).reshape(4, 1, 3)
    assert not len(correlated_pairs(pixels, 0.9)[0])


@pytest.fixture
def with_twins(tmp_path: Path) -> Path:
    """Twelve images: test image 9 is training image 0, test image 10 nearly validation image 6 under another label."""
    images = np.random.default_rng(1).integers(0, 256, (12, 16, 16)).astype(np.uint8)
    images[9] = images[0]
    images[10] = np.clip(images[6].astype(int) + 3, 0, 255)
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1])
    np.savez(tmp_path / "twins.npz", **medmnist_arrays(labels, images, 6, 3))
    return tmp_path / "twins.npz"


def test_twins_across_splits_and_with_two_labels(with_twins: Path) -> None:
    dataset = load_dataset(str(with_twins))
    found, labels = find_duplicates(dataset), labels_of(dataset)
    assert np.flatnonzero(found.copy_of != np.arange(12)).tolist() == [9]
    assert found.near.tolist() == [[6, 10]]
    assert (found.exact_pairs, found.near_pairs, found.contradictions(labels)) == (1, 1, 1)
    assert [(one, other) for one, other, _ in found.contradicting_pairs(labels)] == [(6, 10)]
    assert found.test_twins(TRAIN).tolist() == [True, False, False]
    assert found.test_twins(TRAIN, VALIDATION).tolist() == [True, True, False]
    assert found.groups[0] == found.groups[9]
    assert len(set(found.groups.tolist())) == 10
    assert duplicates_sentence(found, dataset) == (
        "twins: 2 pairs of duplicates, 1 exact, 1 with two labels, one of which is wrong (such as val/0 and "
        "test/1); 2 of 3 test images have a duplicate in training or validation (such as test/0)"
    )


def labels_of(dataset: Dataset) -> np.ndarray:
    return np.concatenate([split.labels for split in dataset.splits])


@given(arrays(np.int64, 12, elements=st.integers(0, 4)), arrays(np.int64, 12, elements=st.integers(0, 2)))
def test_what_copies_stand_for_is_counted_as_if_each_pair_were_compared(looks: np.ndarray, labels: np.ndarray) -> None:
    """Images look like one of five, of which the first two are nearly the same."""
    copy_of = np.array([int(np.flatnonzero(looks == look)[0]) for look in looks])
    nearly = [int(np.flatnonzero(looks == look)[0]) for look in (0, 1) if look in looks]
    near = np.array([sorted(nearly)] if len(nearly) == 2 else np.empty((0, 2)), dtype=np.int64)
    found = Duplicates((6, 3, 3), copy_of, near, np.full(len(near), 0.999))
    pairs = list(combinations(range(12), 2))
    exact = [(i, j) for i, j in pairs if looks[i] == looks[j]]
    close = [(i, j) for i, j in pairs if {looks[i], looks[j]} == {0, 1}]
    wrong = {(i, j) for i, j in exact + close if labels[i] != labels[j]}
    assert (found.exact_pairs, found.near_pairs, found.contradictions(labels)) == (len(exact), len(close), len(wrong))
    assert {tuple(sorted(pair[:2])) for pair in found.contradicting_pairs(labels)} == wrong
    for splits, last in (((TRAIN,), 6), ((TRAIN, VALIDATION), 9)):
        twins = [any((i, j) in exact + close for i in range(last)) for j in range(9, 12)]
        assert found.test_twins(*splits).tolist() == twins
    for i, j in pairs:
        assert (found.groups[i] == found.groups[j]) == ((i, j) in exact + close)


def test_thousands_of_equal_images_are_one(tmp_path: Path) -> None:
    images = np.random.default_rng(3).integers(0, 256, (6000, 8, 8)).astype(np.uint8)
    images[:5000] = images[0]
    np.savez(tmp_path / "copies.npz", **medmnist_arrays(np.arange(6000) % 2, images, 5500, 100))
    dataset = load_dataset(str(tmp_path / "copies.npz"))
    found = find_duplicates(dataset)
    assert found.exact_pairs == 5000 * 4999 // 2
    assert found.contradictions(labels_of(dataset)) == 2500**2
    assert len(found.near) == 0


def test_a_run_tells_of_duplicates_and_keeps_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], without_report: None
) -> None:
    """With the names of image files; where they are not known yet, they are found without training again."""
    source, generator = tmp_path / "mine", np.random.default_rng(4)
    for name in ("train", "val", "test"):
        for number in range(24):
            image_file(source / name / "ab"[number % 2] / f"{number}.png", generator.integers(0, 256, (7, 9, 3)))
    shutil.copy(source / "train" / "b" / "1.png", source / "test" / "b" / "copy.png")
    shutil.copy(source / "train" / "b" / "5.png", source / "train" / "a" / "copy.png")
    results = tmp_path / "results"
    command = ["run", "--dataset", str(source), "--results", str(results), "--detector", "random"]
    command += ["--epochs", "1", "--batch-size", "8", "--image-size", "32", "--seed", "0", "--workers", "1"]
    assert main(command) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("pairs of duplicates") == 1
    wrong = f"such as {source / 'train/a/copy.png'} and {source / 'train/b/5.png'}"
    assert f"mine: 2 pairs of duplicates, 2 exact, 1 with two labels, one of which is wrong ({wrong}); " in said
    have = "1 of 25 test images have a duplicate in training or validation"
    assert f"{have} (such as {source / 'test/b/copy.png'})" in said
    tables = {name: read_table(ResultsFolder(results), name) for name in ("duplicates", "label_errors")}
    counts = tables["duplicates"].drop(columns=["data", "measure", "threshold"])
    assert counts.pop("alike_pairs").notna().all(), "features were there"
    assert counts.drop(columns=["alike_besides_near", "alike_with_two_labels"]).to_dict("records") == [
        {"dataset": "mine", "images": 74, "exact_groups": 2, "exact_pairs": 2, "near_pairs": 0}
        | {"pairs_with_two_labels": 1, "test_images": 25, "test_twins": 1, "test_twins_in_training": 1}
    ]
    assert tables["label_errors"].drop(columns="data").to_dict("records") == [
        {"dataset": "mine", "split": "train", "index": 12, "label": 0}
        | {"other_split": "train", "other_index": 22, "other_label": 1, "correlation": 1.0}
    ]
    predicted = np.load(next(results.glob("runs/*-standard-*/test_predictions.npy")))[-1]
    test = load_dataset(str(source)).test
    alone = np.array([path.name != "copy.png" for path in test.images.paths])
    accuracy = read_table(ResultsFolder(results), "accuracy").set_index("recipe").loc["standard"]
    assert accuracy["last_test"] == (predicted == test.labels).mean()
    without = accuracy[["best_test_without_twins", "last_test_without_twins"]].tolist()
    assert without == [(predicted == test.labels)[alone].mean()] * 2
    (kept,) = results.glob("duplicates/mine-*[!e].npz")
    (alike,) = results.glob("duplicates/*-alike.npz")
    first = kept.read_bytes()
    (results / "duplicates.csv").unlink()
    for spoil in (kept.unlink, alike.unlink, lambda: kept.write_bytes(first[:-9])):
        spoil()
        assert main(command) == 0
        said = capsys.readouterr()
        assert "0 of 2 runs trained" in said.out
        assert "duplicates" not in said.err, "it was said when there was something to train"
        assert kept.read_bytes() == first
        for name, rows in tables.items():
            assert read_table(ResultsFolder(results), name).equals(rows)


def test_images_that_a_network_takes_for_the_same_are_nearest_to_each_other_by_far() -> None:
    """Two twins among random images; copies take part once; two of three alike are no pair."""
    generator = np.random.default_rng(0)
    embeddings = generator.normal(size=(60, 16)).astype(np.float32)
    embeddings[7] = embeddings[3] + 0.01 * generator.normal(size=16)
    embeddings[9] = 5 * embeddings[4]  # only the direction counts
    embeddings[20] = embeddings[3]
    embeddings[41:43] = embeddings[40] + 0.01 * generator.normal(size=(2, 16))
    copy_of = np.arange(60)
    copy_of[20] = 3
    assert find_look_alikes(embeddings, copy_of).tolist() == [[3, 7], [4, 9]]
    assert find_look_alikes(embeddings[:3], np.arange(3)).tolist() == []


def test_features_are_averaged_over_positions() -> None:
    maps, tokens, vectors = (
        np.arange(48, dtype=np.float16).reshape(shape) for shape in ((2, 6, 2, 2), (2, 4, 6), (8, 6))
    )
    assert np.array_equal(embeddings([maps]), maps.astype(np.float32).mean(axis=(2, 3)))  # type: ignore[list-item]
    assert np.array_equal(embeddings([tokens]), tokens.astype(np.float32).mean(axis=1))  # type: ignore[list-item]
    assert np.array_equal(embeddings([vectors[:5], vectors[5:]]), vectors.astype(np.float32))  # type: ignore[list-item]


def image_file(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def test_nothing_is_told_where_there_are_none(tmp_path: Path) -> None:
    images = np.random.default_rng(5).integers(0, 256, (30, 8, 8)).astype(np.uint8)
    np.savez(tmp_path / "mine.npz", **medmnist_arrays(np.arange(30) % 2, images, 15, 6))
    dataset = load_dataset(str(tmp_path / "mine.npz"))
    assert duplicates_sentence(find_duplicates(dataset), dataset) is None


def test_images_of_different_sizes_are_compared(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    for split in ("train", "val", "test"):
        for label in "ab":
            (tmp_path / split / label).mkdir(parents=True)
            for number in range(2):
                pixels = generator.integers(0, 256, (8, 8, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
                Image.fromarray(pixels).save(tmp_path / split / label / f"{number}.png")
    large = Image.open(tmp_path / "train" / "a" / "0.png").resize((128, 128), Image.Resampling.NEAREST)
    large.save(tmp_path / "test" / "a" / "1.png")
    found = find_duplicates(load_dataset(str(tmp_path)))
    assert found.near.tolist() == [[0, 9]]
    assert found.exact_pairs == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("breastmnist", (111, 1, 1, 4, 28)), ("pneumoniamnist", (31, 31, 27, 0, 0)), ("bloodmnist", (17, 17, 17, 1, 6))],
)
def test_what_real_data_sets_have_twice(real_data: Path, name: str, expected: tuple[int, ...]) -> None:
    """Pairs, exact pairs and groups, pairs with two labels, and test images with a duplicate outside the test split."""
    dataset = load_dataset(name, real_data)
    found, labels = find_duplicates(dataset), labels_of(dataset)
    counts = found.exact_pairs + found.near_pairs, found.exact_pairs, found.exact_groups, found.contradictions(labels)
    assert (*counts, found.test_twins(TRAIN, VALIDATION).sum()) == expected

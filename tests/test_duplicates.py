"""Images that a data set has twice are found, all of them, and so is what follows for splits and folds."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.data.datasets import load_dataset
from benchmark.data.duplicates import correlated_pairs, find_duplicates
from tests.conftest import medmnist_arrays


def test_every_pair_above_the_threshold_is_found_and_no_other() -> None:
    """Against the correlation of all pairs."""
    generator = np.random.default_rng(0)
    vectors = np.repeat(generator.normal(size=(40, 30)), 5, axis=0)
    vectors += generator.normal(size=vectors.shape) * generator.uniform(0, 0.2, (200, 1))
    pairs, correlation = correlated_pairs(vectors, 0.99)
    whole = np.corrcoef(vectors)
    expected = np.argwhere(np.triu(whole > 0.99, 1))
    assert 50 < len(expected) < 400
    assert np.array_equal(pairs, expected)
    assert correlation == pytest.approx(whole[tuple(expected.T)], abs=1e-5)


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
    found = find_duplicates(load_dataset(str(with_twins)))
    assert found.pairs.tolist() == [[0, 9], [6, 10]]
    assert found.is_exact.tolist() == [True, False]
    assert found.contradicts.tolist() == [False, True]
    assert found.test_has_twin.tolist() == [True, True, False]
    assert found.groups[0] == found.groups[9]
    assert len(set(found.groups.tolist())) == 10


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
    assert found.pairs.tolist() == [[0, 9]]
    assert not found.is_exact.any()


@pytest.mark.parametrize(("name", "pairs", "exact", "opposite", "twins"), [("breastmnist", 111, 1, 4, 28)])
def test_what_real_data_sets_have_twice(
    real_data: Path, name: str, pairs: int, exact: int, opposite: int, twins: int
) -> None:
    found = find_duplicates(load_dataset(name, real_data))
    counts = len(found.pairs), found.is_exact.sum(), found.contradicts.sum(), found.test_has_twin.sum()
    assert counts == (pairs, exact, opposite, twins)

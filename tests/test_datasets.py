"""Every door through which data comes in, and a sentence for everything that is wrong with it."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.data.datasets import describe_dataset, load_dataset
from benchmark.errors import LincBenchError
from tests.conftest import medmnist_arrays


def arrays(n: int = 60, classes: int = 3) -> dict[str, np.ndarray]:
    labels = np.arange(n) % classes
    images = np.random.default_rng(0).integers(0, 256, (n, 8, 8), dtype=np.uint8)
    return medmnist_arrays(labels, images, train=n // 2, validation=n // 4)


def saved(path: Path, **changes: object) -> Path:
    np.savez_compressed(path, **{key: value for key, value in (arrays() | changes).items() if value is not None})
    return path


ONE_CLASS = {key: np.zeros_like(array) for key, array in arrays().items() if key.endswith("labels")}


def test_digits_split_is_stratified_and_complete() -> None:
    digits = load_dataset("digits")
    assert sum(digits.info.sizes) == 1797
    assert digits.info.num_classes == 10
    for split in digits.splits:
        assert len(split.images) == len(split.labels)
        shares = np.bincount(split.labels, minlength=10) / len(split.labels)
        assert (np.abs(shares - 0.1) < 0.02).all()
    assert describe_dataset("digits") == digits.info


def test_any_npz_in_medmnist_layout_loads_and_extra_keys_are_ignored(tmp_path: Path) -> None:
    path = saved(tmp_path / "mine.npz", train_image_id=np.array(["a"] * 30), note=np.array("hello"))
    dataset = load_dataset(str(path))
    assert dataset.info.name == "mine"
    assert dataset.info.sizes == (30, 15, 15)
    assert (dataset.train.labels == np.arange(30) % 3).all()
    assert (dataset.train.images[0:2] == arrays()["train_images"][:2]).all()


def test_identity_changes_with_one_pixel(tmp_path: Path) -> None:
    images = arrays()["train_images"].copy()
    images[0, 0, 0] ^= 1
    one, other = saved(tmp_path / "a.npz"), saved(tmp_path / "b.npz", train_images=images)
    assert load_dataset(str(one)).info.identity != load_dataset(str(other)).info.identity


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"train_images": np.zeros((30, 8, 8), np.float32)}, "expected uint8"),
        ({"train_images": np.zeros((30, 8), np.uint8)}, "shape"),
        ({"train_images": np.zeros((30, 8, 8, 4), np.uint8)}, "shape"),
        ({"train_labels": np.zeros((29, 1), np.uint8)}, r"expected \(30,\)"),
        ({"train_labels": np.zeros((30, 14), np.uint8)}, "one label per image"),
        ({"train_labels": np.full((30, 1), 0.5)}, "whole numbers"),
        ({"train_labels": np.full((30, 1), -1)}, "negative"),
        ({"train_labels": np.repeat([[0], [2]], 15, axis=0)}, "no training sample of class 1"),
        (ONE_CLASS, "one class"),
        ({"test_labels": np.full((15, 1), 7)}, "no training sample"),
        ({"val_images": np.zeros((0, 8, 8), np.uint8), "val_labels": np.zeros((0, 1), int)}, "validation split"),
        ({"val_labels": None}, "has no val_labels"),
        ({"train_labels": np.full((30, 1), 300_000_000)}, "more than it has images"),
        ({"train_images": np.zeros((30, 0, 8), np.uint8)}, "shape"),
    ],
)
def test_wrong_arrays_are_refused_in_a_sentence(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    path = saved(tmp_path / "bad.npz", **changes)
    with pytest.raises(LincBenchError, match=says):
        load_dataset(str(path))


def test_missing_truncated_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LincBenchError, match="does not exist"):
        load_dataset(str(tmp_path / "missing.npz"))
    whole = saved(tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("hello")
    for name in ("cut.npz", "text.npz"):
        with pytest.raises(LincBenchError, match="not a whole"):
            load_dataset(str(tmp_path / name))
    middle = bytearray(whole)
    middle[200:220] = bytes(20)
    (tmp_path / "flipped.npz").write_bytes(middle)
    with pytest.raises(LincBenchError, match="cannot be read"):
        load_dataset(str(tmp_path / "flipped.npz"))


class _Bomb:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return Path.touch, (Path("exploded"),)


def test_pickles_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "bomb.npz", train_labels=np.array([_Bomb()] * 30, dtype=object))
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(_Bomb()))
    for name in ("bomb.npz", "plain.npz"):
        with pytest.raises(LincBenchError):
            load_dataset(str(tmp_path / name))
    assert not (tmp_path / "exploded").exists()


def image_file(path: Path, value: int, size: tuple[int, int] = (9, 7)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, 0, 0)).save(path)


def test_image_folder_with_one_sub_folder_per_class(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for i in range(10):
            image_file(tmp_path / "pets" / label / f"{i}.png", 10 * i)
    dataset = load_dataset(str(tmp_path / "pets"))
    assert dataset.class_names == ("cat", "dog")
    assert dataset.info.sizes == (14, 2, 4)
    assert dataset.train.images[0:1][0].shape == (7, 9, 3)


def test_image_folder_that_is_split_already(tmp_path: Path) -> None:
    for split, count in (("train", 4), ("val", 2), ("test", 3)):
        for label in ("a", "b"):
            for i in range(count):
                image_file(tmp_path / split / label / f"{i}.jpg", i)
    assert load_dataset(str(tmp_path)).info.sizes == (8, 4, 6)


def csv_of(folder: Path, rows: list[str], header: str = "path,label") -> Path:
    path = folder / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_csv_of_path_and_label(tmp_path: Path) -> None:
    rows = []
    for i in range(30):
        image_file(tmp_path / "images" / f"{i}.png", i)
        rows.append(f"images/{i}.png,{'10' if i % 2 else '9'},{('train', 'val', 'test')[i % 3]}")
    dataset = load_dataset(str(csv_of(tmp_path, rows, "path,label,split")))
    assert dataset.class_names == ("9", "10"), "numbers in the order of numbers"
    assert dataset.info.sizes == (10, 10, 10)
    assert load_dataset(str(csv_of(tmp_path, [row.rsplit(",", 1)[0] for row in rows]))).info.sizes == (20, 4, 6)


def test_a_csv_row_without_its_split_is_refused_not_dropped(tmp_path: Path) -> None:
    image_file(tmp_path / "in.png", 1)
    with pytest.raises(LincBenchError, match=r"Line 3 .* has the split ''; expected train, val or test"):
        load_dataset(str(csv_of(tmp_path, ["in.png,a,train", "in.png,b"], "path,label,split")))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("../outside.png,a", "leaves its folder"),
        ("/etc/hostname,a", "leaves its folder"),
        ("nowhere.png,a", "not a file"),
        ("in.png,", "has no label"),
    ],
)
def test_csv_rows_that_point_outside_or_nowhere(tmp_path: Path, row: str, says: str) -> None:
    image_file(tmp_path / "outside.png", 1)
    image_file(tmp_path / "data" / "in.png", 1)
    with pytest.raises(LincBenchError, match=says):
        load_dataset(str(csv_of(tmp_path / "data", [row])))


def test_an_image_that_is_none_is_named(tmp_path: Path) -> None:
    for label in ("a", "b"):
        for i in range(10):
            image_file(tmp_path / label / f"{i}.png", i)
    (tmp_path / "a" / "3.png").write_bytes(b"no image")
    dataset = load_dataset(str(tmp_path))
    broken = next(split.images for split in dataset.splits if tmp_path / "a" / "3.png" in split.images.paths)
    with pytest.raises(LincBenchError, match=r"3\.png cannot be read as an image"):
        broken[0 : len(broken)]


def test_multi_label_chestmnist_is_refused() -> None:
    with pytest.raises(LincBenchError, match="several labels per image"):
        describe_dataset("chestmnist")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(LincBenchError, match=r"Did you mean 'breastmnist'\? Known: .*digits"):
        load_dataset("brestmnist")


def test_medmnist_can_be_planned_without_its_file_at_every_size() -> None:
    for name in ("organsmnist", "organsmnist_64", "organsmnist_128", "organsmnist_224"):
        info = describe_dataset(name)
        assert info.sizes == (13932, 2452, 8827)
        assert info.num_classes == 11
    assert describe_dataset("organsmnist").identity != describe_dataset("organsmnist_224").identity


def test_a_failed_download_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(LincBenchError, match=r"retinamnist\.npz is not in .* Fetch it from .* --data-root"):
        load_dataset("retinamnist", tmp_path)


def test_a_file_under_an_official_name_must_be_the_official_one(tmp_path: Path) -> None:
    saved(tmp_path / "breastmnist.npz")
    with pytest.raises(LincBenchError, match="is not MedMNIST's file"):
        load_dataset("breastmnist", tmp_path)


def test_real_medmnist_file_loads_without_download(real_data: Path) -> None:
    dataset = load_dataset("breastmnist", real_data)
    assert dataset.info == describe_dataset("breastmnist")
    assert dataset.class_names == ("malignant", "normal, benign")
    assert dataset.train.images[0:1][0].shape == (28, 28)


def test_real_rebuilt_files_with_extra_keys_load_by_path(real_data: Path) -> None:
    dataset = load_dataset(str(real_data / "dermamnist_rebuilt.npz"))
    assert dataset.info.sizes == (7007, 1003, 2005)
    assert dataset.info.num_classes == 7

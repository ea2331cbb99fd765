"""Every door through which data comes in, and a sentence for everything that is wrong with it."""

import os
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image

from benchmark.audit.audited_data import read_audited_data
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
        ({"train_labels": np.full((30, 1), 2**64 - 1, np.uint64)}, "has the label 18446744073709551615; classes"),
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
        with pytest.raises(LincBenchError) as refused:
            load_dataset(str(tmp_path / name))
        assert "allow_pickle" not in str(refused.value), "numpy's advice"
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


@pytest.fixture
def refused(fails: Callable[..., str], tmp_path: Path) -> Callable[[Path | str], str]:
    """What `run` says about data that it refuses; `audit` has to say the same."""

    def said(path: Path | str) -> str:
        by_run = fails("run", "--dataset", path, "--dry-run", "--results", tmp_path / "results")
        assert fails("audit", path, "--out", tmp_path / "out") == by_run
        return by_run

    return said


def numbered_images(folder: Path, classes: str = "ab", count: int = 25) -> list[str]:
    """Writes images that all differ, and returns rows of a CSV."""
    names = [(f"{label}/{i:02}.png", label) for label in classes for i in range(count)]
    for number, (name, _) in enumerate(names):
        image_file(folder / name, number)
    return [f"{name},{label}" for name, label in names]


@pytest.mark.parametrize("line", [2, 3, 40])
@pytest.mark.parametrize(("cell", "says"), [("", "has 2 cells, and its header has 3"), (",", "has the split ''")])
def test_a_csv_row_without_its_split_is_refused_not_dropped(
    tmp_path: Path, fails: Callable[..., str], line: int, cell: str, says: str
) -> None:
    rows = [f"{row},{'train' if i % 3 else ('val', 'test')[i % 2]}" for i, row in enumerate(numbered_images(tmp_path))]
    rows[line - 2] = rows[line - 2].rpartition(",")[0] + cell
    said = fails("run", "--dataset", csv_of(tmp_path, rows, "path,label,split"), "--dry-run")
    assert f"Line {line} of {tmp_path / 'labels.csv'} {says}" in said


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("path,label", "c.png", "Line 52 of {} has 1 cells, and its header has 2. Leave no cell out"),
        ("path,label", "c.png,a,b", "Line 52 of {} has 3 cells, and its header has 2."),
        ("path,label", 'a/00.png,"a', "{} is not a CSV file in UTF-8 (unexpected end of data)"),
        ("path,Path", "a/01.png,a", "{} has the columns path, path; expected path and label"),
        ("path,label,label", "", "{} has the column label more than once"),
        ("path,label,Label ", "", "{} has the column label more than once"),
    ],
)
def test_rows_that_are_broken_or_doubled_are_refused(
    tmp_path: Path, refused: Callable[[Path | str], str], header: str, row: str, says: str
) -> None:
    path = csv_of(tmp_path, [*numbered_images(tmp_path), row], header)
    assert says.replace("{}", str(path)) in refused(path)


@pytest.mark.parametrize("name", ["a/03.png", "a/../a/03.png", "link.png"])
@pytest.mark.parametrize("label", ["a", "b"])
def test_the_same_file_cannot_be_listed_twice(
    tmp_path: Path, refused: Callable[[Path | str], str], name: str, label: str
) -> None:
    rows = [f"{row},{number}" for number, row in enumerate([*numbered_images(tmp_path), f"{name},{label}"])]
    (tmp_path / "link.png").symlink_to("a/03.png")
    path = csv_of(tmp_path, rows, "path,label,id")
    assert (
        refused(path)
        == f"'{name}' in line 52 of {path} is the same as 'a/03.png' in line 5 of {path}. Keep one of them."
    )


@pytest.mark.parametrize("header", ["Path,Label,Split", " path , LABEL,split", "\ufeffpath,label,SPLIT"])
def test_headers_are_read_in_any_case(tmp_path: Path, header: str) -> None:
    rows = [f"{row},{('train', 'val', 'test')[i % 3]}" for i, row in enumerate(numbered_images(tmp_path))]
    assert load_dataset(str(csv_of(tmp_path, rows, header))).info.sizes == (17, 17, 16)
    assert read_audited_data(tmp_path / "labels.csv").class_names == ("a", "b")


def test_class_names_are_trimmed(tmp_path: Path, refused: Callable[[Path | str], str]) -> None:
    rows = numbered_images(tmp_path / "data")
    rows[3] += "  "
    path = csv_of(tmp_path / "data", rows)
    assert load_dataset(str(path)).class_names == read_audited_data(path).class_names == ("a", "b")
    path.unlink()
    (tmp_path / "data" / "b").rename(tmp_path / "data" / "b ")
    names = load_dataset(str(tmp_path / "data")).class_names, read_audited_data(tmp_path / "data").class_names
    assert names == (("a", "b"), ("a", "b"))
    (tmp_path / "data" / "b ").rename(tmp_path / "data" / "  ")
    assert refused(tmp_path / "data").endswith("has a class folder whose name is blank. Rename it.")


@pytest.mark.parametrize("linked", ["c", "a/more", "a/even/more"])
@pytest.mark.parametrize("is_split", [False, True])
def test_a_linked_folder_does_not_lead_out_of_the_data(
    tmp_path: Path, refused: Callable[[Path | str], str], linked: str, is_split: bool
) -> None:
    numbered_images(tmp_path / "elsewhere", "c")
    for split in ("train", "val", "test") if is_split else ("",):
        numbered_images(tmp_path / "data" / split)
    link = tmp_path / "data" / ("test" if is_split else "") / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere" / "c")
    said = refused(tmp_path / "data")
    assert f"'{link.relative_to(tmp_path / 'data')}' in {tmp_path / 'data'} leaves its folder: it leads to" in said


def test_a_linked_split_or_a_circle_of_links_is_refused(tmp_path: Path, refused: Callable[[Path | str], str]) -> None:
    for split in ("train", "val", "test"):
        numbered_images(tmp_path / "data" / split)
    circle = tmp_path / "data" / "test" / "a" / "round"
    circle.symlink_to("..")
    assert f"'test/a/round' in {tmp_path / 'data'} is the same as 'test' in" in refused(tmp_path / "data")
    (tmp_path / "data" / "test").rename(tmp_path / "test")
    (tmp_path / "data" / "test").symlink_to(tmp_path / "test")
    assert f"'test' in {tmp_path / 'data'} leaves its folder" in refused(tmp_path / "data")


def test_a_linked_image_may_lead_to_one_in_the_folder_and_nowhere_else(
    tmp_path: Path, fails: Callable[..., str], refused: Callable[[Path | str], str]
) -> None:
    """As in a CSV. An audit lists an image that is elsewhere, and does not open it."""
    data = tmp_path / "data"
    rows = numbered_images(data)
    image_file(tmp_path / "elsewhere.png", 99)
    image_file(data / "loose.png", 98)
    (data / "a" / "inside.png").symlink_to("../loose.png")
    assert sum(load_dataset(str(data)).info.sizes) == len(read_audited_data(data).ids) == 51
    path = csv_of(data, [*rows, "a/inside.png,a"])
    assert sum(load_dataset(str(path)).info.sizes) == len(read_audited_data(path).ids) == 51
    (data / "b" / "again.png").symlink_to("../loose.png")
    assert f"'b/again.png' in {data} is the same as 'a/inside.png' in {data}. Keep one of them." in refused(data)
    (data / "b" / "again.png").unlink()
    (data / "a" / "out.png").symlink_to(tmp_path / "elsewhere.png")
    for source, where in ((data, data), (csv_of(data, [*rows, "a/out.png,a"]), f"line 52 of {path}")):
        said = fails("run", "--dataset", source, "--dry-run")
        assert f"'a/out.png' in {where} leaves its folder: it leads to {tmp_path / 'elsewhere.png'}. Put the" in said
        ((left_out, why),) = read_audited_data(source).unreadable
        assert left_out == "a/out.png"
        assert why == said


def test_a_linked_folder_of_data_is_as_good_as_the_folder(tmp_path: Path) -> None:
    numbered_images(tmp_path / "data")
    (tmp_path / "link").symlink_to("data")
    one, other = load_dataset(str(tmp_path / "data")).info, load_dataset(str(tmp_path / "link")).info
    assert one.identity == other.identity
    assert read_audited_data(tmp_path / "data").identity == read_audited_data(tmp_path / "link").identity


def test_folders_that_cannot_be_read_are_an_error_not_an_empty_class(tmp_path: Path) -> None:
    numbered_images(tmp_path)
    closed = tmp_path / "a" / "closed"
    with patch("os.scandir", side_effect=PermissionError(13, "Permission denied", str(closed))):
        for read in (load_dataset, lambda path: read_audited_data(Path(path))):
            with pytest.raises(PermissionError):
                read(str(tmp_path))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("../outside.png,a", "leaves the folder of the CSV"),
        ("/etc/hostname,a", r"Move it to /etc, or to a folder above it"),
        ("nowhere.png,a", r"'nowhere.png' in line 2 of .* does not exist; expected a file"),
        ("nowhere/../in.png,a", r"'nowhere/../in.png' in line 2 of .* does not exist; expected a file"),
        ("in.png,", "has no label"),
        ('in.png," "', "has no label"),
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


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes named pipes; whoever opens one would wait for ever, and is found and released here."""
    pipes: list[Path] = []
    opened: list[Path] = []
    ended = threading.Event()

    def make(name: str) -> Path:
        (path := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        pipes.append(path)
        return path

    def watch() -> None:
        while not ended.wait(0.05):
            for path in pipes:
                with suppress(OSError):  # nobody waits for a writer
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                    opened.append(path)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    yield make
    ended.set()
    watcher.join()
    assert not opened


NOT_A_FILE = "is a folder, a pipe, a socket or a device; expected a file"


def test_no_pipe_socket_or_device_is_opened(
    tmp_path: Path, fails: Callable[..., str], pipe: Callable[[str], Path]
) -> None:
    numbered_images(tmp_path / "data")
    for suffix in ("npz", "csv", "audit.json"):
        assert NOT_A_FILE in fails("run", "--dataset", pipe(f"pipe.{suffix}"))
    for suffix in ("npz", "csv"):
        assert "is not a folder of images, a .csv file or an .npz" in fails("audit", tmp_path / f"pipe.{suffix}")
    assert NOT_A_FILE in fails("run", "--weights", pipe("pipe.pth"))
    assert NOT_A_FILE in fails("audit", tmp_path / "data", "--weights", "/dev/zero", "--out", tmp_path / "out")
    assert NOT_A_FILE in fails("run", "--dataset", "breastmnist", "--data-root", pipe("root/breastmnist.npz").parent)
    assert "There is no file" in fails("run", "--detector", f"{pipe('pipe.py')}:Mine")
    assert NOT_A_FILE in fails("apply-review", pipe("audit.csv"), tmp_path / "decisions.csv")
    (tmp_path / "given.csv").write_text("id,given\n1,a\n")
    assert NOT_A_FILE in fails("apply-review", tmp_path / "given.csv", pipe("decisions.csv"))
    said = fails("audit", tmp_path / "data", "--out", pipe("other/audit.json").parent)
    assert "has audit.json, which no audit wrote" in said


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "nothing"])
def test_what_is_no_file_in_a_folder_of_images_is_refused(
    tmp_path: Path, fails: Callable[..., str], pipe: Callable[[str], Path], kind: str
) -> None:
    """An audit lists it, as it does with everything that cannot be read."""
    rows = numbered_images(tmp_path / "data")
    image = tmp_path / "data" / "a" / "odd.png"
    with socket.socket(socket.AF_UNIX) as opened:
        if kind == "pipe":
            pipe("data/a/odd.png")
        elif kind == "socket":
            opened.bind(os.path.relpath(image))  # a longer path would be refused
        elif kind == "folder":
            image.mkdir()
        else:
            image.symlink_to("nowhere.png")
    problem = "does not exist" if kind == "nothing" else "is a folder, a pipe, a socket or a device"
    by_csv = csv_of(tmp_path / "data", [*rows, "a/odd.png,a"])
    for source in (by_csv, tmp_path / "data"):
        if kind == "folder" and source != by_csv:
            continue  # a folder of images like any other
        said = fails("run", "--dataset", source, "--dry-run")
        assert f"{problem}; expected a file. Remove it, or put the image there." in said
        assert read_audited_data(source).unreadable == (("a/odd.png", said),)


def test_the_identity_of_files_does_not_depend_on_numpys_version(
    tmp_path: Path,
) -> None:
    """Strings of numpy 2 are written otherwise than those of numpy 1; identities are those of numpy 2."""
    for label in "ab":
        for number in range(10):
            (tmp_path / label).mkdir(exist_ok=True)
            (tmp_path / label / f"{number}.png").write_text(f"{label}{number}")
    identity = load_dataset(str(tmp_path)).info.identity
    assert identity == "sha256:448e5647c4804ad739cb01a9df703e7556bc9c5148acfb32a8b24f9df5401299"
    with np.printoptions(legacy="1.25"):
        assert load_dataset(str(tmp_path)).info.identity == identity


def test_multi_label_chestmnist_is_refused_and_a_file_of_such_a_name_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("chestmnist", "ChestMNIST_64"):
        with pytest.raises(LincBenchError, match="several labels per image"):
            describe_dataset(name)
    monkeypatch.chdir(tmp_path)
    for name in ("chestmnist_x.npz", "chestmnist_224.npz", "breastmnist_x.npz"):
        saved(tmp_path / name)
        assert describe_dataset(name).name == name.removesuffix(".npz")


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

"""Images and labels: digits, MedMNIST, any file in MedMNIST's layout, an image folder, a CSV of path and label."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.data import image_files
from benchmark.data.image_files import FileImages, Images, Split
from benchmark.data.npz_files import KEY_OF_SPLIT, read_npz
from benchmark.disk import UNREADABLE, locked, read_json
from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import bytes_digest, file_digest
from benchmark.names import check_title
from benchmark.paths import regular_file, typed_path
from benchmark.wording import medmnist_facts

AUDITED = ".audit.json"  # the suffix of the list of an audit's samples
SPLITS = tuple(KEY_OF_SPLIT)
STAYS = -1  # where no other image takes the place of one (noise/open_set.py), instead of the other's number
REPLACED = "_replaced"  # ending of the names of these numbers, beside the given labels
MEDMNIST_SIZES = (28, 64, 128, 224)


@dataclass(frozen=True)
class DatasetInfo:
    """The facts that a plan needs, available without reading images where possible."""

    name: str
    identity: str  # changes when a pixel or a label does
    num_classes: int
    sizes: tuple[int, int, int]  # training, validation, test
    images: str = ""  # changes when a pixel does, if known: then other labels of the same images share features

    def __post_init__(self) -> None:
        check_title("data set", self.name)


@dataclass(frozen=True)
class Dataset:
    info: DatasetInfo
    class_names: tuple[str, ...]
    train: Split
    validation: Split
    test: Split

    @property
    def splits(self) -> tuple[Split, Split, Split]:
        return self.train, self.validation, self.test

    def images(self, start: int, stop: int) -> list[np.ndarray]:
        """Of the splits one after another."""
        images: list[np.ndarray] = []
        for split in self.splits:
            images.extend(split.images[max(start, 0) : max(stop, 0)])
            start, stop = start - len(split.labels), stop - len(split.labels)
        return images


def known_datasets() -> dict[str, str]:
    """Name and one-line description of every data set that has a name."""
    medmnist = {
        flag: f"{info['python_class']}: {len(info['label'])} classes, {info['n_samples']['train']:,} training images"
        f" (also {', '.join(f'{flag}_{size}' for size in MEDMNIST_SIZES[1:])})"
        for flag, info in _medmnist_info().items()
    }
    return {"digits": "handwritten digits from scikit-learn: 10 classes, 8 × 8 pixels, no download"} | medmnist


def missing_file(name: str, data_root: Path | None = None) -> str | None:
    """What would have to be downloaded for this data set, if anything."""
    official = _official(name, data_root)
    return None if official is None or official.path.exists() else f"{official.path.name} into {official.path.parent}"


def describe_dataset(name: str, data_root: Path | None = None) -> DatasetInfo:
    """The facts about a data set; for an official MedMNIST file that is not here yet, as its package states them."""
    official = _official(name, data_root)
    if official is None:
        return load_dataset(name, data_root).info
    samples = official.facts["n_samples"]
    sizes = samples["train"], samples["val"], samples["test"]
    return DatasetInfo(official.path.stem, f"md5:{official.md5}", len(official.facts["label"]), sizes)


def load_dataset(name: str, data_root: Path | None = None) -> Dataset:
    if name == "digits":
        return _digits()
    if official := _official(name, data_root):
        return _medmnist(official)
    path = typed_path(name)
    if path.is_dir():
        return _checked(Path(os.path.abspath(path)).name, *image_files.from_folder(path))  # of `.` and `a/..` too
    kind = path.suffix.lower()
    if kind in (".npz", ".csv") or path.name.endswith(AUDITED):
        regular_file(path, f"The file {path}", "Check the path, or leave out its folder for a known name.")
    if kind == ".npz":
        return _from_arrays(path.stem, f"sha256:{file_digest(path)}", read_npz(path))
    if path.name.endswith(AUDITED):
        return _from_list(path)
    if kind == ".csv":
        return _checked(path.stem, *image_files.from_csv(path))
    if path.exists():
        raise LincBenchError(f"{path} is neither an .npz file, nor a .csv file, nor a folder of images.")
    if len(path.parts) > 1:
        raise LincBenchError(f"{path} does not exist. Expected an .npz file, a .csv file or a folder of images.")
    raise unknown_name("data set", name, [*known_datasets(), "path/to/file.npz", "path/to/file.csv", "path/to/folder"])


@lru_cache(maxsize=2)  # open-set noise reads two in turn
def load_dataset_once(name: str, data_root: Path | None, info: DatasetInfo) -> Dataset:
    """The data set that `info` was read from, once per process."""
    dataset = load_dataset(name, data_root)
    if dataset.info != info:
        raise LincBenchError(f"{name} changed while it was in use. Run the same command again.")
    return dataset


def _from_list(path: Path) -> Dataset:
    """What an audit wrote (`AuditedData.write_list`): all samples are for training."""
    try:
        about = read_json(path)
        labels, files = np.array(about["labels"]), about.get("files")
        images: Images = (
            FileImages([Path(file) for file in files])
            if files
            else np.concatenate([images for images, _ in read_npz(Path(about["npz"])).values()])
        )
        class_names = tuple(map(str, about["class_names"]))
        sizes = len(labels), 0, 0
        name, identity, pixels = texts = [about[key] for key in ("name", "identity", "images")]
        is_whole = labels.shape == (len(images),) and np.isin(labels, range(len(class_names))).all()
        if not (is_whole and labels.dtype == np.int64 and all(isinstance(text, str) for text in texts)):
            raise ValueError("its labels are not those of its images and classes")
        info = DatasetInfo(name, identity, len(class_names), sizes, pixels)
    except UNREADABLE as error:
        raise LincBenchError(f"{path} is not a list that an audit wrote ({error}). Run the audit again.") from error
    empty = Split(FileImages([]), np.empty(0, dtype=np.int64))
    return Dataset(info, class_names, Split(images, labels), empty, empty)


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)
    identity = f"sha256:{bytes_digest((images.tobytes(), digits.target.astype('<i8').tobytes()))}"
    split_of = image_files.stratified_split(digits.target)
    arrays = {split: (images[split_of == split], digits.target[split_of == split]) for split in SPLITS}
    return _from_arrays("digits", identity, arrays)


def _medmnist_info() -> dict[str, Any]:
    known: dict[str, Any] = medmnist_facts()["INFO"]
    return {flag: info for flag, info in known.items() if "multi-label" not in info["task"] and not flag.endswith("3d")}


@dataclass(frozen=True)
class _Official:
    """One of MedMNIST's own files: `organsmnist` has images of 28 px, `organsmnist_224` of 224 px."""

    facts: dict[str, Any]
    size: int
    path: Path
    md5: str
    url: str


def _official(name: str, data_root: Path | None) -> _Official | None:
    flag, _, size = name.lower().partition("_")
    if size not in ("", *map(str, MEDMNIST_SIZES)):
        return None
    if flag == "chestmnist":
        raise LincBenchError(
            "ChestMNIST has several labels per image; detectors of wrong labels need exactly one. "
            "Choose a single-label set (linc-bench list datasets)."
        )
    facts = _medmnist_info().get(flag)
    if facts is None:
        return None
    ending = "" if size in ("", "28") else f"_{size}"
    path = (data_root or Path(medmnist_facts()["DEFAULT_ROOT"])) / f"{flag}{ending}.npz"
    return _Official(facts, int(size or 28), path, facts[f"MD5{ending}"], facts[f"url{ending}"])


def _medmnist(official: _Official) -> Dataset:
    path, label = official.path, official.facts["label"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with locked(path.parent, f".{path.name}"):  # a second command waits for the download and starts no other
            _download(official)
    actual = file_digest(regular_file(path), "md5")
    if actual != official.md5:
        raise LincBenchError(
            f"{path} is not MedMNIST's file (md5 {actual}, expected {official.md5}): damaged or rebuilt. "
            f"Delete it to download it again, or give its path to use it as it is: --dataset {path}"
        )
    classes = tuple(label[str(index)] for index in range(len(label)))
    return _from_arrays(path.stem, f"md5:{official.md5}", read_npz(path), classes)


def _download(official: _Official) -> None:
    import medmnist

    try:
        medmnist_class = getattr(medmnist, official.facts["python_class"])
        medmnist_class("train", root=str(official.path.parent), size=official.size, download=True)
    except RuntimeError as error:
        raise LincBenchError(
            f"{official.path.name} is not in {official.path.parent} and could not be downloaded. "
            f"Fetch it from {official.url} and put it there, or name its folder with --data-root."
        ) from error


def _from_arrays(
    name: str, identity: str, arrays: Mapping[str, tuple[np.ndarray, np.ndarray]], class_names: tuple[str, ...] = ()
) -> Dataset:
    highest = max(int(labels.max(initial=0)) for _, labels in arrays.values())
    if highest >= sum(len(labels) for _, labels in arrays.values()):
        raise LincBenchError(f"{name} has the label {highest}, more than it has images; classes are numbered from 0.")
    classes = class_names or tuple(str(index) for index in range(highest + 1))
    return _checked(name, identity, classes, {split: Split(*pair) for split, pair in arrays.items()})


def _checked(name: str, identity: str, class_names: tuple[str, ...], splits: dict[str, Split]) -> Dataset:
    counts = np.bincount(splits["train"].labels, minlength=len(class_names))
    if len(class_names) < 2:
        raise LincBenchError(f"{name} has one class only; a label can be wrong only if there are two or more.")
    if (counts == 0).any():
        missing = ", ".join(class_names[i] for i in np.flatnonzero(counts == 0)[:5])
        raise LincBenchError(
            f"{name} has no training sample of class {missing}. Classes are numbered from 0 without gaps; "
            "remove the empty class and renumber the labels."
        )
    for split, (_, labels) in splits.items():
        if not len(labels):
            raise LincBenchError(f"The {split} split of {name} is empty; give it at least one image.")
    train, validation, test = (splits[split] for split in SPLITS)
    sizes = len(train.labels), len(validation.labels), len(test.labels)
    return Dataset(DatasetInfo(name, identity, len(class_names), sizes), class_names, train, validation, test)

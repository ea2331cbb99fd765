"""Images and labels: digits, MedMNIST, any file in MedMNIST's layout, an image folder, a CSV of path and label."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmark.data import image_files
from benchmark.data.npz_files import read_npz
from benchmark.disk import UNREADABLE, locked
from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import bytes_digest, file_digest
from benchmark.wording import medmnist_facts

AUDITED = ".audit.json"  # the suffix of the list of an audit's samples
SPLITS = ("train", "validation", "test")
MEDMNIST_SIZES = (28, 64, 128, 224)


class Images(Protocol):
    """Pictures in a fixed order; a slice gives 8-bit arrays, height × width or height × width × 3."""

    def __len__(self) -> int: ...
    def __getitem__(self, window: slice, /) -> Sequence[np.ndarray] | np.ndarray: ...


@dataclass(frozen=True)
class DatasetInfo:
    """The facts that a plan needs, available without reading images where possible."""

    name: str
    identity: str  # changes when a pixel or a label does
    num_classes: int
    sizes: tuple[int, int, int]  # training, validation, test
    images: str = ""  # changes when a pixel does, if known: then other labels of the same images share features


@dataclass(frozen=True)
class Split:
    images: Images
    labels: np.ndarray


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
        offset = 0
        for split in self.splits:
            first, last = max(start - offset, 0), min(stop - offset, len(split.labels))
            if first < last:
                images.extend(split.images[first:last])
            offset += len(split.labels)
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
    flag, size = _medmnist_name(name)
    if flag is None:
        return None
    path = _medmnist_root(data_root) / f"{_canonical(flag, size)}.npz"
    return None if path.exists() else f"{path.name} into {path.parent}"


def describe_dataset(name: str, data_root: Path | None = None) -> DatasetInfo:
    """The facts about a data set; for an official MedMNIST file that is not here yet, as its package states them."""
    flag, size = _medmnist_name(name)
    if flag is None:
        return load_dataset(name, data_root).info
    info = _medmnist_info()[flag]
    sizes = info["n_samples"]["train"], info["n_samples"]["val"], info["n_samples"]["test"]
    return DatasetInfo(_canonical(flag, size), f"md5:{info[_md5_key(size)]}", len(info["label"]), sizes)


def load_dataset(name: str, data_root: Path | None = None) -> Dataset:
    if name == "digits":
        return _digits()
    flag, size = _medmnist_name(name)
    if flag is not None:
        return _medmnist(flag, size, data_root)
    path = Path(name).expanduser()
    if path.suffix == ".npz":
        return _from_arrays(path.stem, f"sha256:{file_digest(_existing(path))}", read_npz(path))
    if path.name.endswith(AUDITED):
        return _from_list(_existing(path))
    if path.suffix == ".csv":
        return _from_files(path.stem, image_files.from_csv(_existing(path)))
    if path.is_dir():
        return _from_files(path.name, image_files.from_folder(path))
    if path.exists():
        raise LincBenchError(f"{path} is neither an .npz file, nor a .csv file, nor a folder of images.")
    if len(path.parts) > 1:
        raise LincBenchError(f"{path} does not exist. Expected an .npz file, a .csv file or a folder of images.")
    raise unknown_name("data set", name, [*known_datasets(), "path/to/file.npz", "path/to/file.csv", "path/to/folder"])


@lru_cache(maxsize=1)
def load_dataset_once(name: str, data_root: Path | None, info: DatasetInfo) -> Dataset:
    """The data set that `info` was read from, once per process."""
    dataset = load_dataset(name, data_root)
    if dataset.info != info:
        raise LincBenchError(f"{name} changed while it was in use. Run the same command again.")
    return dataset


def _from_list(path: Path) -> Dataset:
    """What an audit wrote (`audited.Audited.write_list`): all samples are for training."""
    try:
        about = json.loads(path.read_text())
        labels, files = np.array(about["labels"], dtype=np.int64), about.get("files")
        images: Images = (
            image_files.FileImages([Path(file) for file in files])
            if files
            else np.concatenate([images for images, _ in read_npz(Path(about["npz"])).values()])
        )
        class_names = tuple(map(str, about["class_names"]))
        sizes = len(labels), 0, 0
        info = DatasetInfo(about["name"], about["identity"], len(class_names), sizes, about["images"])
    except UNREADABLE as error:
        raise LincBenchError(f"{path} is not a list that an audit wrote ({error}). Run the audit again.") from error
    empty = Split(image_files.FileImages([]), np.empty(0, dtype=np.int64))
    return Dataset(info, class_names, Split(images, labels), empty, empty)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise LincBenchError(
            f"The file {path} does not exist. Check the path, or leave out its folder for a known name."
        )
    return path


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)
    identity = f"sha256:{bytes_digest(iter((images.tobytes(), digits.target.astype('<i8').tobytes())))}"
    split_of = image_files.stratified_split(digits.target)
    arrays = {split: (images[split_of == split], digits.target[split_of == split]) for split in SPLITS}
    return _from_arrays("digits", identity, arrays)


def _medmnist_info() -> dict[str, Any]:
    known: dict[str, Any] = medmnist_facts()["INFO"]
    return {flag: info for flag, info in known.items() if "multi-label" not in info["task"] and not flag.endswith("3d")}


def _medmnist_name(name: str) -> tuple[str | None, int]:
    """`organsmnist` → 28 px and `organsmnist_224` → 224 px, as MedMNIST names its own files."""
    flag, _, size = name.lower().partition("_")
    if flag == "chestmnist":
        raise LincBenchError(
            "ChestMNIST has several labels per image; detectors of wrong labels need exactly one. "
            "Choose a single-label set (linc-bench list)."
        )
    if flag not in _medmnist_info() or size not in ("", *map(str, MEDMNIST_SIZES)):
        return None, 0
    return flag, int(size or 28)


def _medmnist_root(data_root: Path | None) -> Path:
    return data_root or Path(medmnist_facts()["DEFAULT_ROOT"])


def _canonical(flag: str, size: int) -> str:
    """The name of MedMNIST's own file, less its ending."""
    return flag if size == 28 else f"{flag}_{size}"


def _md5_key(size: int) -> str:
    return "MD5" if size == 28 else f"MD5_{size}"


def _medmnist(flag: str, size: int, data_root: Path | None) -> Dataset:
    import medmnist

    info = _medmnist_info()[flag]
    file_name = f"{_canonical(flag, size)}.npz"
    root = _medmnist_root(data_root)
    root.mkdir(parents=True, exist_ok=True)
    if not (root / file_name).exists():
        with locked(root, f".{file_name}"):  # a second command waits for the download instead of starting another
            _download(root, file_name, getattr(medmnist, info["python_class"]), size)
    actual, official = file_digest(root / file_name, "md5"), info[_md5_key(size)]
    if actual != official:
        raise LincBenchError(
            f"{root / file_name} is not MedMNIST's file (md5 {actual}, expected {official}): damaged or rebuilt. "
            f"Delete it to download it again, or give its path to use it as it is: --dataset {root / file_name}"
        )
    classes = tuple(info["label"][str(index)] for index in range(len(info["label"])))
    return _from_arrays(_canonical(flag, size), f"md5:{official}", read_npz(root / file_name), classes)


def _download(root: Path, file_name: str, medmnist_class: Any, size: int) -> None:
    try:
        medmnist_class("train", root=str(root), size=size, download=True)
    except RuntimeError as error:
        url = _medmnist_info()[medmnist_class.flag]["url" if size == 28 else f"url_{size}"]
        raise LincBenchError(
            f"{file_name} is not in {root} and could not be downloaded. Fetch it from {url} and put it there, "
            "or name its folder with --data-root."
        ) from error


def _from_arrays(
    name: str,
    identity: str,
    arrays: dict[str, tuple[np.ndarray, np.ndarray]],
    class_names: tuple[str, ...] | None = None,
) -> Dataset:
    highest = max(int(labels.max(initial=0)) for _, labels in arrays.values())
    if highest >= sum(len(labels) for _, labels in arrays.values()):
        raise LincBenchError(f"{name} has the label {highest}, more than it has images; classes are numbered from 0.")
    classes = class_names or tuple(str(index) for index in range(highest + 1))
    return _checked(name, identity, classes, {split: Split(*arrays[split]) for split in SPLITS})


def _from_files(name: str, files: image_files.LabelledFiles) -> Dataset:
    splits = {}
    for split in SPLITS:
        members = [i for i, of in enumerate(files.splits) if of == split]
        images = image_files.FileImages([files.paths[i] for i in members])
        splits[split] = Split(images, files.labels[members])
    return _checked(name, f"sha256:{files.digest()}", files.class_names, splits)


def _checked(name: str, identity: str, class_names: tuple[str, ...], splits: dict[str, Split]) -> Dataset:
    counts = np.bincount(splits["train"].labels, minlength=len(class_names))
    if len(class_names) < 2:
        raise LincBenchError(f"{name} has one class only; a label can be wrong only if there are two or more.")
    if len(counts) > len(class_names):
        raise LincBenchError(f"{name} has labels up to {len(counts) - 1} but {len(class_names)} classes.")
    if (counts == 0).any():
        missing = ", ".join(class_names[i] for i in np.flatnonzero(counts == 0)[:5])
        raise LincBenchError(
            f"{name} has no training sample of class {missing}. Classes are numbered from 0 without gaps; "
            "remove the empty class and renumber the labels."
        )
    for split in SPLITS:
        if not len(splits[split].labels):
            raise LincBenchError(f"The {split} split of {name} is empty; give it at least one image.")
    sizes = len(splits["train"].labels), len(splits["validation"].labels), len(splits["test"].labels)
    info = DatasetInfo(name, identity, len(class_names), sizes)
    return Dataset(info, class_names, splits["train"], splits["validation"], splits["test"])

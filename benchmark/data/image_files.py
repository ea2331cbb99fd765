"""Image files on disk: a folder with one sub-folder per class, or a CSV of path and label."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest, file_digest
from benchmark.seeds import numpy_generator

SPLIT_OF_NAME = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"}
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")  # whatever the name says: other decoders may start programs
VALIDATION_SHARE, TEST_SHARE = 0.1, 0.2
MOST_PIXELS = 10**8  # of one image; more is a mistake or an attack
MOST_DIGITS = 18  # of a class name that is a number


@dataclass(frozen=True)
class FileImages:
    """Decodes images as RGB when they are accessed."""

    paths: Sequence[Path]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, window: slice) -> list[np.ndarray]:
        return [decode(path) for path in self.paths[window]]


@dataclass(frozen=True)
class LabelledFiles:
    root: Path
    paths: tuple[Path, ...]
    labels: np.ndarray
    class_names: tuple[str, ...]
    splits: tuple[str, ...]

    def digest(self) -> str:
        """Of names, labels, splits and contents."""

        def parts() -> Iterator[bytes]:
            yield repr(self.class_names).encode()
            for path, label, split in zip(self.paths, self.labels, self.splits, strict=True):
                yield repr((path.relative_to(self.root).as_posix(), int(label), split, file_digest(path))).encode()

        return bytes_digest(parts())


def from_folder(folder: Path) -> LabelledFiles:
    """`folder/class/image.png`, split here; or `folder/train/class/image.png` with val and test beside it."""
    named = {child.name: child for child in sorted(folder.iterdir()) if child.is_dir() and child.name in SPLIT_OF_NAME}
    if named and {SPLIT_OF_NAME[name] for name in named} != set(SPLIT_OF_NAME.values()):
        raise LincBenchError(
            f"{folder} has {', '.join(named)} but a split folder needs train, val and test; "
            "add what is missing, or put the class folders directly into it; then they are split automatically."
        )
    roots = named or {"": folder}
    rows = [
        (path, label, SPLIT_OF_NAME.get(name))
        for name, root in roots.items()
        for path, label in files_by_class(root)
        if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
    empty = [
        f"{root.name}/{child.name}" for root in roots.values() for child in root.iterdir() if _is_empty_class(child)
    ]
    if rows and empty:
        raise LincBenchError(
            f"{folder} has class folders without an image: {', '.join(sorted(empty)[:5])}. Remove them."
        )
    if not rows:
        raise LincBenchError(f"{folder} has no images in class sub-folders; expected {folder}/CLASS/IMAGE.png.")
    return _labelled(folder, *zip(*rows, strict=True))


def files_by_class(root: Path) -> list[tuple[Path, str]]:
    """All files below the folders of classes, in order, each with its class."""
    files = [path for path in sorted(root.glob("*/**/*")) if not path.is_dir()]
    return [(path, path.relative_to(root).parts[0]) for path in files]


def _is_empty_class(folder: Path) -> bool:
    return folder.is_dir() and not any(path.suffix.lower() in SUFFIXES for path in folder.rglob("*"))


def from_csv(path: Path) -> LabelledFiles:
    """Columns `path` (relative to the CSV) and `label`; a column `split` with train, val and test is optional."""
    names, labels, splits = [], [], []
    for line, row in enumerate(read_rows(path), start=2):
        name, label, split = row["path"] or "", row["label"] or "", row.get("split")
        if not label:
            raise LincBenchError(f"Line {line} of {path} has no label.")
        if split is not None and split not in SPLIT_OF_NAME:
            raise LincBenchError(f"Line {line} of {path} has the split '{split}'; expected train, val or test.")
        names.append(file_inside(path, line, name))
        labels.append(label)
        splits.append(SPLIT_OF_NAME[split] if split is not None else None)
    return _labelled(path.parent, names, labels, splits)


def read_rows(path: Path) -> list[dict[str, str | None]]:
    """Of a CSV that has a row per image with at least a path and a label."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise LincBenchError(f"{path} is not a CSV file in UTF-8 ({error}). Export it again.") from error
    if not rows:
        raise LincBenchError(
            f"{path} has no rows; expected a header with the columns path and label, and a row per image."
        )
    if not {"path", "label"} <= set(rows[0]):
        columns = ", ".join(str(column) for column in rows[0])
        hint = " Separate columns by commas." if ";" in columns or "\t" in columns else ""
        raise LincBenchError(f"{path} has the columns {columns}; expected path and label, optionally split.{hint}")
    return rows


def file_inside(path: Path, line: int, name: str) -> Path:
    image = path.parent / name
    try:
        whole, root = image.resolve(), path.parent.resolve()
        leaves, is_file = not whole.is_relative_to(root), image.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a zero byte, links in a circle
        raise LincBenchError(f"Line {line} of {path} names no file in its folder: {name!r} ({error}).") from error
    if leaves:
        raise LincBenchError(
            f"Line {line} of {path} leaves its folder: '{name}'. Put the images beside or below the CSV."
        )
    if not is_file:
        raise LincBenchError(f"Line {line} of {path} names '{name}', which is not a file in {path.parent}.")
    return path.parent / whole.relative_to(root) if Path(name).is_absolute() else image


def _labelled(root: Path, paths: Sequence[Path], names: Sequence[str], splits: Sequence[str | None]) -> LabelledFiles:
    class_names, labels = numbered(names)
    chosen = tuple(stratified_split(labels)) if splits[0] is None else tuple(str(split) for split in splits)
    return LabelledFiles(root, tuple(paths), labels, class_names, chosen)


def numbered(names: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Classes in the order of their names, or of their numbers if all have one, and each sample's place in it."""
    numeric = all(name.isdecimal() and len(name) <= MOST_DIGITS for name in names)
    class_names = sorted(set(names), key=(lambda name: (int(name), name)) if numeric else None)
    index_of = {name: index for index, name in enumerate(class_names)}
    return tuple(class_names), np.array([index_of[name] for name in names], dtype=np.int64)


def stratified_split(labels: np.ndarray) -> np.ndarray:
    """A fixed 70 / 10 / 20 split into train, validation and test, within each class."""
    generator = numpy_generator(0, "split")
    split_of = np.full(len(labels), "train", dtype="<U10")
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        test, validation = round(TEST_SHARE * len(members)), round(VALIDATION_SHARE * len(members))
        split_of[members[:test]] = "test"
        split_of[members[test : test + validation]] = "validation"
    return split_of


def decode(path: Path) -> np.ndarray:
    from PIL import Image  # not needed to list or describe data sets

    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width:,} × {image.height:,} pixels are more than {MOST_PIXELS:,}")
            if image.mode.startswith(("I", "F")):  # more than 8 bits: how to show them is the owner's decision
                raise ValueError(f"mode {image.mode} has more than 8 bits per channel; convert it to 8 bits first")
            return np.asarray(image.convert("RGB"))
    except Exception as error:  # for a damaged file its decoder may raise anything
        raise LincBenchError(f"{path} cannot be read as an image ({error}). Repair or remove it.") from error

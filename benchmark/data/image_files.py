"""Labelled image files on disk: a folder with one sub-folder per class, or a CSV of path and label."""

import csv
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from benchmark.data.decoding import SUFFIXES, decode, stored_depth
from benchmark.data.medical_files import check_installed, check_one_depth
from benchmark.data.npz_files import KEY_OF_SPLIT
from benchmark.disk import restored
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest, file_digest
from benchmark.paths import regular_file
from benchmark.seeds import numpy_generator

SPLIT_OF_NAME = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}
COLUMNS = ("path", "label", "split")  # of a CSV, in any case
VALIDATION_SHARE, TEST_SHARE = 0.1, 0.2
REVIEWED = ("id", "given", "decision")  # columns of labels that `apply-review` wrote
MOST_DIGITS = 18  # of a class name that is a number


class Images(Protocol):
    """Pictures in a fixed order; a slice gives 8-bit arrays, height × width or height × width × 3."""

    def __len__(self) -> int: ...
    def __getitem__(self, window: slice, /) -> Sequence[np.ndarray] | np.ndarray: ...


class Split(NamedTuple):
    images: Images
    labels: np.ndarray


class LabelledFiles(NamedTuple):
    identity: str  # changes with a name, a label, a split or a pixel
    class_names: tuple[str, ...]
    splits: dict[str, Split]


class _Row(NamedTuple):
    path: Path
    label: str
    split: str | None
    listed: str  # as sentences name it


@dataclass(frozen=True)
class FileImages:
    """Decodes images as RGB when they are accessed."""

    paths: Sequence[Path]
    digests: Sequence[str] = ()  # of the files, if known

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, window: slice) -> list[np.ndarray]:
        return [decode(path) for path in self.paths[window]]


def from_folder(folder: Path) -> LabelledFiles:
    """`folder/class/image.png`, split here; or `folder/train/class/image.png` with val and test beside it."""
    named = {child.name: child for child in sorted(folder.iterdir()) if child.is_dir() and child.name in SPLIT_OF_NAME}
    if named and {SPLIT_OF_NAME[name] for name in named} != set(KEY_OF_SPLIT):
        raise LincBenchError(
            f"{folder} has {', '.join(named)} but a split folder needs train, val and test; "
            "add what is missing, or put the class folders directly into it; then they are split automatically."
        )
    rows: list[_Row] = []
    empty: list[str] = []
    for name, root in (named or {"": folder}).items():
        files = [(file, label) for file, label in files_by_class(root, folder) if file.suffix.lower() in SUFFIXES]
        for file, label in files:
            inner = file.relative_to(folder)
            listed = in_source(inner, folder)
            rows.append(_Row(file_inside(folder, inner, listed), label, SPLIT_OF_NAME.get(name), listed))
        classes = {child.name.strip() for child in root.iterdir() if child.is_dir()} - {label for _, label in files}
        empty += [f"{root.name}/{label}" for label in classes]
    if not rows:
        raise LincBenchError(f"{folder} has no images in class sub-folders; expected {folder}/CLASS/IMAGE.png.")
    if empty:
        raise LincBenchError(
            f"{folder} has class folders without an image: {', '.join(sorted(empty)[:5])}. Remove them."
        )
    return _labelled(folder, rows)


def files_by_class(root: Path, source: Path) -> list[tuple[Path, str]]:
    """All files below the folders of classes, in order, each with its class; no link leads out of `source`."""

    def fail(error: OSError) -> None:
        raise error

    files: list[Path] = []
    folders: dict[Path, str] = {}
    for name, _, names in os.walk(root, onerror=fail, followlinks=True):
        folder = Path(name)
        listed = in_source(folder.relative_to(source), source)
        check_listed_once(folders, _inside(source, folder, listed), listed)
        files += [folder / file for file in names if folder != root]
    classes = {file: file.relative_to(root).parts[0].strip() for file in sorted(files)}
    if "" in classes.values():
        raise LincBenchError(f"{root} has a class folder whose name is blank. Rename it.")
    return list(classes.items())


def from_csv(path: Path) -> LabelledFiles:
    """Columns `path` (relative to the CSV) and `label`; a column `split` with train, val and test is optional."""
    rows: list[_Row] = []
    for line, row in read_rows(path):
        label, split = row["label"].strip(), row["split"].strip() if "split" in row else None
        if not label:
            raise LincBenchError(f"Line {line} of {path} has no label.")
        if split is not None and split not in SPLIT_OF_NAME:
            raise LincBenchError(f"Line {line} of {path} has the split '{split}'; expected train, val or test.")
        listed = in_source(row["path"], path, line)
        image = file_inside(path.parent, row["path"], listed)
        rows.append(_Row(image, label, SPLIT_OF_NAME[split] if split else None, listed))
    return _labelled(path.parent, rows)


def read_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Of a CSV that has a row per image with at least a path and a label: its line, and its cells by their columns."""
    try:
        with regular_file(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)  # or else a quote that is not closed swallows rows
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise LincBenchError(f"{path} is not a CSV file in UTF-8 ({error}). Export it again.") from error
    if len(lines) < 2:
        raise LincBenchError(
            f"{path} has no rows; expected a header with the columns path and label, and a row per image."
        )
    header = [known if (known := name.strip().lower()) in COLUMNS else name for name in lines[0][1]]
    if not {"path", "label"} <= set(header):
        columns = ", ".join(header)
        hint = " Separate columns by commas." if ";" in columns or "\t" in columns else ""
        raise LincBenchError(f"{path} has the columns {columns}; expected path and label, optionally split.{hint}")
    if doubled := [name for name, count in Counter(header).items() if name and count > 1]:
        raise LincBenchError(f"{path} has the column {doubled[0]} more than once. Remove or rename one of them.")
    for line, cells in lines:
        if len(cells) != len(header):
            raise LincBenchError(
                f"Line {line} of {path} has {len(cells)} cells, and its header has {len(header)}. Leave no cell out, "
                "and put a cell that has a comma into double quotes."
            )
    as_meant = restored if set(REVIEWED) <= set(header) else str
    return [(line, dict(zip(header, map(as_meant, cells), strict=True))) for line, cells in lines[1:]]


def in_source(name: Path | str, source: Path, line: int | None = None) -> str:
    """How sentences name an image: what is listed, and where."""
    return f"'{name}' in {f'line {line} of ' if line else ''}{source}"


def file_inside(root: Path, name: Path | str, listed: str) -> Path:
    """The image of that name, if it is a file in `root` or below it, also after links are followed."""
    whole = _inside(root, root / name, listed)
    regular_file(root / name, listed, "Remove it, or put the image there.")
    return root / whole.relative_to(root.resolve()) if Path(name).is_absolute() else root / name


def _inside(root: Path, path: Path, listed: str) -> Path:
    """Where links lead to."""
    try:
        whole = path.resolve()
        path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a zero byte, links in a circle
        raise LincBenchError(f"{listed} names no file in its folder ({error}).") from error
    if whole.is_relative_to(root.resolve()):
        return whole
    if Path(os.path.normpath(path)).is_relative_to(os.path.normpath(root)):  # by a link
        raise LincBenchError(f"{listed} leaves its folder: it leads to {whole}. Put the images themselves into {root}.")
    raise LincBenchError(
        f"{listed} leaves the folder of the CSV, {root}. Paths are relative to the CSV, which has to be in or above "
        f"the folder of its images. Move it to {whole.parent}, or to a folder above it that has all images."
    )


def check_listed_once(known: dict[Path, str], file: Path, listed: str) -> None:
    """Adds a file, by its real path, to those that are known."""
    if other := known.get(file):
        raise LincBenchError(f"{listed} is the same as {other}. Keep one of them.")
    known[file] = listed


def _labelled(root: Path, rows: Sequence[_Row]) -> LabelledFiles:
    known: dict[Path, str] = {}
    for row in rows:
        check_listed_once(known, row.path.resolve(), row.listed)
    _check_depths(root, rows)
    class_names, labels = numbered([row.label for row in rows])
    if rows[0].split is None:
        split_of = stratified_split(labels).tolist()
        written = [f"np.str_({split!r})" for split in split_of]  # as the first identities had it
    else:
        split_of = [row.split for row in rows]
        written = list(map(repr, split_of))
    digests = [file_digest(row.path) for row in rows]
    described = (
        f"({row.path.relative_to(root).as_posix()!r}, {label}, {split}, {digest!r})".encode()
        for row, label, split, digest in zip(rows, labels.tolist(), written, digests, strict=True)
    )
    members = {name: [i for i, split in enumerate(split_of) if split == name] for name in KEY_OF_SPLIT}
    return LabelledFiles(
        f"sha256:{bytes_digest(chain([repr(class_names).encode()], described))}",
        class_names,
        {
            name: Split(FileImages([rows[i].path for i in members], [digests[i] for i in members]), labels[members])
            for name, members in members.items()
        },
    )


def _check_depths(root: Path, rows: Sequence[_Row]) -> None:
    check_installed(row.path for row in rows)
    depths = {row.listed: depth for row in rows if (depth := stored_depth(row.path)) is not None}
    check_one_depth(str(root), depths)


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

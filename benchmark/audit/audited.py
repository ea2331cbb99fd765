"""What is audited: every labelled image of a folder, a CSV or an .npz, whatever its split.

An image that cannot be read is listed and left out, since one of thousands should not end an audit.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.data import image_files
from benchmark.data.datasets import Images
from benchmark.data.npz_files import KEY_OF_SPLIT, read_npz
from benchmark.disk.files import write_json
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest, file_digest

FEWEST = 40  # images; with fewer, nothing can be learned of them
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Audited:
    """Samples in the order of the data, with their labels as given."""

    source: Path
    name: str
    identity: str  # changes when a pixel or a label does
    pixels: str  # changes when a pixel does
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    labels: np.ndarray
    images: Images
    unreadable: tuple[tuple[str, str], ...] = ()  # ids, and why
    groups: tuple[str, ...] = ()  # one per sample, if the data say so
    paths: tuple[str, ...] = ()  # likewise, where ids are others

    def write_list(self, path: Path) -> None:
        """So that workers find the same samples, without looking at all images again (`datasets.load_dataset`)."""
        files = isinstance(self.images, image_files.FileImages) and [str(one.absolute()) for one in self.images.paths]
        images = {"files": files} if files else {"npz": str(self.source.absolute())}
        about = {"name": self.name, "identity": self.identity, "images": self.pixels}
        write_json(path, about | images | {"class_names": self.class_names, "labels": self.labels.tolist()})


@dataclass(frozen=True)
class _Row:
    id: str
    label: str
    path: Path | None  # none where there is no such file
    group: str = ""
    why: str = ""
    name: str = ""  # of the file, as the CSV has it


def read_audited(path: Path, group_column: str | None = None, report: Report = lambda done, total: None) -> Audited:
    if group_column is not None and path.suffix.lower() != ".csv":
        raise LincBenchError(f"Groups are a column of a CSV; {path} is none. Leave --group out.")
    if path.suffix.lower() == ".npz" and path.is_file():
        found = _from_npz(path)
    elif path.suffix.lower() == ".csv" and path.is_file():
        found = _from_rows(path, path.stem, _rows_of_csv(path, group_column), report)
    elif path.is_dir():
        found = _from_rows(path, path.resolve().name, _rows_of_folder(path), report)
    else:
        there = (
            "is neither a folder of images, nor a .csv file, nor an .npz file" if path.exists() else "does not exist"
        )
        raise LincBenchError(f"{path} {there}. Expected a folder with a sub-folder per class, a .csv or an .npz.")
    _check(path, found)
    return found


def _check(path: Path, found: Audited) -> None:
    if len(found.class_names) < 2:
        raise LincBenchError(f"{path} has one class only; a label can be wrong only if there are two or more.")
    if len(found.ids) < FEWEST:
        raise LincBenchError(f"{path} has {len(found.ids)} readable images; an audit needs at least {FEWEST}.")


def _from_npz(path: Path) -> Audited:
    splits = read_npz(path)
    images = [images for images, _ in splits.values()]
    if len({one.shape[1:] for one in images}) > 1:
        raise LincBenchError(f"The splits of {path} have images of different shapes: {[one.shape for one in images]}.")
    ids = [f"{KEY_OF_SPLIT[split]}/{number}" for split, (_, labels) in splits.items() for number in range(len(labels))]
    names = [str(label) for _, labels in splits.values() for label in labels]
    class_names, labels = image_files.numbered(names)
    identity, everything = f"sha256:{file_digest(path)}", np.concatenate(images)
    pixels = f"sha256:{bytes_digest(iter((repr(everything.shape).encode(), everything.data)))}"
    return Audited(path, path.stem, identity, pixels, tuple(ids), class_names, labels, everything)


def _rows_of_csv(path: Path, group_column: str | None) -> Iterator[_Row]:
    rows = image_files.read_rows(path)
    if group_column is not None and group_column not in rows[0]:
        raise LincBenchError(f"{path} has no column '{group_column}'; it has {', '.join(map(str, rows[0]))}.")
    for line, row in enumerate(rows, start=2):
        name, label = row["path"] or "", (row["label"] or "").strip()
        group = row[group_column] or "" if group_column else ""
        found, why = None, "" if label else f"Line {line} of {path} has no label."
        try:
            found = None if why else image_files.file_inside(path, line, name)
        except LincBenchError as error:
            why = str(error)
        yield _Row(row.get("id") or name, label, found, group, why, name)


def _rows_of_folder(folder: Path) -> Iterator[_Row]:
    children = [child for child in sorted(folder.iterdir()) if child.is_dir() and not child.name.startswith(".")]
    splits = [child for child in children if child.name in image_files.SPLIT_OF_NAME]
    if splits and len(splits) < len(children):
        other = next(child.name for child in children if child not in splits)
        raise LincBenchError(
            f"{folder} has both splits ({splits[0].name}) and others ({other}). Put the class folders into the splits, "
            "or rename what is a class and not a split."
        )
    for root in splits or [folder]:
        for path in sorted(root.glob("*/**/*")):
            if path.is_dir() or path.name.startswith("."):
                continue
            is_image = path.suffix.lower() in image_files.SUFFIXES
            why = "" if is_image else f"{path.suffix or 'its name'} is not how an image's name ends"
            label = path.relative_to(root).parts[0]
            yield _Row(path.relative_to(folder).as_posix(), label, path if is_image else None, why=why)


def _from_rows(source: Path, name: str, rows: Iterator[_Row], report: Report) -> Audited:
    everything = list(rows)
    if not everything:
        raise LincBenchError(f"{source} has no images in class sub-folders; expected {source}/CLASS/IMAGE.png.")
    repeated = [id for id, times in Counter(row.id for row in everything).items() if times > 1]
    if repeated:
        raise LincBenchError(
            f"'{repeated[0]}' stands for more than one image of {name} (so do {len(repeated) - 1} other ids), and "
            "decisions cannot tell those apart. Name each image once, by its path or by the column `id`."
        )
    digests, reasons = _look_at(everything, report)
    readable = [row for row, why in zip(everything, reasons, strict=True) if not why]
    if not readable:
        raise LincBenchError(f"None of the {len(everything):,} images of {name} can be read. The first: {reasons[0]}")
    class_names, labels = image_files.numbered([row.label for row in readable])
    known = (
        repr((_shown(row.id), row.label, digest)).encode() for row, digest in zip(everything, digests, strict=True)
    )
    return Audited(
        source,
        name,
        f"sha256:{bytes_digest(known)}",
        f"sha256:{bytes_digest(digest.encode() for digest in digests if digest)}",
        tuple(row.id for row in readable),
        class_names,
        labels,
        image_files.FileImages([row.path for row in readable if row.path is not None]),
        tuple((_shown(row.id), why) for row, why in zip(everything, reasons, strict=True) if why),
        tuple(row.group for row in readable) if any(row.group for row in readable) else (),
        tuple(row.name for row in readable) if any(row.name not in ("", row.id) for row in readable) else (),
    )


def _is_plain(name: str) -> bool:
    return name == _shown(name) and not set(name) & {"\n", "\r", "\0"}


def _shown(name: str) -> str:
    """What is no UTF-8 on disk has half characters in Python, which cannot be written."""
    return name.encode(errors="backslashreplace").decode()


def _look_at(rows: Sequence[_Row], report: Report) -> tuple[list[str], list[str]]:
    """The digest of each file, and why it cannot be read as an image, if it cannot."""

    def look(row: _Row) -> tuple[str, str]:
        if row.path is None:
            return "", row.why
        if not (_is_plain(row.id) and _is_plain(row.label)):
            return "", "its name is not UTF-8 or has a line break; rename it"
        try:
            image_files.decode(row.path)
            return file_digest(row.path), ""
        except (LincBenchError, OSError) as error:
            return "", str(error)

    found = []
    with ThreadPoolExecutor() as threads:  # decoders let them run side by side
        for number, one in enumerate(threads.map(look, rows), 1):
            found.append(one)
            report(number, len(rows))
    return [digest for digest, _ in found], [why for _, why in found]

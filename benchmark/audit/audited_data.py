"""The data that an audit reads: every labelled image of a folder, a CSV or an .npz, whatever its split.

An image that cannot be read is listed and left out, since one of thousands should not end an audit.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark.data import image_files, medical_files
from benchmark.data.datasets import AUDITED, Dataset, DatasetInfo, Images, load_dataset
from benchmark.data.decoding import SUFFIXES, read_image
from benchmark.data.npz_files import KEY_OF_SPLIT, read_npz
from benchmark.disk import write_json
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest, file_digest
from benchmark.names import check_title

FEWEST = 40  # images; fewer are too few to learn from
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class AuditedData:
    """Samples in the order of the data, with their labels as given."""

    source: Path
    name: str
    identity: str  # changes when a pixel or a label does
    pixels: str  # changes when a pixel does
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    labels: np.ndarray
    images: Images
    unreadable: tuple[tuple[str, str], ...] = ()  # ids with the reasons
    groups: tuple[str, ...] = ()  # one per sample, if the data have groups
    paths: tuple[str, ...] = ()  # one per sample, if they differ from the ids
    shape: tuple[int, int] = (0, 0)  # median height and width in pixels
    shown: str = ""  # how values became 8-bit, in sentences, if any did
    splits: tuple[str, ...] = ()  # train, validation, test or nothing, one per sample, if there are several
    kept_together: tuple[str, ...] = ()  # one per sample: equal values share a fold, an empty one is on its own
    fold_column: str = ""  # where these values are from

    def __post_init__(self) -> None:
        check_title("data set", self.name)

    @property
    def folds(self) -> str:
        """What folds keep together, in a sentence, if a column says so."""
        count = len({*self.kept_together} - {""})
        return f"{count:,} values of {self.fold_column}, each in one fold of the held-out classifiers." * bool(count)

    def write_list(self, folder: Path) -> Path:
        """Writes the samples as a data set of their own, so that workers need not look for images again."""
        images: dict[str, object] = {"npz": str(self.source.absolute())}
        if isinstance(self.images, image_files.FileImages):
            images = {"files": [str(file.absolute()) for file in self.images.paths]}
        about = {"name": self.name, "identity": self.identity, "images": self.pixels}
        path = folder / f"samples{AUDITED}"
        write_json(path, about | images | {"class_names": self.class_names, "labels": self.labels.tolist()})
        return path

    def as_dataset(self) -> Dataset:
        """As the list has it: all samples are for training."""
        sizes, empty = (len(self.ids), 0, 0), image_files.Split(image_files.FileImages([]), np.empty(0, dtype=np.int64))
        info = DatasetInfo(self.name, self.identity, len(self.class_names), sizes, self.pixels)
        return Dataset(info, self.class_names, image_files.Split(self.images, self.labels), empty, empty)


def read_audited_data(
    path: Path,
    group_column: str | None = None,
    report: Report = lambda done, total: None,
    fold_column: str | None = None,
) -> AuditedData:
    kind = path.suffix.lower()
    for option, column in (("--group", group_column), ("--fold-by", fold_column)):
        if column is not None and kind != ".csv":
            raise LincBenchError(f"{option} names a column of a CSV, and {path} is not a CSV. Leave it out.")
    if kind == ".npz" and path.is_file():
        data = _from_npz(path)
    elif kind == ".csv" and path.is_file():
        data = _from_rows(path, path.stem, list(_rows_of_csv(path, group_column, fold_column)), report)
    elif path.is_dir():
        data = _from_rows(path, path.resolve().name, list(_rows_of_folder(path)), report)
    else:
        problem = "is not a folder of images, a .csv file or an .npz file" if path.exists() else "does not exist"
        raise LincBenchError(f"{path} {problem}. Expected a folder with a sub-folder per class, a .csv or an .npz.")
    if len(data.class_names) < 2:
        raise LincBenchError(f"{path} has only one class; an audit needs at least two.")
    if len(data.ids) < FEWEST:
        raise LincBenchError(f"{path} has {len(data.ids)} readable images; an audit needs at least {FEWEST}.")
    if fold_column is not None:
        check_values(data.kept_together, f"The column '{fold_column}' of {path}")
        data = replace(data, fold_column=fold_column)
    return data


def check_values(kept_together: Sequence[str], what: str) -> None:
    """Folds need something to tell apart."""
    if (count := len({*kept_together} - {""})) < 2:
        raise LincBenchError(f"{what} has {'only one value' if count else 'no values'}; folds by it need at least two.")


def splits_if_several(named: Iterable[str]) -> tuple[str, ...]:
    """Of samples whose split is called so; another name than train, val, validation or test is none."""
    names = tuple(image_files.SPLIT_OF_NAME.get(name.strip().lower(), "") for name in named)
    return names if len({*names} - {""}) > 1 else ()


def write_digits(folder: Path) -> Path:
    """scikit-learn's digits as an .npz file."""
    arrays: dict[str, np.ndarray] = {}
    for key, split in zip(KEY_OF_SPLIT.values(), load_dataset("digits").splits, strict=True):
        arrays |= {f"{key}_images": np.asarray(split.images), f"{key}_labels": split.labels[:, None]}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "digits.npz", **arrays)  # type: ignore[arg-type]  # its stub takes them for allow_pickle
    return folder / "digits.npz"


def _from_npz(path: Path) -> AuditedData:
    splits = read_npz(path)
    images = [images for images, _ in splits.values()]
    if len({array.shape[1:] for array in images}) > 1:
        shapes = [array.shape for array in images]
        raise LincBenchError(f"The splits of {path} have images of different shapes: {shapes}.")
    ids = [f"{KEY_OF_SPLIT[split]}/{number}" for split, (_, labels) in splits.items() for number in range(len(labels))]
    class_names, labels = image_files.numbered([str(label) for _, labels in splits.values() for label in labels])
    identity, everything = f"sha256:{file_digest(path)}", np.concatenate(images)
    pixels = f"sha256:{bytes_digest(iter((repr(everything.shape).encode(), everything.data)))}"
    split_of = splits_if_several(split for split, (_, labels) in splits.items() for _ in labels)
    data = AuditedData(path, path.stem, identity, pixels, tuple(ids), class_names, labels, everything, splits=split_of)
    return replace(data, shape=everything.shape[1:3])


@dataclass(frozen=True)
class _Row:
    id: str
    label: str
    listed: str  # as sentences name it
    path: Path | None = None  # None if there is no such image file
    problem: str = ""  # why it cannot be audited
    group: str = ""
    name: str = ""  # of the file, as the CSV has it
    digest: str = ""  # of the file
    facts: medical_files.Facts = medical_files.Facts()
    shape: tuple[int, int] = (0, 0)
    split: str = ""
    fold: str = ""  # samples with the same one share a fold


def _rows_of_csv(path: Path, group_column: str | None, fold_column: str | None) -> Iterator[_Row]:
    rows = image_files.read_rows(path)
    columns = rows[0][1]
    for column in (group_column, fold_column):
        if column is not None and column not in columns:
            raise LincBenchError(f"{path} has no column '{column}'; it has {', '.join(columns)}.")
    for line, row in rows:
        name, label, listed = row["path"], row["label"].strip(), image_files.in_source(row["path"], path, line)
        group = row[group_column] if group_column else ""
        fold = row[fold_column].strip() if fold_column else ""
        split = row.get("split", "")
        sample = _Row(row.get("id") or name, label, listed, group=group, name=name, split=split, fold=fold)
        no_label = replace(sample, problem=f"Line {line} of {path} has no label.")
        yield _with_file(sample, path.parent, name) if label else no_label


def _rows_of_folder(folder: Path) -> Iterator[_Row]:
    children = [child for child in sorted(folder.iterdir()) if child.is_dir() and not child.name.startswith(".")]
    splits = [child for child in children if child.name in image_files.SPLIT_OF_NAME]
    if splits and len(splits) < len(children):
        other = next(child.name for child in children if child not in splits)
        raise LincBenchError(
            f"{folder} has both split folders ({splits[0].name}) and others ({other}). Put the class folders into the "
            "split folders, or rename the class folders that are called like a split."
        )
    for root in splits or [folder]:
        for path, label in image_files.files_by_class(root, folder):
            if path.name.startswith("."):
                continue
            name, listed = path.relative_to(folder), image_files.in_source(path.relative_to(folder), folder)
            sample = _Row(name.as_posix(), label, listed, split=root.name if splits else "")
            is_image = path.suffix.lower() in SUFFIXES or medical_files.is_dicom(path)
            no_image = replace(sample, problem="it has no image file extension, and is no DICOM file; rename an image")
            yield _with_file(sample, folder, name) if is_image else no_image


def _with_file(sample: _Row, root: Path, name: Path | str) -> _Row:
    try:
        return replace(sample, path=image_files.file_inside(root, name, sample.listed))
    except LincBenchError as error:
        return replace(sample, problem=str(error))


def _from_rows(source: Path, name: str, listed: Sequence[_Row], report: Report) -> AuditedData:
    if not listed:
        raise LincBenchError(f"{source} has no images in class sub-folders; expected {source}/CLASS/IMAGE.png.")
    repeated = [id for id, count in Counter(row.id for row in listed).items() if count > 1]
    if repeated:
        raise LincBenchError(
            f"'{repeated[0]}' is the id of more than one image of {name} (as are {len(repeated) - 1} other ids). Give "
            "each image an id of its own, by its path or by the column `id`."
        )
    _check_files(listed)
    rows: list[_Row] = []
    with ThreadPoolExecutor() as threads:  # decoders release the interpreter's lock
        for row in threads.map(_looked_at, listed):
            rows.append(row)
            report(len(rows), len(listed))
    readable = [row for row in rows if not row.problem]
    if not readable:
        raise LincBenchError(f"None of the {len(rows):,} images of {name} can be audited. The first: {rows[0].problem}")
    medical_files.check_one_depth(str(source), {row.id: row.facts.depth for row in readable})
    class_names, labels = image_files.numbered([row.label for row in readable])
    height, width = np.median([row.shape for row in readable], axis=0).astype(int).tolist()
    described = (repr((_printable(row.id), row.label, row.digest)).encode() for row in rows)
    ids, groups = tuple(row.id for row in readable), tuple(row.group for row in readable)
    paths, folds = tuple(row.name or row.id for row in readable), tuple(row.fold for row in readable)
    return AuditedData(
        source,
        name,
        f"sha256:{bytes_digest(described)}",
        f"sha256:{bytes_digest(row.digest.encode() for row in readable)}",
        ids,
        class_names,
        labels,
        image_files.FileImages([row.path for row in readable if row.path is not None]),
        tuple((_printable(row.id), row.problem) for row in rows if row.problem),
        groups if any(groups) else (),
        paths if paths != ids else (),
        (height, width),
        medical_files.summary([row.facts for row in readable]),
        splits_if_several(row.split for row in readable),
        folds if any(folds) else (),
    )


def _check_files(listed: Sequence[_Row]) -> None:
    known: dict[Path, str] = {}
    for row in listed:
        if row.path is not None:
            image_files.check_listed_once(known, row.path.resolve(), row.listed)
    medical_files.check_installed(known)


def _printable(name: str) -> str:
    """File names that are not UTF-8 have surrogate characters in Python, which cannot be written."""
    return name.encode(errors="backslashreplace").decode()


def _looked_at(row: _Row) -> _Row:
    """With the digest of its file, or why it cannot be read as an image."""
    names = row.id + row.label
    if row.path is None:
        return row
    if names != _printable(names) or set(names) & {"\n", "\r", "\0"}:
        return replace(row, problem="its name is not UTF-8 or has a line break; rename it")
    try:
        pixels, facts = read_image(row.path)
        return replace(row, digest=file_digest(row.path), facts=facts, shape=pixels.shape[:2])
    except (LincBenchError, OSError) as error:
        return replace(row, problem=str(error))

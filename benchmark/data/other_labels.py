"""A second label for each image of a data set's own file: another key of an .npz, another column of a CSV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmark.data.datasets import load_dataset
from benchmark.data.image_files import SPLIT_OF_NAME, numbered, read_rows, stratified_split
from benchmark.data.npz_files import KEY_OF_SPLIT
from benchmark.disk import UNREADABLE, open_arrays
from benchmark.errors import LincBenchError
from benchmark.paths import regular_file, typed_path

LABELLED = ("train", "validation")  # splits whose labels may be wrong; test labels stay as they are


def other_labels(argument: str, column: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """These labels of training and validation, and the correct ones of training."""
    path = typed_path(argument)
    if path.suffix.lower() not in (".npz", ".csv"):
        raise LincBenchError(
            f"{argument} has one label per image. Labels that people gave are a second key of an .npz or a second "
            f"column of a CSV: give such a file with --dataset, and the key or column with --given-labels."
        )
    dataset = load_dataset(argument)
    correct = {"train": dataset.train.labels, "validation": dataset.validation.labels}
    read = _from_npz if path.suffix.lower() == ".npz" else _from_csv
    other = read(path, column, dataset.class_names)
    for split, labels in other.items():
        is_class = np.isin(labels, range(len(dataset.class_names)))
        if labels.shape != correct[split].shape:
            problem = f"{labels.size:,} labels in {column} for {len(correct[split]):,} images"
        elif not is_class.all():
            problem = f"the label {labels[~is_class][0]} in {column}, which is no class of the correct labels"
        else:
            continue
        raise LincBenchError(f"The {split} split of {path} has {problem}. Give one label per image, in their order.")
    if all((other[split] == correct[split]).all() for split in other):
        raise LincBenchError(f"{column} of {path} has the same labels as the correct ones; none is wrong.")
    return other, correct["train"]


def _from_npz(path: Path, column: str, class_names: Sequence[str]) -> dict[str, np.ndarray]:
    prefix = f"{KEY_OF_SPLIT['train']}_labels"
    try:
        with open_arrays(regular_file(path)) as arrays:
            others = [key for key in arrays if key.startswith(f"{prefix}_")]
            keys = {split: column.replace(prefix, f"{KEY_OF_SPLIT[split]}_labels", 1) for split in LABELLED}
            missing = [key for key in keys.values() if key not in arrays]
            if missing or not column.startswith(f"{prefix}_"):
                raise LincBenchError(
                    f"{path} has no labels {', '.join(missing) or column}; training and validation each need some. "
                    f"Keys go on after {prefix}: it has {', '.join(others) or 'none'}."
                )
            return {split: _whole_numbers(path, key, arrays[key]) for split, key in keys.items()}
    except UNREADABLE as error:
        raise LincBenchError(f"{path} cannot be read as arrays ({error}). Fetch or write it again.") from error


def _whole_numbers(path: Path, key: str, labels: np.ndarray) -> np.ndarray:
    if not np.issubdtype(labels.dtype, np.integer) or labels.squeeze().ndim != 1:
        raise LincBenchError(f"{key} in {path} is {labels.dtype} of shape {labels.shape}; expected a class per image.")
    return labels.reshape(-1).astype(np.int64)


def _from_csv(path: Path, column: str, class_names: Sequence[str]) -> dict[str, np.ndarray]:
    rows = [row for _, row in read_rows(path)]
    if column not in rows[0]:
        raise LincBenchError(f"{path} has no column '{column}'; it has {', '.join(rows[0])}.")
    number = {name: index for index, name in enumerate(class_names)}
    labels = np.array([number.get(row[column].strip(), -1) for row in rows])
    if (labels < 0).any():
        row = int(np.flatnonzero(labels < 0)[0])
        raise LincBenchError(
            f"'{rows[row][column]}' in {column} of {path}, image {rows[row]['path']}, is no class of its column label "
            f"({', '.join(class_names[:8])}). Correct it, or leave the image out."
        )
    if "split" in rows[0]:
        split_of = np.array([SPLIT_OF_NAME[row["split"].strip()] for row in rows])
    else:
        split_of = stratified_split(numbered([row["label"].strip() for row in rows])[1])
    return {split: labels[split_of == split] for split in LABELLED}

"""Reads an .npz in MedMNIST's layout: {train,val,test}_images and {train,val,test}_labels; other keys are ignored."""

import zipfile
from pathlib import Path

import numpy as np

from benchmark.disk import UNREADABLE, check_unpacked_size
from benchmark.errors import LincBenchError

KEY_OF_SPLIT = {"train": "train", "validation": "val", "test": "test"}


def read_npz(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images and labels of each split. Nothing is ever unpickled."""
    if not zipfile.is_zipfile(path):
        raise LincBenchError(
            f"{path} is not a whole .npz file: truncated in a download, or of another format. Fetch it again."
        )
    try:
        check_unpacked_size(path)
        with np.load(path, allow_pickle=False) as arrays:
            wanted = [f"{key}_{part}" for key in KEY_OF_SPLIT.values() for part in ("images", "labels")]
            missing = [key for key in wanted if key not in arrays]
            if missing:
                raise LincBenchError(
                    f"{path} has no {', '.join(missing)}. MedMNIST's layout is {', '.join(wanted)}; "
                    f"this file has {', '.join(arrays) or 'nothing'}."
                )
            splits = {}
            for split, key in KEY_OF_SPLIT.items():
                images = _images(path, f"{key}_images", arrays[f"{key}_images"])
                splits[split] = images, _labels(path, f"{key}_labels", arrays[f"{key}_labels"], len(images))
            return splits
    except UNREADABLE as error:
        raise LincBenchError(f"{path} cannot be read as arrays ({error}). Fetch or write it again.") from error


def _images(path: Path, key: str, array: np.ndarray) -> np.ndarray:
    right_shape = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if array.dtype != np.uint8 or not right_shape or 0 in array.shape[1:3]:
        raise LincBenchError(
            f"{key} in {path} is {array.dtype} of shape {array.shape}; expected uint8 of shape "
            "(n, height, width) or (n, height, width, 3)."
        )
    return array


def _labels(path: Path, key: str, array: np.ndarray, n: int) -> np.ndarray:
    if array.ndim == 2 and array.shape[1] > 1:
        raise LincBenchError(f"{key} in {path} has {array.shape[1]} columns; one label per image is needed.")
    if array.shape not in ((n,), (n, 1)):
        raise LincBenchError(f"{key} in {path} has shape {array.shape} for {n} images; expected ({n},) or ({n}, 1).")
    if not np.issubdtype(array.dtype, np.integer):
        raise LincBenchError(f"{key} in {path} is {array.dtype}; labels are whole numbers from 0.")
    labels = array.reshape(n).astype(np.int64)
    if (labels < 0).any():
        raise LincBenchError(f"{key} in {path} has the negative label {labels.min()}; classes are numbered from 0.")
    return labels

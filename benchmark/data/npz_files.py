"""Arrays of images and labels in MedMNIST's layout: one .npz file with all splits."""

import zipfile
from pathlib import Path

import numpy as np

from benchmark.disk import UNREADABLE, check_unpacked_size, open_arrays
from benchmark.errors import LincBenchError
from benchmark.paths import regular_file

KEY_OF_SPLIT = {"train": "train", "validation": "val", "test": "test"}  # in an .npz


def read_npz(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Images and labels of each split; other keys are ignored, and nothing is ever unpickled."""
    if not zipfile.is_zipfile(regular_file(path)):
        raise LincBenchError(
            f"{path} is not a whole .npz file: truncated in a download, or of another format. Fetch it again."
        )
    wanted = [f"{key}_{part}" for key in KEY_OF_SPLIT.values() for part in ("images", "labels")]
    try:
        check_unpacked_size(path)
        with open_arrays(path) as arrays:
            missing = [key for key in wanted if key not in arrays]
            if missing:
                raise LincBenchError(
                    f"{path} has no {', '.join(missing)}. MedMNIST's layout is {', '.join(wanted)}; "
                    f"this file has {', '.join(arrays) or 'nothing'}."
                )
            return {
                split: _checked_arrays(path, key, arrays[f"{key}_images"], arrays[f"{key}_labels"])
                for split, key in KEY_OF_SPLIT.items()
            }
    except UNREADABLE as error:
        raise LincBenchError(f"{path} cannot be read as arrays ({error}). Fetch or write it again.") from error


def _checked_arrays(path: Path, key: str, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    has_right_shape = images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)
    if images.dtype != np.uint8 or not has_right_shape or 0 in images.shape[1:3]:
        raise LincBenchError(
            f"{key}_images in {path} is {images.dtype} of shape {images.shape}; expected uint8 of shape "
            "(n, height, width) or (n, height, width, 3)."
        )
    n, about = len(images), f"{key}_labels in {path}"
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise LincBenchError(f"{about} has {labels.shape[1]} columns; one label per image is needed.")
    if labels.shape not in ((n,), (n, 1)):
        raise LincBenchError(f"{about} has shape {labels.shape} for {n} images; expected ({n},) or ({n}, 1).")
    if not np.issubdtype(labels.dtype, np.integer):
        raise LincBenchError(f"{about} is {labels.dtype}; labels are whole numbers from 0.")
    if (labels < 0).any():
        raise LincBenchError(f"{about} has the negative label {labels.min()}; classes are numbered from 0.")
    if labels.max(initial=0) > np.iinfo(np.int64).max:
        raise LincBenchError(f"{about} has the label {labels.max()}; classes are numbered from 0 without gaps.")
    return images, labels.reshape(n).astype(np.int64)

"""Arrays that a caller hands over instead of files: what is wrong with them is said in a sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest

SUM_MAY_DIFFER = 1e-2  # from one: probabilities in half precision do
Texts = Sequence[object] | np.ndarray


@dataclass(frozen=True)
class GivenArrays:
    """Labels, and what is known of the samples."""

    labels: np.ndarray
    num_classes: int
    probabilities: np.ndarray | None
    embeddings: np.ndarray | None
    images: np.ndarray | None

    @property
    def given(self) -> list[str]:
        return [name for name in ("probabilities", "embeddings", "images") if getattr(self, name) is not None]

    @property
    def identity(self) -> str:
        """Changes with any number."""
        return f"sha256:{bytes_digest(_bytes(self.labels, self.probabilities, self.embeddings, self.images))}"

    @property
    def pixels(self) -> str:
        return f"sha256:{bytes_digest(_bytes(self.images))}"


def _bytes(*arrays: np.ndarray | None) -> Iterator[bytes | memoryview]:
    for array in arrays:
        yield repr(None if array is None else (array.shape, str(array.dtype))).encode()
        if array is not None and array.size:
            yield np.ascontiguousarray(array).data


def checked_arrays(
    labels: ArrayLike,
    probabilities: ArrayLike | None,
    embeddings: ArrayLike | None,
    images: ArrayLike | None,
    class_names: Texts | None,
) -> GivenArrays:
    if probabilities is None and embeddings is None and images is None:
        raise LincBenchError("There is nothing to audit the labels by. Give probabilities, embeddings or images.")
    label_array = _numbers("labels", labels, ndim=1)
    count, is_whole = len(label_array), np.isfinite(label_array) & (label_array == np.floor(label_array))
    if not count:
        raise LincBenchError("There are no labels.")
    if not is_whole.all():
        raise LincBenchError(f"labels has {label_array[~is_whole][0]}; labels are whole numbers from 0.")
    probabilities_NK = None if probabilities is None else _checked_probabilities(probabilities, count)
    num_classes = _number_of_classes(label_array, probabilities_NK, class_names)
    embeddings_ND = None
    if embeddings is not None:
        embeddings_ND = _finite("embeddings", embeddings, count, np.float32)
        if embeddings_ND.shape[1] < 2:
            raise LincBenchError(f"embeddings has {embeddings_ND.shape[1]} features per sample; at least 2 are needed.")
    pictures = None if images is None else _checked_images(images, count)
    return GivenArrays(label_array.astype(np.int64), num_classes, probabilities_NK, embeddings_ND, pictures)


def _number_of_classes(labels_N: np.ndarray, probabilities_NK: np.ndarray | None, names: Texts | None) -> int:
    columns = None if probabilities_NK is None else probabilities_NK.shape[1]
    if names is not None and len({str(name) for name in names}) < len(names):
        raise LincBenchError("class_names has a name more than once.")
    if names is not None and columns is not None and len(names) != columns:
        raise LincBenchError(f"There are {len(names)} class_names for {columns} columns of probabilities.")
    low, high = int(labels_N.min()), int(labels_N.max())
    known = len(names) if names is not None else columns
    if low < 0 or high >= (known or len(labels_N)):
        expected = f"0 to {known - 1}" if known else "numbers from 0 without gaps"
        raise LincBenchError(f"labels run from {low} to {high}; expected {expected}.")
    if low == high:
        raise LincBenchError(f"labels has only one class, {low}; an audit needs at least two.")
    return known or high + 1


def _numbers(what: str, values: ArrayLike, ndim: int) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise LincBenchError(f"{what} cannot be read as an array ({error}).") from error
    if array.dtype.kind not in "biuf" or array.ndim != ndim:
        expected = "one whole number per sample" if ndim == 1 else "a row of numbers per sample"
        raise LincBenchError(f"{what} is {array.dtype} of shape {array.shape}; expected {expected}.")
    return array


def _finite(what: str, values: ArrayLike, count: int, dtype: type) -> np.ndarray:
    array: np.ndarray = _numbers(what, values, ndim=2).astype(dtype)
    if len(array) != count:
        raise LincBenchError(f"{what} has {len(array)} rows for {count} labels.")
    if not (is_finite := np.isfinite(array).all(axis=1)).all():
        raise LincBenchError(f"{what} has NaN or infinity in row {int(is_finite.argmin())}.")
    return array


def _checked_probabilities(values: ArrayLike, count: int) -> np.ndarray:
    probabilities_NK = _finite("probabilities", values, count, np.float64)
    if (is_negative := (probabilities_NK < 0).any(axis=1)).any():
        raise LincBenchError(f"probabilities has a negative number in row {int(is_negative.argmax())}.")
    sum_N = probabilities_NK.sum(axis=1)
    if (is_off := np.abs(sum_N - 1) > SUM_MAY_DIFFER).any():
        row = int(is_off.argmax())
        raise LincBenchError(f"probabilities sum to {sum_N[row]:.4g} in row {row}, not to one.")
    return probabilities_NK


def _checked_images(values: ArrayLike, count: int) -> np.ndarray:
    expected = "8-bit arrays (uint8) of shape (n, height, width) or (n, height, width, 3)"
    try:
        images = np.asarray(values)
    except ValueError as error:
        raise LincBenchError(f"images have different sizes; expected {expected}.") from error
    has_right_shape = images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)
    if images.dtype != np.uint8 or not has_right_shape or 0 in images.shape[1:]:
        raise LincBenchError(f"images is {images.dtype} of shape {images.shape}; expected {expected}.")
    if len(images) != count:
        raise LincBenchError(f"images has {len(images)} pictures for {count} labels.")
    return images

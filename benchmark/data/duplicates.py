"""Images that a data set has twice, exactly or nearly, within and across its splits.

Two images are near duplicates if their pixels correlate above a threshold. Candidates come from a neighbour index over
the leading principal components, in which no two images are farther apart than they are; so none is missed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmark.data.datasets import Dataset
from benchmark.identity import bytes_digest

CORRELATION = 0.995
SIDE = 32  # larger images are reduced to this many pixels a side
COMPONENTS = 12  # of the index
IMAGES_AT_ONCE = 4096


@dataclass(frozen=True)
class Duplicates:
    """Indices count through the splits one after another."""

    pairs: np.ndarray  # the lower index first
    correlations: np.ndarray
    is_exact: np.ndarray
    splits: np.ndarray  # 0 training, 1 validation, 2 test
    labels: np.ndarray

    @cached_property
    def groups(self) -> np.ndarray:
        """A number per image, the same for duplicates, also by way of others: what folds keep together."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size, (first, second) = len(self.labels), self.pairs.T
        links = coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
        return connected_components(links, directed=False)[1]

    @property
    def contradicts(self) -> np.ndarray:
        """Pairs with two labels, of which one must be wrong."""
        return self.labels[self.pairs[:, 0]] != self.labels[self.pairs[:, 1]]

    @property
    def test_has_twin(self) -> np.ndarray:
        """For each test image: is there a duplicate of it in training or validation?"""
        of_pair = self.splits[self.pairs]
        across = self.pairs[(of_pair[:, 0] < 2) & (of_pair[:, 1] == 2), 1]
        return np.isin(np.flatnonzero(self.splits == 2), across)


def find_duplicates(dataset: Dataset, correlation: float = CORRELATION) -> Duplicates:
    sizes = [len(split.labels) for split in dataset.splits]
    pixels_ND, digests = _pixels(dataset)
    pairs, correlations = correlated_pairs(pixels_ND, correlation)
    return Duplicates(
        pairs,
        correlations,
        np.array([digests[first] == digests[second] for first, second in pairs], dtype=bool),
        np.repeat(np.arange(3), sizes),
        np.concatenate([split.labels for split in dataset.splits]),
    )


def correlated_pairs(vectors_ND: np.ndarray, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of rows that correlates above a threshold, in order, and how much; constant rows are equal."""
    from scipy.spatial import KDTree
    from sklearn.decomposition import PCA

    unit_ND = vectors_ND.astype(np.float32)
    unit_ND -= unit_ND.mean(axis=1, keepdims=True)
    unit_ND /= np.maximum(np.linalg.norm(unit_ND, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    some_ND = unit_ND[:: max(1, len(unit_ND) // 5000)]
    pca = PCA(min(COMPONENTS, *some_ND.shape), svd_solver="randomized", random_state=0).fit(some_ND)
    reach = np.sqrt(2 * (1 - correlation)) + 1e-3  # |a − b|² = 2 (1 − correlation) for unit vectors; and rounding
    pairs = KDTree(pca.transform(unit_ND)).query_pairs(reach, output_type="ndarray").astype(np.int64)
    found_M = np.empty(len(pairs))
    for start in range(0, len(pairs), IMAGES_AT_ONCE):
        first, second = pairs[start : start + IMAGES_AT_ONCE].T
        difference = np.square(unit_ND[first] - unit_ND[second]).sum(axis=1, dtype=np.float64)
        found_M[start : start + IMAGES_AT_ONCE] = 1 - difference / 2
    is_close = found_M > correlation
    order = np.lexsort(pairs[is_close].T[::-1])
    return pairs[is_close][order], found_M[is_close][order]


def _pixels(dataset: Dataset) -> tuple[np.ndarray, list[str]]:
    """Of each image, small enough to be compared: samples × values; and a digest of it as it is."""
    rows, digests = [], []
    size = sum(len(split.labels) for split in dataset.splits)
    for start in range(0, size, IMAGES_AT_ONCE):
        for image in dataset.images(start, min(start + IMAGES_AT_ONCE, size)):
            digests.append(bytes_digest([repr(image.shape).encode(), np.ascontiguousarray(image).data]))
            rows.append(image)
        rows[start:] = _same_size(rows[start:])
    if len({row.shape for row in rows}) > 1:  # some chunks are of small images and some of large ones
        rows = [_reduced(row) for row in rows]
    return np.stack(rows).reshape(size, -1), digests


def _same_size(images: list[np.ndarray]) -> list[np.ndarray]:
    is_small = max(images[0].shape[:2]) <= SIDE and len({image.shape for image in images}) == 1
    return images if is_small else [_reduced(image) for image in images]


def _reduced(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.fromarray(image).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX))

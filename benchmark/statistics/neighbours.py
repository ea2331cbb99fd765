"""Nearest neighbours by cosine similarity, on an index that scales.

faiss, since it searches in single precision at the speed of a matrix product, in bounded memory; scikit-learn converts
to double precision, and has no approximate index. The search is exact up to 20,000 rows. Beyond them rows are sorted
into cells by k-means, and only the nearest cells are searched: 100,000 × 384 takes seconds instead of minutes, and
finds more than 99 of 100 neighbours (tests/speed/test_scoring.py). One thread, since bytes depend on their number.
"""

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

EXACT_ROWS = 20_000
CELLS_PER_ROOT, PROBED = 2, 16  # √rows times so many cells, of which so many are searched for each query
COMPARED = 8  # features; rows that are equal in all of them keep their order
FITTED_PER_CELL, ROUNDS = 64, 10  # rows that k-means reads, and how often


def unit_rows(features_ND: np.ndarray) -> np.ndarray:
    """Rows of length one, in single precision; a row of zeros stays zero."""
    features_ND = np.ascontiguousarray(features_ND, dtype=np.float32)
    return features_ND / np.maximum(np.linalg.norm(features_ND, axis=1, keepdims=True), 1e-12)


def order_by_features(features_ND: np.ndarray) -> np.ndarray:
    """An order that does not depend on that of the samples in a file, for draws among them."""
    return np.lexsort(features_ND[:, :COMPARED].T)


class Index:
    """Of rows of length one, which are numbered."""

    def __init__(self, unit_ND: np.ndarray) -> None:
        import faiss

        rows, dimensions = unit_ND.shape
        self._index: Any = faiss.IndexFlatIP(dimensions)
        with threadpool_limits(limits=1):
            if rows > EXACT_ROWS:
                cells = CELLS_PER_ROOT * int(np.sqrt(rows))
                self._index = faiss.IndexIVFFlat(self._index, dimensions, cells, faiss.METRIC_INNER_PRODUCT)
                self._index.cp.max_points_per_centroid, self._index.cp.niter = FITTED_PER_CELL, ROUNDS
                self._index.train(unit_ND)
                self._index.nprobe = PROBED
            self._index.add(unit_ND)

    def search(self, unit_MD: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Similarities of the k nearest and their numbers, M × k."""
        with threadpool_limits(limits=1):
            similarity_MK, number_MK = self._index.search(unit_MD, k)
            if (is_short := (number_MK < 0).any(axis=1)).any():  # the cells nearby hold fewer: look into all of them
                self._index.nprobe = self._index.nlist
                similarity_MK[is_short], number_MK[is_short] = self._index.search(unit_MD[is_short], k)
                self._index.nprobe = PROBED
        return similarity_MK, number_MK


def nearest_others(features_ND: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the k rows most similar to each row, without itself: rows × k."""
    unit_ND = unit_rows(features_ND)
    found_NK = Index(unit_ND).search(unit_ND, k + 1)[1]
    is_own_NK = found_NK == np.arange(len(unit_ND))[:, None]
    is_own_NK[~is_own_NK.any(axis=1), -1] = True  # as many copies are as near: the last one goes instead
    return found_NK[~is_own_NK].reshape(-1, k)

"""Pairs of images that the pretrained network takes for the same, though their pixels need not correlate.

Two images look alike if each is the other's nearest neighbour and nearer than half the distance to the next: a ratio
test, as for matching key points, that needs no threshold of its own for each network. Distances are between the frozen
features, averaged over positions, less their mean over the data set, and of length one. That is a hint and no proof, so
folds and accuracies do not use it.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmark.data.duplicates import Duplicates
from benchmark.disk import UNREADABLE, MappedRows, atomic_file, open_arrays
from benchmark.wording import dataset_title, network_title

RATIO = 0.5
AT_ONCE = 4096  # images that are read


def keep_look_alikes(file: Path, found: Duplicates, splits: Iterable[MappedRows]) -> np.ndarray:
    """Pairs of images, numbered through the splits; reads them, or finds and keeps them."""
    if (pairs := read_look_alikes(file)) is None:
        pairs = find_look_alikes(embeddings(splits), found.copy_of)
        with atomic_file(file) as opened:
            np.savez(opened, pairs=pairs)
    return pairs


def read_look_alikes(file: Path) -> np.ndarray | None:
    """None if they are not known."""
    try:
        with open_arrays(file) as arrays:
            return arrays["pairs"]
    except UNREADABLE:
        return None


def look_alikes_sentence(pairs: np.ndarray, dataset: str, network: str) -> str:
    found = f"{len(pairs):,} pairs of images look alike to {network_title(network)}, with or without equal pixels"
    return f"{dataset_title(dataset)}: {found}; duplicates.csv says how many are no duplicates"


def embeddings(splits: Iterable[MappedRows]) -> np.ndarray:
    """Cached features averaged over positions, which are the last axes of maps and the first one of tokens."""
    parts = []
    for features in splits:
        for start in range(0, len(features), AT_ONCE):
            rows = np.asarray(features[np.arange(start, min(start + AT_ONCE, len(features)))], dtype=np.float32)
            parts.append(rows.mean(axis=(2, 3)) if rows.ndim == 4 else rows.mean(axis=1) if rows.ndim == 3 else rows)
    return np.concatenate(parts)


def find_look_alikes(embeddings_ND: np.ndarray, copy_of: np.ndarray) -> np.ndarray:
    """One image of each set of copies takes part: copies are nearest to each other, and known."""
    from sklearn.neighbors import NearestNeighbors

    first_ones = np.unique(copy_of)
    if len(first_ones) < 4:
        return np.empty((0, 2), dtype=np.int64)
    unit_ND = embeddings_ND[first_ones] - embeddings_ND[first_ones].mean(axis=0)
    unit_ND /= np.maximum(np.linalg.norm(unit_ND, axis=1, keepdims=True), 1e-12)
    index = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(unit_ND)  # exact; each image itself is left out
    distances_N2, neighbours_N2 = index.kneighbors()
    nearest, is_far_ahead = neighbours_N2[:, 0], distances_N2[:, 0] < RATIO * distances_N2[:, 1]
    own = np.arange(len(nearest))
    is_pair = (nearest[nearest] == own) & is_far_ahead & is_far_ahead[nearest] & (own < nearest)
    return np.stack([first_ones[own[is_pair]], first_ones[nearest[is_pair]]], axis=1)

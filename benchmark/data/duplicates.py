"""Images that a data set has twice, exactly or nearly, within and across its splits.

Copies have equal pixels. Near duplicates have pixels that correlate above a threshold; candidates come from a neighbour
index over the leading principal components, in which no two images are farther apart than they are, so none is missed.
Only one image of each set of copies is compared: thousands of equal images are not millions of pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import numpy as np

from benchmark.data.datasets import SPLITS, Dataset, DatasetInfo
from benchmark.data.image_files import FileImages
from benchmark.data.npz_files import KEY_OF_SPLIT
from benchmark.disk import UNREADABLE, ResultsFolder, atomic_file, is_transient, open_arrays, slug
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest, digest_of
from benchmark.wording import dataset_title

VERSION = 1  # raise it when other duplicates may be found
CORRELATION = 0.995
SIDE = 32  # larger images are reduced to this many pixels a side
COMPONENTS = 12  # of the index
FITTED = 5000  # images that its components are computed from
IMAGES_AT_ONCE, DECODED_AT_ONCE = 4096, 32  # compared; and read, which may be large
TRAIN, VALIDATION, TEST = range(3)


@dataclass(frozen=True)
class Duplicates:
    """Images are numbered through the splits one after another. Says nothing of labels, which may be given later."""

    sizes: tuple[int, int, int]
    copy_of: np.ndarray  # of each image the first one with equal pixels, often itself
    near: np.ndarray  # pairs of such first images, the lower number first
    correlations: np.ndarray

    @cached_property
    def splits(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def groups(self) -> np.ndarray:
        """A number per image, the same for duplicates, also by way of others: what folds keep together."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size = len(self.copy_of)
        first, second = np.concatenate([self.near, np.stack([np.arange(size), self.copy_of], axis=1)]).T
        links = coo_array((np.ones(len(first)), (first, second)), shape=(size, size))
        return connected_components(links, directed=False)[1]

    @property
    def exact_groups(self) -> int:
        return int((np.bincount(self.copy_of) > 1).sum())

    @property
    def exact_pairs(self) -> int:
        return _pairs_within(np.bincount(self.copy_of))

    @property
    def near_pairs(self) -> int:
        return int(np.bincount(self.copy_of)[self.near].prod(axis=1).sum())

    def contradictions(self, labels: np.ndarray) -> int:
        """Pairs with two labels, of which one must be wrong."""
        from scipy.sparse import coo_array

        counts = coo_array((np.ones(len(labels), dtype=np.int64), (self.copy_of, labels))).tocsr()
        first, second = self.near.T
        alike = _pairs_within(counts.data) + int((counts[first] * counts[second]).sum())
        return self.exact_pairs + self.near_pairs - alike

    def contradicting_pairs(self, labels: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """With their correlation; copies first, then the most similar."""
        by_copy = np.argsort(self.copy_of, kind="stable")
        first_ones, starts = np.unique(self.copy_of[by_copy], return_index=True)
        images = dict(zip(first_ones.tolist(), np.split(by_copy, starts[1:]), strict=True))
        copied = ((first, first, 1.0) for first, equal in images.items() if len(equal) > 1)
        order = np.argsort(-self.correlations, kind="stable")
        near = zip(*self.near[order].T.tolist(), self.correlations[order].tolist(), strict=True)
        for first, second, correlation in chain(copied, near):
            for one in images[first]:
                others = images[second][labels[images[second]] != labels[one]]
                yield from ((int(one), int(other), correlation) for other in others if first != second or one < other)

    def test_twins(self, *splits: int) -> np.ndarray:
        """For each test image: is there a duplicate of it in one of these splits?"""
        return self.have_twins_in(np.isin(self.splits, splits))[self.splits == TEST]

    def have_twins_in(self, is_in: np.ndarray) -> np.ndarray:
        """For each image: is it one of these images, or a duplicate of one?"""
        has_copy = np.zeros(len(self.copy_of), dtype=bool)
        has_copy[self.copy_of[is_in]] = True
        has_twin, (first, second) = has_copy.copy(), self.near.T
        has_twin[first[has_copy[second]]] = True
        has_twin[second[has_copy[first]]] = True
        return has_twin[self.copy_of]


def _pairs_within(counts: np.ndarray) -> int:
    return int((counts * (counts - 1) // 2).sum())


def duplicates_sentence(found: Duplicates, dataset: Dataset) -> str | None:
    """What a user should know of them; None if there are none.

    The list of an audit has no test split, so this says nothing of it: the audit does, with ids and splits of its own.
    """
    labels = np.concatenate([split.labels for split in dataset.splits])
    pairs, twins = found.exact_pairs + found.near_pairs, found.test_twins(TRAIN, VALIDATION)
    if not pairs or not len(twins):
        return None
    parts = [f"{dataset_title(dataset.info.name)}: {pairs:,} pairs of duplicates, {found.exact_pairs:,} exact"]
    for one, other, _ in islice(found.contradicting_pairs(labels), 1):
        wrong = f"{found.contradictions(labels):,} with two labels, one of which is wrong"
        parts[0] += f", {wrong} (such as {_name(dataset, one)} and {_name(dataset, other)})"
    if twins.any():
        example = _name(dataset, found.sizes[TRAIN] + found.sizes[VALIDATION] + int(twins.argmax()))
        have = f"{twins.sum():,} of {len(twins):,} test images have a duplicate in training or validation"
        parts.append(f"{have} (such as {example})")
    return "; ".join(parts)


def _name(dataset: Dataset, number: int) -> str:
    for key, split in zip(SPLITS, dataset.splits, strict=True):
        if number < len(split.labels):
            images = split.images
            return str(images.paths[number]) if isinstance(images, FileImages) else f"{KEY_OF_SPLIT[key]}/{number}"
        number -= len(split.labels)
    raise IndexError(number)


def duplicates_file(results: ResultsFolder, info: DatasetInfo) -> Path:
    """Other labels of the same images have the same duplicates, where that is known."""
    definition = {"images": info.images or info.identity, "version": VERSION, "correlation": CORRELATION}
    return results.duplicates(slug(f"{info.name}-{digest_of(definition)}"))


def read_duplicates(file: Path, sizes: tuple[int, int, int]) -> Duplicates | None:
    """None if the file is absent or damaged; each of its arrays has a checksum."""
    try:
        with open_arrays(file) as arrays:
            found = Duplicates(sizes, arrays["copy_of"], arrays["near"], arrays["correlations"])
        return found if len(found.copy_of) == sum(sizes) else None
    except UNREADABLE as error:
        if is_transient(error):
            raise
        return None


def kept_duplicates(file: Path, dataset: Dataset) -> Duplicates:
    """Reads them, or finds and keeps them."""
    found = read_duplicates(file, dataset.info.sizes)
    if found is None:
        found = find_duplicates(dataset)
        with atomic_file(file) as opened:
            np.savez(opened, copy_of=found.copy_of, near=found.near, correlations=found.correlations)
    return found


def training_groups(results: ResultsFolder, info: DatasetInfo) -> np.ndarray:
    """A number per training sample, the same for duplicates: what folds keep together."""
    return known_duplicates(results, info).groups[: info.sizes[TRAIN]]


def known_duplicates(results: ResultsFolder, info: DatasetInfo) -> Duplicates:
    """Those that a run has kept."""
    file = duplicates_file(results, info)
    if (found := read_duplicates(file, info.sizes)) is None:  # folds would be others
        raise LincBenchError(f"{file} is missing or damaged. Run the same command again, which makes it again.")
    return found


def no_duplicates(samples: int) -> Duplicates:
    """Where there are no pixels to compare."""
    return Duplicates((samples, 0, 0), np.arange(samples), np.empty((0, 2), dtype=np.int64), np.empty(0))


def find_duplicates(dataset: Dataset, correlation: float = CORRELATION) -> Duplicates:
    pixels_NPC, digests = _pixels(dataset)
    first_of: dict[str, int] = {}
    copy_of = np.array([first_of.setdefault(digest, number) for number, digest in enumerate(digests)], dtype=np.int64)
    distinct = np.fromiter(first_of.values(), dtype=np.int64)
    near, correlations = correlated_pairs(pixels_NPC[distinct], correlation)
    return Duplicates(dataset.info.sizes, copy_of, distinct[near], correlations)


def correlated_pairs(pixels_NPC: np.ndarray, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of images that correlates above a threshold, in order, and how much; flat images are in none."""
    from scipy.spatial import KDTree
    from sklearn.decomposition import PCA

    varied = np.flatnonzero((pixels_NPC != pixels_NPC[:, :1]).any(axis=(1, 2)))
    if len(varied) < 2:
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    some_ND = _standardised(pixels_NPC[varied[:: max(1, len(varied) // FITTED)]])
    pca = PCA(min(COMPONENTS, *some_ND.shape), svd_solver="randomized", random_state=0).fit(some_ND)
    chunks = np.array_split(varied, -(-len(varied) // IMAGES_AT_ONCE))
    components = np.concatenate([pca.transform(_standardised(pixels_NPC[chunk])) for chunk in chunks])
    reach = np.sqrt(2 * (1 - correlation)) + 1e-3  # |a − b|² = 2 (1 − correlation) for unit vectors; and rounding
    pairs = varied[KDTree(components).query_pairs(reach, output_type="ndarray").astype(np.int64)]
    found_M = np.empty(len(pairs))
    for start in range(0, len(pairs), IMAGES_AT_ONCE):
        first, second = (_standardised(pixels_NPC[rows]) for rows in pairs[start : start + IMAGES_AT_ONCE].T)
        found_M[start : start + IMAGES_AT_ONCE] = 1 - np.square(first - second).sum(axis=1, dtype=np.float64) / 2
    is_close = found_M > correlation
    order = np.lexsort(pairs[is_close].T[::-1])
    return pairs[is_close][order], found_M[is_close][order]


def _standardised(pixels_NPC: np.ndarray) -> np.ndarray:
    """Each channel with mean 0, since colour alone makes no duplicate, and the whole with length 1."""
    unit_NPC = pixels_NPC.astype(np.float32)
    unit_NPC -= unit_NPC.mean(axis=1, keepdims=True)
    unit_ND = unit_NPC.reshape(len(unit_NPC), -1)
    return unit_ND / np.linalg.norm(unit_ND, axis=1, keepdims=True)


def _pixels(dataset: Dataset) -> tuple[np.ndarray, list[str]]:
    """Of each image, small enough to be compared: samples × pixels × channels; and a digest of it as it is."""
    rows, digests = [], []
    size = sum(dataset.info.sizes)
    for start in range(0, size, DECODED_AT_ONCE):
        for image in dataset.images(start, min(start + DECODED_AT_ONCE, size)):
            digests.append(bytes_digest([repr(image.shape).encode(), np.ascontiguousarray(image).data]))
            rows.append(image if max(image.shape[:2]) <= SIDE else _reduced(image))
    if len({row.shape for row in rows}) > 1:
        rows = [_reduced(row) for row in rows]
    height, width, *channels = rows[0].shape
    return np.stack(rows).reshape(size, height * width, *channels or [1]), digests


def _reduced(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.fromarray(image).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX))

"""Copies of one image in several splits or with several labels: a data set may have them, and its user should know."""

from collections import defaultdict
from typing import NamedTuple

from benchmark.data.datasets import SPLITS, Dataset
from benchmark.data.image_files import FileImages
from benchmark.data.npz_files import KEY_OF_SPLIT
from benchmark.identity import bytes_digest


class _Copy(NamedTuple):
    name: str
    split: str
    label: int


def copies_sentence(dataset: Dataset) -> str | None:
    """How many images have such copies, equal in the bytes of their files or in pixels, with an example of each.

    An audit's list has no test split and is left out: what it says of its samples has their ids.
    """
    if not len(dataset.test.labels):
        return None
    copies: dict[str, list[_Copy]] = defaultdict(list)
    for split, (images, labels) in zip(SPLITS, dataset.splits, strict=True):
        for number, label in enumerate(labels.tolist()):
            if isinstance(images, FileImages):
                name, digest = str(images.paths[number]), images.digests[number]
            else:
                name, digest = (
                    f"{KEY_OF_SPLIT[split]}/{number}",
                    bytes_digest([images[number : number + 1][0].tobytes()]),
                )
            copies[digest].append(_Copy(name, split, label))
    parts = []
    for field, what in (("split", "in more than one split"), ("label", "with more than one label")):
        groups = [group for group in copies.values() if len({getattr(copy, field) for copy in group}) > 1]
        if groups:
            first = groups[0][0]
            other = next(copy for copy in groups[0] if getattr(copy, field) != getattr(first, field))
            parts.append(f"{len(groups):,} {what} (such as {first.name} and {other.name})")
    if not parts:
        return None
    return (
        f"{dataset.info.name} has copies of the same image: {', '.join(parts)}. Accuracy on images that were trained "
        "on is too high, and of two labels one is wrong. Remove the copies, unless the data are meant to have them."
    )

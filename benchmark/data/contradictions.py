"""What duplicates say of labels and splits: labels that must be wrong, and test images that training has, too.

Of exact copies with several labels, all but the most frequent label are wrong at least. Near duplicates with several
labels are only suspicious. Patients, or what else a column names, are compared with splits in the same way.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmark.data.duplicates import Duplicates
from benchmark.errors import LincBenchError

MOST_TWINS = 20  # of one image: thousands of copies would name thousands each
TRAINED_ON, TESTED_ON = ("train", "validation"), "test"


class Twin(NamedTuple):
    """A duplicate with another label."""

    number: int
    is_copy: bool  # or nearly the same


@dataclass(frozen=True)
class DuplicateCounts:
    exact_pairs: int
    near_pairs: int
    contradicting_pairs: int
    provable_errors: int
    groups_across_splits: int
    test_images: int  # 0 if the data have no test split, or nothing but one
    leaked_test_images: int
    values_across_splits: int = 0  # of this column:
    fold_column: str = ""

    @property
    def sentences(self) -> list[str]:
        """What a user should know of them, if anything."""
        said = []
        if self.provable_errors:
            said.append(
                f"Labels that must be wrong, since exact copies have others: at least {self.provable_errors:,}. These "
                "images are first in the list."
            )
        if self.contradicting_pairs:
            pairs = (
                f"Pairs of duplicates: {self.exact_pairs + self.near_pairs:,}, of which {self.exact_pairs:,} are exact"
            )
            said.append(f"{pairs}; with different labels: {self.contradicting_pairs:,} (the column duplicate_of).")
        if self.test_images:
            share = f"{self.leaked_test_images:,} of {self.test_images:,} test images"
            share += f" ({self.leaked_test_images / self.test_images:.1%})"
            said.append(f"{share} have a duplicate in training or validation.")
        if count := self.values_across_splits:
            occur = f"value of {self.fold_column} occurs" if count == 1 else f"values of {self.fold_column} occur"
            said.append(f"{count:,} {occur} in more than one split.")
        return said


def count_duplicates(
    found: Duplicates, labels: np.ndarray, splits: Sequence[str], kept_together: Sequence[str] = (), column: str = ""
) -> DuplicateCounts:
    """`splits` has a name per image, or nothing; each is train, validation, test or empty."""
    split_of = np.array(splits or [""] * len(labels))
    is_test, is_trained_on = split_of == TESTED_ON, np.isin(split_of, TRAINED_ON)
    has_both = bool(is_test.any() and is_trained_on.any())
    return DuplicateCounts(
        found.exact_pairs,
        found.near_pairs,
        found.contradictions(labels),
        provable_errors(found.copy_of, labels),
        across_splits(found.groups.tolist(), splits),
        int(is_test.sum()) if has_both else 0,
        int((found.have_twins_in(is_trained_on) & is_test).sum()) if has_both else 0,
        across_splits(kept_together, splits),
        column,
    )


def provable_errors(copy_of: np.ndarray, labels: np.ndarray) -> int:
    """How many labels are wrong at least: of each group of copies, all but the largest class."""
    (groups, _), counts = np.unique(np.stack([copy_of, labels]), axis=1, return_counts=True)
    largest = np.zeros(len(labels), dtype=np.int64)
    np.maximum.at(largest, groups, counts)
    return len(labels) - int(largest.sum())


def contradicting_twins(found: Duplicates, labels: np.ndarray) -> dict[int, list[Twin]]:
    """Of each image with a duplicate that has another label: such duplicates, copies first, then the most similar."""
    by_copy = np.argsort(found.copy_of, kind="stable")
    first_ones, starts = np.unique(found.copy_of[by_copy], return_index=True)
    members = dict(zip(first_ones.tolist(), np.split(by_copy, starts[1:]), strict=True))
    twins: defaultdict[int, list[Twin]] = defaultdict(list)

    def add(these: np.ndarray, others: np.ndarray, is_copy: bool) -> None:
        for label in np.unique(labels[these]):
            named = [Twin(number, is_copy) for number in others[labels[others] != label][:MOST_TWINS].tolist()]
            for number in these[labels[these] == label].tolist() if named else ():
                twins[number].extend(named[: MOST_TWINS - len(twins[number])])

    for copies in members.values():
        if len(copies) > 1:
            add(copies, copies, True)
    for first, second in found.near[np.argsort(-found.correlations, kind="stable")].tolist():
        add(members[first], members[second], False)
        add(members[second], members[first], False)
    return dict(twins)


def contradictions_first(
    rank_N: np.ndarray, found: Duplicates, labels: np.ndarray, twins: dict[int, list[Twin]]
) -> np.ndarray:
    """The same ranks, but labels that copies contradict come first and suspicious near duplicates next.

    Of copies with several labels, all but the most frequent label move up, the rarest first (of labels as frequent, the
    one whose first image ranks last stays); those of one group stay together. Of near duplicates with several labels,
    the image that ranks before all others of the pair or set moves up: one of the labels is wrong, and with both at the
    top half of the list's head would be right.
    """
    images = pd.DataFrame({"group": found.copy_of, "label": labels, "rank": rank_N})
    ranks_of_label = images.groupby(["group", "label"])["rank"]
    images["count"], images["first"] = ranks_of_label.transform("size"), ranks_of_label.transform("min")
    stays = images.sort_values(["count", "first"]).groupby("group")["label"].transform("last").sort_index()
    is_wrong = images["label"] != stays
    images["tier"] = np.where(is_wrong, 0, 2)
    for number, of_image in twins.items():
        if not of_image[0].is_copy and rank_N[number] < min(rank_N[twin.number] for twin in of_image):
            images.loc[number, "tier"] = 1
    group_leads = images[is_wrong].groupby("group")["rank"].transform("min")
    images["lead"] = group_leads.reindex(images.index).fillna(images["rank"])
    images["count"] = images["count"].where(is_wrong, 0)
    ordered = images.sort_values(["tier", "lead", "count", "rank"]).index
    ranks_N = np.empty(len(labels), dtype=np.int64)
    ranks_N[ordered] = np.arange(1, len(labels) + 1)
    return ranks_N


def fold_groups(found: Duplicates, kept_together: Sequence[str], name: str) -> np.ndarray:
    """A number per image, the same for what folds keep together: duplicates, and equal values of a column, if any."""
    if not kept_together:
        return found.groups
    groups_N = joined_groups(found.groups, kept_together)
    if len(np.unique(groups_N)) < 2:
        raise LincBenchError(
            f"Duplicates and equal values join all images of {name}, so no fold can be held out. Fold by another "
            "column, or by none."
        )
    return groups_N


def joined_groups(groups_N: np.ndarray, values: Sequence[str]) -> np.ndarray:
    """A number per sample, the same for equal groups and for equal values, also by way of others.

    An empty value joins nothing.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    has_value = np.array([bool(value) for value in values])
    value_of = np.unique(np.array(values, dtype=object)[has_value].astype(str), return_inverse=True)[1].reshape(-1)
    groups_N = np.unique(groups_N, return_inverse=True)[1].reshape(-1)
    count = int(groups_N.max()) + 1
    size = count + int(value_of.max(initial=-1)) + 1
    links = coo_array((np.ones(len(value_of)), (groups_N[has_value], count + value_of)), shape=(size, size))
    return connected_components(links, directed=False)[1][groups_N]


def across_splits(values: Sequence[object], splits: Sequence[str]) -> int:
    """How many values occur in more than one split; empty values and splits do not count."""
    splits_of = defaultdict(set)
    for value, split in zip(values, splits, strict=False):
        if value != "" and split:
            splits_of[value].add(split)
    return sum(len(of_value) > 1 for of_value in splits_of.values())

"""The rows of a data set: how many images it has twice, and pairs of them whose labels cannot both be right."""

from functools import partial
from itertools import islice

import numpy as np

from benchmark.data.datasets import SPLITS
from benchmark.data.duplicates import CORRELATION, TRAIN, VALIDATION, Duplicates, duplicates_file, read_duplicates
from benchmark.data.look_alikes import read_look_alikes
from benchmark.disk import open_arrays
from benchmark.disk.tables import matches, merge_rows
from benchmark.identity import Json
from benchmark.runs import Sources, Unit

MOST_LISTED = 1000  # pairs of a data set, since the file is committed


def write_duplicates(unit: Unit, sources: Sources) -> None:
    """Replaces the rows of the unit's data set, if its duplicates are known."""
    info, results = unit.info, sources.results
    found = read_duplicates(duplicates_file(results, info), info.sizes)
    if found is None:
        return
    with open_arrays(results.answer_key(unit.run.noise_id)) as clean:
        labels = [clean["train"], clean["validation"]]
    with open_arrays(results.given_labels(unit.run.noise_id)) as given:
        labels.append(given["test"])
    key: dict[str, Json] = {"dataset": info.name, "data": info.identity[-12:]}
    is_same = partial(matches, tuple(key), [key])
    alike = read_look_alikes(results.look_alikes(unit.store_id)) if unit.store_id else None
    counts = _counts(found, np.concatenate(labels)) | _look_alikes(alike, found, np.concatenate(labels))
    merge_rows(results, "duplicates", [key | counts], is_same)
    merge_rows(results, "label_errors", [key | row for row in _label_errors(found, np.concatenate(labels))], is_same)


def _counts(found: Duplicates, labels: np.ndarray) -> dict[str, Json]:
    return {
        "images": len(labels),
        "exact_groups": found.exact_groups,
        "exact_pairs": found.exact_pairs,
        "near_pairs": found.near_pairs,
        "pairs_with_two_labels": found.contradictions(labels),
        "test_images": found.sizes[-1],
        "test_twins": int(found.test_twins(TRAIN, VALIDATION).sum()),
        "test_twins_in_training": int(found.test_twins(TRAIN).sum()),
        "measure": "correlation of pixels",
        "threshold": CORRELATION,
    }


def _look_alikes(alike: np.ndarray | None, found: Duplicates, labels: np.ndarray) -> dict[str, Json]:
    if alike is None:
        return {}
    is_near = np.isin(alike @ [len(labels), 1], found.near @ [len(labels), 1]) if len(alike) else np.empty(0, bool)
    return {
        "alike_pairs": len(alike),
        "alike_besides_near": int((~is_near).sum()),
        "alike_with_two_labels": int((labels[alike[:, 0]] != labels[alike[:, 1]]).sum()),
    }


def _label_errors(found: Duplicates, labels: np.ndarray) -> list[dict[str, Json]]:
    starts = np.cumsum((0, *found.sizes))

    def image(number: int, prefix: str = "") -> dict[str, Json]:
        split = int(found.splits[number])
        place = {"split": SPLITS[split], "index": number - int(starts[split]), "label": int(labels[number])}
        return {f"{prefix}{column}": value for column, value in place.items()}

    return [
        image(one) | image(other, "other_") | {"correlation": round(correlation, 4)}
        for one, other, correlation in islice(found.contradicting_pairs(labels), MOST_LISTED)
    ]

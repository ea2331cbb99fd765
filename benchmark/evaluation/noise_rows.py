"""The rows of wrong labels: how many there are, from which class to which, and how far they are the hard images."""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from benchmark.data.look_alikes import embeddings
from benchmark.disk import UNREADABLE, atomic_file, open_arrays
from benchmark.disk.tables import matches, merge_rows, read_table
from benchmark.evaluation.run_rows import JudgedRun
from benchmark.identity import Json
from benchmark.networks.feature_store import open_store
from benchmark.noise import AnswerKey
from benchmark.reference import NOISE
from benchmark.runs import Plan, Sources, Unit
from benchmark.runs.wrong_labels import CHANCE
from benchmark.statistics.held_out import held_out_probabilities

KEY = ("dataset", "data", "noise", "rate", "noise_seed")
HARDEST, VERSION = 0.1, 1  # of the samples; raise the version when hardness may change
Share = dict[str, float]


@dataclass
class NoiseRows:
    """Collected run by run, since a process may open only so many records."""

    plan: Plan
    rows_of: dict[str, tuple[Share, list[Json]]] = field(default_factory=dict)  # by noise id

    @cached_property
    def is_slow(self) -> bool:
        """Whether to find out which images are hard, which takes a while; under the usual noise it does not matter."""
        return any(unit.run.noise.title != NOISE for unit in self.plan.units)

    def add(self, unit: Unit, run: JudgedRun) -> None:
        if unit.run.noise_id not in self.rows_of:
            about = _about(unit, run) | _chances(unit, self.plan.sources)
            hardness = _hardness(unit, run.key, self.plan.sources, self.is_slow)
            rows = [about | row for row in _confusion(run)]
            self.rows_of[unit.run.noise_id] = _among_the_hardest(run.is_mislabelled, hardness), rows

    def write(self) -> None:
        """In the place of the rows of the same wrong labels, whose share among the hardest stays if it is not known."""
        results = self.plan.sources.results
        known = read_table(results, "wrong_labels").dropna(subset=["in_hardest_tenth"]).drop_duplicates(list(KEY))
        before = {tuple(row[list(KEY)]): row["in_hardest_tenth"] for _, row in known.iterrows()}
        rows: list[Json] = []
        for share, of_noise in self.rows_of.values():
            key = tuple(of_noise[0][column] for column in KEY)
            share = share or ({"in_hardest_tenth": before[key]} if key in before else {})
            rows += [row | share for row in of_noise]
        merge_rows(results, "wrong_labels", rows, partial(matches, KEY, rows))


def _about(unit: Unit, run: JudgedRun) -> Json:
    return {
        "dataset": unit.info.name,
        "data": unit.info.identity[-12:],
        "noise": unit.run.noise.title,
        "rate": unit.run.noise.rate,
        "noise_seed": unit.run.noise.seed,
        "samples": unit.info.sizes[0],
        "classes": unit.info.num_classes,
        "true_rate": float(run.is_mislabelled.mean()),
    }


def _confusion(run: JudgedRun) -> list[Json]:
    """Images of no class have the correct label -1."""
    pairs_NK = np.stack([run.key.labels_that_are_right, run.record.given_labels], axis=1)
    pairs, counts = np.unique(pairs_NK, axis=0, return_counts=True)
    return [
        {"correct": correct, "given": given, "count": count}
        for (correct, given), count in zip(pairs.tolist(), counts.tolist(), strict=True)
    ]


def _chances(unit: Unit, sources: Sources) -> dict[str, float]:
    """Of kinds that have a chance for each sample."""
    with open_arrays(sources.results.answer_key(unit.run.noise_id)) as answers:
        if CHANCE not in answers:
            return {}
        chance_N = answers[CHANCE].astype(np.float64)
    return {"chance_mean": float(chance_N.mean()), "chance_spread": float(chance_N.std())}


def _among_the_hardest(is_wrong_N: np.ndarray, hardness_N: np.ndarray | None) -> Share:
    """The share of the wrong labels that the hardest tenth of the samples have; a tenth if hardness does not matter."""
    if hardness_N is None or not is_wrong_N.any():
        return {}
    hardest = np.argsort(-hardness_N, kind="stable")[: round(HARDEST * len(hardness_N))]
    return {"in_hardest_tenth": float(is_wrong_N[hardest].sum() / is_wrong_N.sum())}


def _hardness(unit: Unit, key: AnswerKey, sources: Sources, is_slow: bool) -> np.ndarray | None:
    """One minus the held-out probability of the correct label, by simple classifiers of the cached features; kept.

    None if there are no such features, or if it is not known and may not take long.
    """
    if unit.store_id is None:
        return None
    labels, file = key.clean_labels, sources.results.hardness(f"{unit.store_id}-{VERSION}")
    with suppress(*UNREADABLE), open_arrays(file) as arrays:
        if np.array_equal(arrays["labels"], labels):
            return arrays["hardness"]
    if not is_slow or not sources.store(unit).exists():
        return None
    features_ND = embeddings(open_store(sources.store(unit), unit.info)[:1])
    probabilities_NK = held_out_probabilities(features_ND, labels, unit.info.num_classes)
    hardness_N = 1 - probabilities_NK[np.arange(len(labels)), labels]
    with atomic_file(file) as opened:
        np.savez(opened, hardness=hardness_N, labels=labels)
    return hardness_N

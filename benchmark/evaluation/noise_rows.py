"""The rows of wrong labels: how many there are, from which class to which, and how far they are the hard images."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from benchmark.data.datasets import DatasetInfo
from benchmark.disk import UNREADABLE, atomic_file, open_arrays
from benchmark.disk.tables import matches, merge_rows
from benchmark.evaluation.run_rows import JudgedRun
from benchmark.identity import Json
from benchmark.record import EMBEDDING
from benchmark.runs import Plan, Sources, Unit
from benchmark.runs.wrong_labels import CHANCE
from benchmark.statistics.held_out import held_out_probabilities

KEY = ("dataset", "data", "noise", "rate", "noise_seed")
HARDEST = 0.1  # of the samples


@dataclass
class NoiseRows:
    """Collected run by run, since a process may open only so many records."""

    plan: Plan
    rows_of: dict[str, list[Json]] = field(default_factory=dict)  # by noise id
    wrong_of: dict[str, tuple[DatasetInfo, np.ndarray]] = field(default_factory=dict)
    hardness_of: dict[DatasetInfo, np.ndarray] = field(default_factory=dict)

    @cached_property
    def has_several_kinds(self) -> bool:
        """Only then is it asked which kind errs on hard images, since that takes a while."""
        return len({unit.run.noise.title for unit in self.plan.units}) > 1

    def add(self, unit: Unit, run: JudgedRun) -> None:
        noise_id, sources = unit.run.noise_id, self.plan.sources
        if noise_id not in self.rows_of:
            about = _about(unit, run) | _chances(unit, sources)
            self.rows_of[noise_id] = [about | row for row in _confusion(run)]
            self.wrong_of[noise_id] = unit.info, run.is_mislabelled
        if self.has_several_kinds and unit.info not in self.hardness_of and EMBEDDING in run.record and unit.store_id:
            self.hardness_of[unit.info] = _hardness(run, unit.info, sources.results.hardness(unit.store_id))

    def write(self) -> None:
        """In the place of the rows of the same wrong labels."""
        rows: list[Json] = []
        for noise_id, of_noise in self.rows_of.items():
            info, is_wrong_N = self.wrong_of[noise_id]
            share = _among_the_hardest(is_wrong_N, self.hardness_of.get(info))
            rows += [row | share for row in of_noise]
        merge_rows(self.plan.sources.results, "wrong_labels", rows, partial(matches, KEY, rows))


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


def _among_the_hardest(is_wrong_N: np.ndarray, hardness_N: np.ndarray | None) -> dict[str, float]:
    """The share of the wrong labels that the hardest tenth of the samples have; a tenth if hardness does not matter."""
    if hardness_N is None or not is_wrong_N.any():
        return {}
    hardest = np.argsort(-hardness_N, kind="stable")[: round(HARDEST * len(hardness_N))]
    return {"in_hardest_tenth": float(is_wrong_N[hardest].sum() / is_wrong_N.sum())}


def _hardness(run: JudgedRun, info: DatasetInfo, file: Path) -> np.ndarray:
    """One minus the held-out probability of the correct label, by simple classifiers of the embedding; kept."""
    try:
        with open_arrays(file) as arrays:
            return arrays["hardness"]
    except UNREADABLE:
        labels = run.key.clean_labels
        probabilities_NK = held_out_probabilities(run.record[EMBEDDING], labels, info.num_classes)
        hardness_N = 1 - probabilities_NK[np.arange(len(labels)), labels]
        with atomic_file(file) as opened:
            np.savez(opened, hardness=hardness_N)
        return hardness_N

"""Ranks labels as they are given, the most suspicious first: what an audit rests on.

Everything is trained and scored by the same pipeline as a study, with no noise added, so that an audit that was
interrupted goes on where it was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.filesize import decimal
from scipy.stats import rankdata

from benchmark.audit.audited import Audited
from benchmark.data.datasets import AUDITED
from benchmark.disk.results_folder import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.execution.executors import make_executor
from benchmark.execution.progress import Progress, duration
from benchmark.networks import Backbone
from benchmark.record import EMBEDDING
from benchmark.record.run_record import open_record
from benchmark.runs.estimate import estimate
from benchmark.runs.pipeline import carry_out
from benchmark.runs.plan import Plan, Sources, plan_study
from benchmark.runs.scores import read_scores
from benchmark.runs.studies import Grid, LineUp, Study
from benchmark.statistics.error_count import ErrorCount, count_errors
from benchmark.statistics.held_out import held_out_probabilities
from benchmark.statistics.mixture import fit_mixture
from benchmark.training import TrainingSettings
from detectors import Detector
from detectors.data_iq import DataIQ
from detectors.el2n import EL2N
from detectors.linc import LiNC
from detectors.nearest_neighbours import Neighbours

DETECTORS: tuple[Detector, ...] = (LiNC(), EL2N(), DataIQ(), Neighbours())
HELD_OUT = "held-out"  # the classifiers that have not seen a sample, as one more detector
COMPONENTS = ("noisy", "ambiguous", "clean")
EPOCHS, BATCH = LiNC().recipe.min_epochs, 64


@dataclass(frozen=True)
class Means:
    """What labels are looked at with; scores are means over the training seeds."""

    seeds: tuple[int, ...] = (0,)
    backbone: Backbone = Backbone()
    weights: Path | None = None
    workers: int = 1


@dataclass(frozen=True)
class Ranked:
    samples: pd.DataFrame  # a row for each, the most suspicious first, as audit.csv has it
    errors: ErrorCount
    embedding: np.ndarray  # what the pretrained network says of each, in the order of the data
    probabilities: np.ndarray  # held out, likewise
    training: TrainingSettings


def rank_labels(
    data: Audited, results: ResultsFolder, means: Means, progress: Progress, say: Callable[[str], None]
) -> Ranked:
    results.prepare()
    samples = results.root / f"samples{AUDITED}"
    data.write_list(samples)
    study = _study(samples, len(data.ids), means)
    plan = plan_study(study, Sources(results, None, means.weights))
    if any(unit.info.identity != data.identity for unit in plan.units):
        raise LincBenchError(
            f"{samples} was changed by another command. Let that end, then run the same command again."
        )
    expected = estimate(plan, means.workers)
    say(
        f"{len(data.ids):,} images of {len(data.class_names)} classes; training takes about "
        f"{duration(expected.seconds)} and {decimal(expected.bytes_on_disk)} of disk."
    )
    with make_executor(means.workers) as executor:
        outcomes = carry_out(plan, executor, progress)
    for outcome in outcomes:
        if outcome.error is not None or outcome.failures:
            why = outcome.error or "; ".join(f"{detector}: {reason}" for detector, reason in outcome.failures.items())
            raise LincBenchError(f"The audit could not be done: {why} (details: {results.log(outcome.run_id)})")
    standard = next(unit for unit in plan.units if EMBEDDING in unit.signals)
    embedding = np.array(open_record(standard.folder)[EMBEDDING])
    with progress.counting("held-out classifiers") as report:
        probabilities_NK = _held_out(embedding, data, means.seeds, report)
    scores = {detector.name: _mean_scores(plan, detector) for detector in DETECTORS}
    scores[HELD_OUT] = 1 - probabilities_NK[np.arange(len(data.labels)), data.labels]
    errors = count_errors(probabilities_NK, data.labels)
    return Ranked(_table(data, scores, probabilities_NK), errors, embedding, probabilities_NK, study.grids[0].training)


def _study(samples: Path, count: int, means: Means) -> Study:
    grid = Grid(
        datasets=(str(samples),),
        rates=(0.0,),
        training_seeds=means.seeds,
        backbone=means.backbone,
        training=TrainingSettings(epochs=EPOCHS, batch_size=min(BATCH, count // 4)),
        recipes=(),
        line_ups=(LineUp("audit", DETECTORS),),
    )
    return Study("audit", "labels of one's own data", (grid,))


def _held_out(
    embedding: np.ndarray, data: Audited, seeds: tuple[int, ...], report: Callable[[int, int], None]
) -> np.ndarray:
    """The mean over seeds, each of which makes folds of its own."""
    found = np.zeros((len(data.labels), len(data.class_names)))
    for at, seed in enumerate(seeds):

        def of_all(done: int, total: int, before: int = at) -> None:
            report(before * total + done, len(seeds) * total)

        found += held_out_probabilities(embedding, data.labels, len(data.class_names), seed, of_all)
    return found / len(seeds)


def _mean_scores(plan: Plan, detector: Detector) -> np.ndarray:
    """Over the training seeds."""
    files = [unit.score_file(detector) for unit in plan.units if detector in unit.detectors]
    return np.mean([read_scores(file)[0] for file in files], axis=0)


def _table(data: Audited, scores: dict[str, np.ndarray], probabilities_NK: np.ndarray) -> pd.DataFrame:
    """Ranked by the mean of all ranks."""
    trust = 1 - scores[LiNC.name]
    combined = rankdata(np.mean([rankdata(-values) for values in scores.values()], axis=0), method="ordinal")
    names, suggested = np.array(data.class_names, dtype=object), probabilities_NK.argmax(axis=1)
    return pd.DataFrame(
        {
            "id": data.ids,
            "rank": combined,
            "given": names[data.labels],
            "suggested": names[suggested],
            "sureness": probabilities_NK.max(axis=1),
            "trust": trust,
            "component": _components(trust),
        }
        | ({"path": data.paths} if data.paths else {})
        | ({"group": data.groups} if data.groups else {})
        | {
            column: values
            for name, score in scores.items()
            for column, values in ((name, score), (rank_of(name), rankdata(-score, method="min")))
        }
    ).sort_values("rank", ignore_index=True)


def rank_of(detector: str) -> str:
    """The column of a detector's ranks."""
    return f"{detector} rank"


def _components(trust: np.ndarray) -> np.ndarray:
    mixture = fit_mixture(trust, len(COMPONENTS))
    return np.array(COMPONENTS, dtype=object)[mixture.assignment] if mixture else np.full(len(trust), "")

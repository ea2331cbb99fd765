"""Trains on the given labels and scores them, by the same pipeline as a study: an interrupted audit can be resumed."""

from collections.abc import Callable

import numpy as np
from rich.filesize import decimal

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.settings import DETECTORS, AuditSettings
from benchmark.data.duplicates import Duplicates, known_duplicates
from benchmark.disk import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.execution.executors import make_executor
from benchmark.execution.progress import Progress, duration
from benchmark.record import EMBEDDING, open_record
from benchmark.runs import Sources, plan_study
from benchmark.runs.estimate import estimate
from benchmark.runs.run_study import run_study
from benchmark.runs.scores import read_scores


def score_labels(
    data: AuditedData, results: ResultsFolder, settings: AuditSettings, progress: Progress, say: Callable[[str], None]
) -> tuple[dict[str, np.ndarray], np.ndarray, Duplicates]:
    """Scores by detector name, higher is more suspicious; the pretrained network's embedding; and duplicates."""
    results.prepare("--out DIR")
    samples = data.write_list(results.root)
    plan = plan_study(settings.study(samples, len(data.ids)), Sources(results, None, settings.weights))
    if any(unit.info.identity != data.identity for unit in plan.units):
        raise LincBenchError(f"{samples} was changed by another command. When that has ended, rerun the same command.")
    seconds, size = estimate(plan, settings.workers)
    say(
        f"{len(data.ids):,} images of {len(data.class_names)} classes; training takes about "
        f"{duration(seconds)} and {decimal(size)} of disk."
    )
    with make_executor(settings.workers) as executor:
        outcomes = run_study(plan, executor, progress)
    for outcome in outcomes:
        if outcome.reasons:
            why = "; ".join(outcome.reasons)
            raise LincBenchError(f"The audit failed: {why} (details: {results.log(outcome.run_id)})")
    with_embedding = next(unit for unit in plan.units if EMBEDDING in unit.signals)
    scores = {}
    for detector in DETECTORS:
        files = [plan.sources.score_file(unit, detector) for unit in plan.units if detector in unit.detectors]
        scores[detector.name] = np.mean([read_scores(file)[0] for file in files], axis=0)
    embedding = np.array(open_record(plan.sources.record(with_embedding))[EMBEDDING])
    return scores, embedding, known_duplicates(results, with_embedding.info)

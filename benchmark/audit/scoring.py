"""Trains on the given labels and scores them, by the same pipeline as a study: an interrupted audit can be resumed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.filesize import decimal

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.settings import DETECTORS, FEWEST_SAMPLES, AuditSettings
from benchmark.data.duplicates import Duplicates, known_duplicates
from benchmark.disk import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.execution.executors import make_executor
from benchmark.execution.progress import Progress, duration
from benchmark.record import EMBEDDING, open_record
from benchmark.runs import Plan, Sources, plan_study
from benchmark.runs.estimate import estimate
from benchmark.runs.run_study import run_study
from benchmark.runs.scores import read_scores

BESIDE = 15  # seconds for each training, on two cores: starting processes, reading, held-out classifiers, thumbnails
LARGER, MUCH = 224, 4  # pixels: most networks' own size; times by which images are reduced before a line says so


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
    times = 2 if settings.planted and len(data.ids) >= FEWEST_SAMPLES else 1  # the planted copy is trained on, too
    needed = f"; the audit takes about {duration(times * (seconds + BESIDE))} and {decimal(times * size)} of disk"
    say(f"{len(data.ids):,} images of {len(data.class_names)} classes{needed if seconds else ''}.")
    if max(data.shape) >= MUCH * settings.backbone.image_size:
        say(_about_larger_images(data, samples, plan, settings, seconds))
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


def _about_larger_images(data: AuditedData, samples: Path, plan: Plan, settings: AuditSettings, seconds: float) -> str:
    """What the reduction loses, and how long a larger size takes here."""
    (height, width), size = data.shape, settings.backbone.image_size
    reduced = f"Images are about {width:,} × {height:,} pixels and are reduced to {size} × {size}"
    loss = f"{reduced}; small findings may be lost."
    if size >= LARGER:
        return loss
    larger = replace(settings, backbone=replace(settings.backbone, image_size=LARGER))
    needed, _ = estimate(plan_study(larger.study(samples, len(data.ids)), plan.sources), settings.workers)
    is_new = seconds and plan.stores_to_compute()  # or else a part is done, and no longer counted
    times = f", about {needed / seconds:.0f} times as long" if is_new else ""
    return f"{loss} --image-size {LARGER} keeps more; training then takes about {duration(needed)} here{times}."

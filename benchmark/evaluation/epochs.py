"""A detector's AUROC had training ended earlier; it is kept beside the scores, since computing it is slow."""

import json

from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmark.disk import UNREADABLE, checksum, read_json, write_json
from benchmark.evaluation.run_rows import judged_run
from benchmark.identity import Json, file_digest
from benchmark.runs import Sources, Unit
from detectors import Detector


def auroc_by_epochs(detector: Detector, unit: Unit, sources: Sources) -> list[Json]:
    """After 1, 2, … epochs. Empty if it needs the whole run."""
    if not (detector.needs and all(signal.per_epoch for signal in detector.needs)):
        return []
    file = sources.score_file(unit, detector)
    cache, digests = file.parent / "by_epochs" / f"{file.stem}.json", [file_digest(file)]
    try:
        cached = read_json(cache)
        counts = [point["epochs_read"] for point in cached["points"]]
        is_whole = cached["crc32"] == _checksum(cached["points"]) and counts == epochs_read(unit.shape.epochs)
        if is_whole and cached["scores"] == digests:
            return cached["points"]
    except UNREADABLE:
        pass
    points = _compute(detector, unit, sources)
    write_json(cache, {"scores": digests, "points": points, "crc32": _checksum(points)})
    return points


def _checksum(points: Json) -> str:
    return checksum([json.dumps(points).encode()])


def _compute(detector: Detector, unit: Unit, sources: Sources) -> list[Json]:
    run = judged_run(unit, sources)
    points = []
    for count in epochs_read(run.record.epochs):
        try:
            with threadpool_limits(limits=unit.run.training.threads):  # as where scores are made
                scores = detector.score(run.record.first_epochs(count))
        except KeyboardInterrupt:
            raise
        except BaseException:  # it needs more epochs than these
            continue
        points.append({"epochs_read": count, "auroc": round(float(roc_auc_score(run.is_mislabelled, scores)), 6)})
    return points


def epochs_read(epochs: int) -> list[int]:
    """After how many epochs AUROCs are computed: each of the first ten, where most changes, then every fifth."""
    return [*range(1, min(10, epochs) + 1), *range(15, epochs, 5), *([epochs] if epochs > 10 else [])]

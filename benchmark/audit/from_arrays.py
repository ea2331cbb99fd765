"""Audits labels by arrays of your own: held-out probabilities, embeddings and images, or any of them.

Who has probabilities or embeddings needs no training; with images alone, the audit trains as it does for files.
"""

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmark.audit.audited_data import FEWEST, AuditedData, check_values, splits_if_several
from benchmark.audit.given_arrays import GivenArrays, Texts, checked_arrays
from benchmark.audit.ranking import Ranked, held_out, rank_labels, ranked_by_scores
from benchmark.audit.run_audit import PAGE, Audit, check_folder, summarised, write_audit, write_page
from benchmark.audit.settings import DEFAULT_BACKBONE, AuditSettings, checked_settings
from benchmark.data.duplicates import find_duplicates, no_duplicates
from benchmark.disk import ResultsFolder, atomic_file
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.networks import Backbone
from benchmark.record import EMBEDDING, RunRecord
from detectors import detector_named

BY_EMBEDDING = tuple(map(detector_named, ("nearest neighbours", "SimiFeat-V", "SimiFeat-R")))
MARGIN = "normalised margin"  # one minus it, from 0 to 1: confident learning's other reading of held-out probabilities
LEFT_OUT = {
    "probabilities": "No probabilities: those of simple classifiers on the embeddings take their place.",
    "embeddings": "No embeddings: no scores by nearest neighbours.",
    "images": "No images: no page with pictures, no duplicates by pixels. To review, write decisions.csv by hand.",
}
NO_TRAINING = "No training, since there are probabilities or embeddings: no scores by training."


def audit_arrays(
    labels: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    embeddings: ArrayLike | None = None,
    images: ArrayLike | None = None,
    class_names: Texts | None = None,
    ids: Texts | None = None,
    groups: Texts | None = None,
    splits: Texts | None = None,
    fold_by: Texts | None = None,
    out: Path | str | None = None,
    name: str = "arrays",
    seeds: int = 1,
    backbone: Backbone | str = DEFAULT_BACKBONE,
    weights: Path | str | None = None,
    shown: int = 1000,
    thumbnail_size: int = 256,  # pixels
    workers: int = 1,
    progress: Progress | None = None,
    say: Callable[[str], None] = print,
) -> Audit:
    """Ranks labels (whole numbers from 0); writes the files of an audit if `out` is given, and a page if `images` are.

    `probabilities` (samples × classes) have to be held out: of models that have not seen the sample. `embeddings` are
    samples × features, `images` 8-bit grey or RGB arrays of one size. Rates are also given by `groups`. If
    probabilities have to be made, samples with the same value in `fold_by`, such as the patient, share a fold.
    """
    settings = checked_settings(seeds, backbone, weights, workers, shown)
    arrays = checked_arrays(labels, probabilities, embeddings, images, class_names)
    if len(arrays.labels) < FEWEST:
        raise LincBenchError(f"There are {len(arrays.labels)} samples; an audit needs at least {FEWEST}.")
    folder, progress = Path(out) if out is not None else None, progress or Progress(Console(quiet=True))
    with tempfile.TemporaryDirectory() as temporary:
        work = folder / "work" if folder else Path(temporary)
        columns = {"ids": ids, "groups": groups, "splits": splits, "fold_by": fold_by}
        data = _audited(arrays, class_names, columns, work / "arrays.npz", name)
        if folder:
            check_folder(folder, data)
        ranked = _ranked(arrays, data, ResultsFolder(work), settings, progress, say)
    found = summarised(ranked, data, folder, _left_out(arrays))
    if folder:
        about = settings.as_json(len(data.ids)) if _need_training(arrays) else {"seeds": settings.seeds}
        write_audit(found, data, about | {"arrays": arrays.given})
        if arrays.images is None:
            (folder / PAGE).unlink(missing_ok=True)  # of an earlier audit
        else:
            lines = f"{len(data.ids):,} images, audited by {', '.join(arrays.given)}"
            write_page(found, ranked, data, lines, shown, thumbnail_size, progress)
    return found


def _need_training(arrays: GivenArrays) -> bool:
    return arrays.given == ["images"]


def _left_out(arrays: GivenArrays) -> list[str]:
    if _need_training(arrays):
        return []
    said = [sentence for name, sentence in LEFT_OUT.items() if name not in arrays.given]
    return [*said, NO_TRAINING] if arrays.images is not None else said


def _ranked(
    arrays: GivenArrays,
    data: AuditedData,
    work: ResultsFolder,
    settings: AuditSettings,
    progress: Progress,
    say: Callable[[str], None],
) -> Ranked:
    if _need_training(arrays):
        _write_npz(data)
        return rank_labels(data, work, settings, progress, say)
    everyone, probabilities_NK = np.arange(len(data.labels)), arrays.probabilities
    duplicates = find_duplicates(data.as_dataset()) if arrays.images is not None else no_duplicates(len(everyone))
    scores, groups, embedding = {}, duplicates.groups, np.empty((len(everyone), 0))
    if arrays.embeddings is not None:
        embedding = arrays.embeddings
        signals = {EMBEDDING.key: embedding}
        record = RunRecord.from_arrays(given_labels=data.labels, num_classes=arrays.num_classes, **signals)
        with threadpool_limits(limits=1):  # libraries' own threads change bytes
            scores = {detector.name: detector.score(record) for detector in BY_EMBEDDING}
    if probabilities_NK is None:
        probabilities_NK, groups = held_out(data, embedding, duplicates, settings, progress)
    others_NK = probabilities_NK.copy()
    others_NK[everyone, data.labels] = -np.inf
    margin_N = probabilities_NK[everyone, data.labels] - others_NK.max(axis=1)
    scores[MARGIN] = (1 - margin_N) / 2  # a low margin is noisy
    return ranked_by_scores(data, scores, probabilities_NK, embedding, duplicates, groups)


def _write_npz(data: AuditedData) -> None:
    """Where workers read the images from; all are in the first split."""
    parts: dict[str, np.ndarray] = {}
    for split, rows in (("train", slice(None)), ("val", slice(0)), ("test", slice(0))):
        parts |= {f"{split}_images": np.asarray(data.images[rows]), f"{split}_labels": data.labels[rows]}
    with atomic_file(data.source) as file:
        np.savez(file, **parts)  # type: ignore[arg-type]  # its stub takes them for allow_pickle


def _audited(
    arrays: GivenArrays, class_names: Texts | None, columns: dict[str, Texts | None], source: Path, name: str
) -> AuditedData:
    count = len(arrays.labels)
    texts = {column: _texts(column, values, count) for column, values in columns.items() if values is not None}
    ids = texts.get("ids", tuple(map(str, range(count))))
    if repeated := [id for id, times in Counter(ids).items() if times > 1]:
        raise LincBenchError(f"'{repeated[0]}' is in ids more than once. Give each sample an id of its own.")
    if fold_by := texts.get("fold_by", ()):
        check_values(fold_by, "fold_by")
    names = class_names if class_names is not None else range(arrays.num_classes)
    return AuditedData(
        source,
        name,
        arrays.identity,
        arrays.pixels,
        ids,
        tuple(map(str, names)),
        arrays.labels,
        np.empty((count, 0, 0), dtype=np.uint8) if arrays.images is None else arrays.images,
        groups=texts.get("groups", ()),
        splits=splits_if_several(texts.get("splits", ())),
        kept_together=fold_by,
        fold_column="fold_by" if fold_by else "",
    )


def _texts(what: str, values: Texts, count: int) -> tuple[str, ...]:
    """None and NaN are empty."""
    texts = tuple("" if value is None or value is pd.NA or value != value else str(value).strip() for value in values)
    if len(texts) != count:
        raise LincBenchError(f"{what} has {len(texts)} values for {count} labels.")
    if broken := next((text for text in texts if len(text.splitlines()) > 1), None):
        raise LincBenchError(f"{what} has a line break in {broken!r}. Remove it.")
    return texts

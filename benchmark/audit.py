"""Audits data of one's own: from labelled images to a ranked list of labels to look at again, and a page to review it.

No noise is added and no truth is needed. Everything is trained and scored by the same pipeline as a study, so that an
audit that was interrupted goes on where it was. `from benchmark.audit import audit` does what `linc-bench audit` does.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.stats import rankdata

from benchmark.audited import Audited, read_audited
from benchmark.backbones import Backbone
from benchmark.datasets import AUDITED
from benchmark.error_count import ErrorCount, count_errors
from benchmark.errors import LincBenchError
from benchmark.estimate import estimate
from benchmark.executors import make_executor
from benchmark.features import in_bytes
from benchmark.held_out import held_out_probabilities
from benchmark.identity import file_digest, settings_of
from benchmark.layout import ResultsFolder, slug
from benchmark.mixture import separate
from benchmark.names import network_title
from benchmark.pipeline import carry_out
from benchmark.plan import Plan, Sources, Unit, plan_study
from benchmark.progress import Progress, duration
from benchmark.provenance import provenance
from benchmark.record import open_record
from benchmark.recorders import EMBEDDING
from benchmark.review_page import Review, ReviewSample, thumbnail, write_review
from benchmark.scores import read_scores
from benchmark.storage import write_json, write_text
from benchmark.studies import Grid, LineUp, Study
from benchmark.training import TrainingSettings
from detectors import Detector
from detectors.data_iq import DataIQ
from detectors.el2n import EL2N
from detectors.linc import LiNC
from detectors.nearest_neighbours import Neighbours

DETECTORS: tuple[Detector, ...] = (LiNC(), EL2N(), DataIQ(), Neighbours())
UNREADABLE_LIST = "unreadable.csv"
HELD_OUT = "held-out"  # the classifiers that have not seen a sample, as one more detector
COMPONENTS = ("noisy", "ambiguous", "clean")
EPOCHS, BATCH = LiNC().recipe.min_epochs, 64
EXAMPLES = 6  # of each class, on the page
DEFAULT_FOLDER, DEFAULT_BACKBONE = Path("audits"), Backbone()


@dataclass(frozen=True)
class Audit:
    """What an audit found; `samples` has a row for each, the most suspicious first, as audit.csv has it."""

    samples: pd.DataFrame
    errors: ErrorCount
    rates: pd.DataFrame  # of suspicion and of suggested corrections, by class and by group
    unreadable: tuple[tuple[str, str], ...]
    folder: Path

    @property
    def sentences(self) -> list[str]:
        """What to say first."""
        unreadable = f"Images that could not be read: {len(self.unreadable):,} (see {self.folder / UNREADABLE_LIST})."
        return [self.errors.sentence, *([unreadable] if self.unreadable else [])]


def audit(
    path: Path | str,
    out: Path | str | None = None,
    *,
    seeds: int = 1,
    backbone: Backbone = DEFAULT_BACKBONE,
    weights: Path | None = None,
    group: str | None = None,
    shown: int = 1000,
    workers: int = 1,
    progress: Progress | None = None,
    say: Callable[[str], None] = print,
) -> Audit:
    """Ranks every label of a folder, a CSV or an .npz; writes audit.csv, audit.html and the rest into `out`.

    With several workers, a script has to guard its own code by `if __name__ == "__main__"`.
    """
    if seeds < 1 or shown < 1 or workers < 1:
        raise LincBenchError(
            f"An audit needs at least one seed, sample and worker, not {seeds}, {shown} and {workers}."
        )
    progress = progress or Progress(Console(quiet=True))
    with progress.counting("looking at images") as report:
        data = read_audited(Path(path), group, report)
    folder = Path(out) if out is not None else DEFAULT_FOLDER / (slug(data.name) or "data")
    _check_folder(folder, data)
    results = ResultsFolder(folder / "work")
    results.prepare()
    samples = results.root / f"samples{AUDITED}"
    data.write_list(samples)
    plan = plan_study(_study(samples, len(data.ids), seeds, backbone), Sources(results, None, weights))
    expected = estimate(plan, workers)
    say(
        f"{len(data.ids):,} images of {len(data.class_names)} classes; training takes about "
        f"{duration(expected.seconds)} and {in_bytes(expected.bytes_on_disk)} of disk."
    )
    with make_executor(workers) as executor:
        outcomes = carry_out(plan, executor, progress)
    for outcome in outcomes:
        if outcome.error is not None or outcome.failures:
            why = outcome.error or "; ".join(f"{detector}: {reason}" for detector, reason in outcome.failures.items())
            raise LincBenchError(f"The audit could not be done: {why} (details: {results.log(outcome.run_id)})")
    progress.say("held-out classifiers, list and page")
    found = _found(data, plan, folder)
    _write(found, data, plan, shown)
    return found


def _check_folder(folder: Path, data: Audited) -> None:
    """Neither the data themselves nor another's audit, with its decisions, are written over."""
    if data.source.is_dir() and folder.resolve().is_relative_to(data.source.resolve()):
        raise LincBenchError(f"{folder} is inside the images that are audited. Choose another folder with --out DIR.")
    try:
        about = json.loads((folder / "audit.json").read_text())
    except (OSError, ValueError):
        return
    if about.get("source") != str(data.source.resolve()):
        raise LincBenchError(
            f"{folder} has the audit of other data ({about.get('source')}). Choose another folder with --out DIR."
        )


def _study(samples: Path, count: int, seeds: int, backbone: Backbone) -> Study:
    training = TrainingSettings(epochs=EPOCHS, batch_size=min(BATCH, count // 4))
    grid = Grid(
        datasets=(str(samples),),
        rates=(0.0,),
        training_seeds=tuple(range(seeds)),
        backbone=backbone,
        training=training,
        recipes=(),
        line_ups=(LineUp("audit", DETECTORS),),
    )
    return Study("audit", "labels of one's own data", (grid,))


def _found(data: Audited, plan: Plan, folder: Path) -> Audit:
    scores = {detector.name: _mean_scores(plan, detector) for detector in DETECTORS}
    standard = next(unit for unit in plan.units if EMBEDDING in unit.signals)
    embedding = np.asarray(open_record(standard.folder)[EMBEDDING])
    probabilities_NK = held_out_probabilities(embedding, data.labels, len(data.class_names))
    everyone = np.arange(len(data.labels))
    scores[HELD_OUT] = 1 - probabilities_NK[everyone, data.labels]
    trust = 1 - scores[LiNC.name]
    ranks = {name: rankdata(-values, method="min") for name, values in scores.items()}
    combined = rankdata(np.mean([rankdata(-values) for values in scores.values()], axis=0), method="ordinal")
    names, suggested = np.array(data.class_names, dtype=object), probabilities_NK.argmax(axis=1)
    samples = pd.DataFrame(
        {
            "id": data.ids,
            "rank": combined,
            "given": names[data.labels],
            "suggested": names[suggested],
            "sureness": probabilities_NK[everyone, suggested],
            "trust": trust,
            "component": _components(trust),
        }
        | ({"group": data.groups} if data.groups else {})
        | {
            column: values
            for name in scores
            for column, values in ((name, scores[name]), (f"{name} rank", ranks[name]))
        }
    ).sort_values("rank", ignore_index=True)
    errors = count_errors(probabilities_NK, data.labels)
    return Audit(samples, errors, rates(samples, errors), data.unreadable, folder)


def _mean_scores(plan: Plan, detector: Detector) -> np.ndarray:
    """Over the training seeds."""
    files = [unit.score_file(detector) for unit in plan.units if detector in unit.detectors]
    return np.mean([read_scores(file)[0] for file in files], axis=0)


def _components(trust: np.ndarray) -> np.ndarray:
    mixture = separate(trust, len(COMPONENTS))
    return np.array(COMPONENTS, dtype=object)[mixture.assignment] if mixture else np.full(len(trust), "")


def rates(samples: pd.DataFrame, errors: ErrorCount) -> pd.DataFrame:
    """Whom suspicion and suggested corrections fall on: rare classes and small groups may be wronged by them.

    Suspected are as many of the most suspicious as are estimated to be wrong.
    """
    judged = samples.assign(
        suspected=(samples["rank"] <= round(errors.share * len(samples))) if errors.is_known else math.nan,
        otherwise=samples["suggested"] != samples["given"],
        noisy=samples["component"] == COMPONENTS[0],
    )
    rows = [("all", "", judged)]
    for column in ("given", *(["group"] if "group" in samples else [])):
        rows += [({"given": "class"}.get(column, column), str(name), part) for name, part in judged.groupby(column)]
    return pd.DataFrame(
        {
            "of": of,
            "which": which,
            "samples": len(part),
            "suspected": part["suspected"].mean(),
            "suggested otherwise": part["otherwise"].mean(),
            "in the noisy component": part["noisy"].mean(),
        }
        for of, which, part in rows
    )


def _write(found: Audit, data: Audited, plan: Plan, shown: int) -> None:
    table = found.folder / "audit.csv"
    write_text(table, found.samples.to_csv(index=False, float_format="%.6g"))
    write_text(found.folder / "rates.csv", found.rates.to_csv(index=False, float_format="%.4f"))
    listed = pd.DataFrame(found.unreadable, columns=["id", "why"])
    (found.folder / UNREADABLE_LIST).unlink(missing_ok=True)
    if len(listed):
        write_text(found.folder / UNREADABLE_LIST, listed.to_csv(index=False))
    unit = plan.units[0]
    about = {
        "data": data.name,
        "source": str(data.source.resolve()),
        "identity": data.identity,
        "audit": audit_digest(table),
        "count": vars(found.errors),
    }
    seeds = sorted({one.run.training.seed for one in plan.units})
    settings = {"backbone": settings_of(unit.run.backbone), "training": settings_of(unit.run.training), "seeds": seeds}
    detectors = [settings_of(detector) for detector in DETECTORS]
    write_json(found.folder / "audit.json", about | settings | {"detectors": detectors} | provenance())
    write_review(found.folder / "audit.html", _review(found, data, unit, shown))


def audit_digest(table: Path) -> str:
    """What decisions name, so that they are not applied to another audit."""
    return file_digest(table)[:16]


def _review(found: Audit, data: Audited, unit: Unit, shown: int) -> Review:
    number_of = {id: number for number, id in enumerate(data.ids)}
    class_of = {name: number for number, name in enumerate(data.class_names)}
    columns = [str(column) for column in found.samples if f"{column} rank" in found.samples]
    top = found.samples.head(shown)
    samples = [
        ReviewSample(
            id=row["id"],
            given=class_of[row["given"]],
            suggested=class_of[row["suggested"]],
            sureness=row["sureness"],
            component=row["component"],
            trust=row["trust"],
            scores=tuple(row[column] for column in columns),
            ranks=tuple(int(row[f"{column} rank"]) for column in columns),
            thumbnail=_picture(data, number_of[row["id"]]),
            group=row.get("group", ""),
        )
        for row in top.to_dict("records")
    ]
    network = f"{network_title(unit.run.backbone.name)} at {unit.run.backbone.image_size} px"
    lines = [
        f"{len(data.ids):,} images, {network}; {len(top):,} of them are here, the most suspicious first.",
        *found.sentences,
    ]
    return Review(
        title=f"Audit of {data.name}: labels to review",
        audit=audit_digest(found.folder / "audit.csv"),
        class_names=data.class_names,
        detectors=tuple(columns),
        samples=tuple(samples),
        examples=tuple(_examples(found, data, name, number_of) for name in data.class_names),
        summary_lines=tuple(lines),
    )


def _examples(found: Audit, data: Audited, name: str, number_of: dict[str, int]) -> tuple[bytes, ...]:
    """Of the least suspicious samples of a class."""
    own = found.samples[found.samples["given"] == name].tail(EXAMPLES)
    return tuple(_picture(data, number_of[id]) for id in reversed(own["id"].tolist()))


def _picture(data: Audited, number: int) -> bytes:
    return thumbnail(np.asarray(data.images[number : number + 1][0]))

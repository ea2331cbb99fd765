"""Audits data of one's own: from labelled images to a ranked list of labels to look at again, and a page to review it.

No noise is added and no truth is needed. `from benchmark.audit import audit` does what `linc-bench audit` does.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmark.audit.audited import Audited, read_audited
from benchmark.audit.ranking import COMPONENTS, DETECTORS, HELD_OUT, Means, Ranked, rank_labels, rank_of
from benchmark.audit.review_page import Review, ReviewSample, thumbnail, write_review
from benchmark.disk.files import write_json, write_text
from benchmark.disk.provenance import provenance
from benchmark.disk.results_folder import ResultsFolder, slug
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.identity import bytes_digest, settings_of
from benchmark.networks import Backbone
from benchmark.statistics.error_count import ErrorCount
from benchmark.wording import network_title

UNREADABLE_LIST = "unreadable.csv"
WRITTEN = ("audit.json", "audit.csv", "audit.html", "rates.csv", UNREADABLE_LIST)
EXAMPLES, EXAMPLE_SIZE = 6, 96  # of each class, on the page; pixels
THUMBNAIL = 256  # pixels
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
    backbone: Backbone | str = DEFAULT_BACKBONE,
    weights: Path | str | None = None,
    group: str | None = None,
    shown: int = 1000,
    thumbnail_size: int = THUMBNAIL,
    workers: int = 1,
    progress: Progress | None = None,
    say: Callable[[str], None] = print,
) -> Audit:
    """Ranks every label of a folder, a CSV or an .npz; writes audit.csv, audit.html and the rest into `out`.

    With several workers, a script has to guard its own code by `if __name__ == "__main__"`. A backbone may be a timm
    name.
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
    backbone = replace(DEFAULT_BACKBONE, name=backbone) if isinstance(backbone, str) else backbone
    means = Means(tuple(range(seeds)), backbone, Path(weights) if weights else None, workers)
    ranked = rank_labels(data, ResultsFolder(folder / "work"), means, progress, say)
    found = Audit(ranked.samples, ranked.errors, rates(ranked.samples, ranked.errors), data.unreadable, folder)
    _write(found, ranked, data, means)
    with progress.counting("thumbnails") as report:
        write_review(folder / "audit.html", _review(found, data, backbone, shown, thumbnail_size, report))
    return found


def _check_folder(folder: Path, data: Audited) -> None:
    """Neither the data themselves nor another's audit or files are written over."""
    if folder.exists() and not folder.is_dir():
        raise LincBenchError(f"{folder} is a file. Choose a folder with --out DIR.")
    if data.source.is_dir() and folder.resolve().is_relative_to(data.source.resolve()):
        raise LincBenchError(f"{folder} is inside the images that are audited. Choose another folder with --out DIR.")
    try:
        about = json.loads((folder / "audit.json").read_text())
    except (OSError, ValueError):
        foreign = [name for name in WRITTEN if (folder / name).exists()]
        if foreign:
            raise LincBenchError(
                f"{folder} has {', '.join(foreign)}, which no audit wrote. Choose another folder with --out DIR."
            ) from None
        return
    if about.get("source") != str(data.source.resolve()):
        raise LincBenchError(
            f"{folder} has the audit of other data ({about.get('source')}). Choose another folder with --out DIR."
        )


def rates(samples: pd.DataFrame, errors: ErrorCount) -> pd.DataFrame:
    """Whom suspicion and suggested corrections fall on: rare classes and small groups may be wronged by them.

    Suspected are as many of the most suspicious as are estimated to be wrong.
    """
    judged = samples.assign(
        suspected=(samples["rank"] <= round(errors.share * len(samples))) if errors.is_evidence else math.nan,
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


def _write(found: Audit, ranked: Ranked, data: Audited, means: Means) -> None:
    """audit.json first: it says whose folder this is, so that an interrupted audit may go on."""
    about = {
        "data": data.name,
        "source": str(data.source.resolve()),
        "identity": data.identity,
        "audit": audit_digest(found.samples),
        "count": vars(found.errors),
        "backbone": settings_of(means.backbone),
        "training": settings_of(ranked.training),
        "seeds": means.seeds,
        "detectors": [settings_of(detector) for detector in DETECTORS],
    }
    write_json(found.folder / "audit.json", about | provenance())
    write_text(found.folder / "audit.csv", found.samples.to_csv(index=False, float_format="%.6g"))
    write_text(found.folder / "rates.csv", found.rates.to_csv(index=False, float_format="%.4f"))
    listed = pd.DataFrame(found.unreadable, columns=["id", "why"])
    (found.folder / UNREADABLE_LIST).unlink(missing_ok=True)
    if len(listed):
        write_text(found.folder / UNREADABLE_LIST, listed.to_csv(index=False))


def audit_digest(samples: pd.DataFrame) -> str:
    """What decisions name: they hold for another audit of the same samples and labels, and for no other."""
    given = sorted(zip(samples["id"], samples["given"], strict=True))
    return bytes_digest(repr(pair).encode() for pair in given)[:16]


def _review(
    found: Audit, data: Audited, backbone: Backbone, shown: int, size: int, report: Callable[[int, int], None]
) -> Review:
    number_of = {id: number for number, id in enumerate(data.ids)}
    class_of = {name: number for number, name in enumerate(data.class_names)}
    columns = (*(detector.name for detector in DETECTORS), HELD_OUT)
    top = found.samples.head(shown)
    samples = []
    for at, row in enumerate(top.to_dict("records"), 1):
        samples.append(
            ReviewSample(
                id=row["id"],
                given=class_of[row["given"]],
                suggested=class_of[row["suggested"]],
                sureness=row["sureness"],
                component=row["component"],
                trust=row["trust"],
                scores=tuple(row[column] for column in columns),
                ranks=tuple(int(row[rank_of(column)]) for column in columns),
                thumbnail=_picture(data, number_of[row["id"]], size),
                group=row.get("group", ""),
            )
        )
        report(at, len(top))
    network = f"{network_title(backbone.name)} at {backbone.image_size} px"
    lines = [
        f"{len(data.ids):,} images, {network}; {len(top):,} of them are here, the most suspicious first.",
        *found.sentences,
    ]
    return Review(
        title=f"Audit of {data.name}: labels to review",
        audit=audit_digest(found.samples),
        class_names=data.class_names,
        detectors=columns,
        samples=tuple(samples),
        examples=tuple(_examples(found, data, name, number_of) for name in data.class_names),
        summary_lines=tuple(lines),
    )


def _examples(found: Audit, data: Audited, name: str, number_of: dict[str, int]) -> tuple[bytes, ...]:
    """Of the least suspicious samples of a class."""
    own = found.samples[found.samples["given"] == name].tail(EXAMPLES)
    return tuple(_picture(data, number_of[id], EXAMPLE_SIZE) for id in reversed(own["id"].tolist()))


def _picture(data: Audited, number: int, size: int) -> bytes:
    return thumbnail(np.asarray(data.images[number : number + 1][0]), size)

"""Audits your own data: from labelled images to a ranked list of suspicious labels, and a page to review it.

No noise is added and no truth is needed. `from benchmark.audit import audit` does what `linc-bench audit` does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmark.audit.apply_review import audit_digest, by_class_and_group
from benchmark.audit.audited_data import AuditedData, read_audited_data
from benchmark.audit.ranking import COMPONENTS, Planted, rank_labels
from benchmark.audit.review_page import make_review, write_review
from benchmark.audit.settings import DEFAULT_BACKBONE, AuditSettings
from benchmark.disk import UNREADABLE, ResultsFolder, as_csv, read_json, slug, write_json, write_text
from benchmark.disk.provenance import provenance
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.networks import Backbone
from benchmark.statistics.error_count import ErrorCount
from benchmark.wording import network_title

UNREADABLE_LIST = "unreadable.csv"
WRITTEN = ("audit.json", "audit.csv", "audit.html", "rates.csv", UNREADABLE_LIST)
RATES = ("flagged", "other label suggested", "in the noisy component")


@dataclass(frozen=True)
class Audit:
    """The result of an audit; `samples` has a row for each, the most suspicious first, as in audit.csv."""

    samples: pd.DataFrame
    errors: ErrorCount
    rates: pd.DataFrame  # of flagged samples and suggested corrections, by class and by group
    unreadable: tuple[tuple[str, str], ...]
    folder: Path
    planted: Planted | None = None

    @property
    def sentences(self) -> list[str]:
        """What to report first."""
        unreadable = f"Images that could not be read: {len(self.unreadable):,} (see {self.folder / UNREADABLE_LIST})."
        planted = [self.planted.sentence] if self.planted else []
        return [self.errors.sentence, *planted, *([unreadable] if self.unreadable else [])]


def audit(
    path: Path | str,
    out: Path | str | None = None,
    *,
    seeds: int = 1,
    backbone: Backbone | str = DEFAULT_BACKBONE,
    weights: Path | str | None = None,
    group: str | None = None,
    shown: int = 1000,
    thumbnail_size: int = 256,  # pixels
    workers: int = 1,
    progress: Progress | None = None,
    say: Callable[[str], None] = print,
) -> Audit:
    """Ranks every label of a folder, a CSV or an .npz; writes audit.csv, audit.html and the rest into `out`.

    With several workers, a script has to guard its own code by `if __name__ == "__main__"`. A backbone may be a timm
    name.
    """
    if seeds < 1 or shown < 1 or workers < 1:
        counts = f"{seeds}, {shown} and {workers}"
        raise LincBenchError(f"An audit needs at least one seed, sample and worker, not {counts}.")
    provenance()  # asks git now, before anything can change
    progress = progress or Progress(Console(quiet=True))
    with progress.counting("reading images") as report:
        data = read_audited_data(Path(path), group, report)
    folder = Path(out) if out is not None else Path("audits", slug(data.name) or "data")
    _check_folder(folder, data)
    backbone = replace(DEFAULT_BACKBONE, name=backbone) if isinstance(backbone, str) else backbone
    settings = AuditSettings(tuple(range(seeds)), backbone, Path(weights) if weights else None, workers)
    ranked = rank_labels(data, ResultsFolder(folder / "work"), settings, progress, say)
    rates = flag_rates(ranked.samples, ranked.errors)
    found = Audit(ranked.samples, ranked.errors, rates, data.unreadable, folder, ranked.planted)
    _write(found, data, settings)
    images = f"{len(data.ids):,} images, {network_title(backbone.name)} at {backbone.image_size} px"
    lines = [f"{images}; the {min(shown, len(data.ids)):,} most suspicious are shown.", *found.sentences]
    with progress.counting("thumbnails") as report:
        review = make_review(found.samples, data, shown, thumbnail_size, lines, report, found.planted)
    write_review(folder / "audit.html", review)
    return found


def _check_folder(folder: Path, data: AuditedData) -> None:
    """An audit overwrites neither the data nor other files nor the audit of other data."""
    if folder.exists() and not folder.is_dir():
        raise LincBenchError(f"{folder} is a file. Choose a folder with --out DIR.")
    if data.source.is_dir() and folder.resolve().is_relative_to(data.source.resolve()):
        raise LincBenchError(f"{folder} is inside the folder of images. Choose another folder with --out DIR.")
    try:
        source = read_json(folder / "audit.json")["source"]
        problem = f"has the audit of other data ({source})" if source != str(data.source.resolve()) else ""
    except UNREADABLE:
        foreign = [name for name in WRITTEN if (folder / name).exists()]
        problem = f"has {', '.join(foreign)}, which no audit wrote" if foreign else ""
    if problem:
        raise LincBenchError(f"{folder} {problem}. Choose another folder with --out DIR.")


def flag_rates(samples: pd.DataFrame, errors: ErrorCount) -> pd.DataFrame:
    """By class and group, since rare classes and small groups may be flagged unfairly.

    Flagged are as many of the most suspicious samples as are estimated to be wrong.
    """
    is_flagged = samples["rank"] <= round(errors.share * len(samples))
    flags = (
        is_flagged if errors.is_evidence else math.nan,
        samples["suggested"] != samples["given"],
        samples["component"] == COMPONENTS[0],
    )
    counted = samples.assign(**dict(zip(RATES, flags, strict=True)))
    return by_class_and_group(counted, {"samples": ("id", "size")} | {rate: (rate, "mean") for rate in RATES})


def _write(found: Audit, data: AuditedData, settings: AuditSettings) -> None:
    """Writes audit.json first: it says whose folder this is, so that an interrupted audit can be resumed."""
    about = {
        "data": data.name,
        "source": str(data.source.resolve()),
        "identity": data.identity,
        "audit": audit_digest(found.samples),
        "count": vars(found.errors),
        "planted": found.planted.as_json if found.planted else None,
    }
    write_json(found.folder / "audit.json", about | settings.as_json(len(data.ids)) | provenance())
    write_text(found.folder / "audit.csv", as_csv(found.samples, floats=".6g"))
    write_text(found.folder / "rates.csv", as_csv(found.rates, floats=".4f"))
    unreadable = found.folder / UNREADABLE_LIST
    unreadable.unlink(missing_ok=True)
    if found.unreadable:
        write_text(unreadable, as_csv(pd.DataFrame(found.unreadable, columns=["id", "why"])))

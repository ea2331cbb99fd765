"""Audits your own data: from labelled images to a ranked list of suspicious labels, and a page to review it.

No noise is added and no truth is needed. `from benchmark.audit import audit` does what `linc-bench audit` does.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmark.audit.apply_review import audit_digest, by_class_and_group
from benchmark.audit.audited_data import AuditedData, read_audited_data
from benchmark.audit.ranking import COMPONENTS, ErrorCount, Planted, Ranked, rank_labels
from benchmark.audit.review_page import make_review, write_review
from benchmark.audit.settings import DEFAULT_BACKBONE, FEWEST_SAMPLES, checked_settings
from benchmark.counting.review_sample import drawn_order, with_sample
from benchmark.disk import UNREADABLE, ResultsFolder, as_csv, read_json, slug, write_json, write_text
from benchmark.disk.provenance import provenance
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.networks import Backbone
from benchmark.wording import network_title

UNREADABLE_LIST, PAGE = "unreadable.csv", "audit.html"
WRITTEN = ("audit.json", "audit.csv", PAGE, "rates.csv", UNREADABLE_LIST)
AS_STORED = "8-bit, as stored"
NOT_PLANTED = f"No p_wrong: only an audit that trains, on {FEWEST_SAMPLES} images or more, plants errors to learn it."
RATES = ("flagged", "other label suggested", "in the noisy component")


@dataclass(frozen=True)
class Audit:
    """The result of an audit; `samples` has a row for each, the most suspicious first, as in audit.csv."""

    samples: pd.DataFrame
    errors: ErrorCount
    rates: pd.DataFrame  # of flagged samples and suggested corrections, by class and by group
    unreadable: tuple[tuple[str, str], ...]
    folder: Path | None  # None if nothing was written
    notes: tuple[str, ...] = ()  # sentences on duplicates and splits, and on what was left out
    duplicates: Mapping[str, object] = field(default_factory=dict)  # counts, as in audit.json
    planted: Planted | None = None

    @property
    def sentences(self) -> list[str]:
        """What to report first."""
        sentences = [self.errors.sentence, self.planted.sentence if self.planted else NOT_PLANTED, *self.notes]
        if self.unreadable and self.folder:
            see = self.folder / UNREADABLE_LIST
            sentences.append(f"Images that could not be read: {len(self.unreadable):,} (see {see}).")
        return sentences


def audit(
    path: Path | str,
    out: Path | str | None = None,
    *,
    seeds: int = 1,
    backbone: Backbone | str = DEFAULT_BACKBONE,
    weights: Path | str | None = None,
    group: str | None = None,
    fold_by: str | None = None,
    shown: int = 1000,
    thumbnail_size: int = 256,  # pixels
    workers: int = 1,
    progress: Progress | None = None,
    say: Callable[[str], None] = print,
) -> Audit:
    """Ranks every label of a folder, a CSV or an .npz; writes audit.csv, audit.html and the rest into `out`.

    With several workers, a script has to guard its own code by `if __name__ == "__main__"`. A backbone may be a timm
    name. Rates are also given by the values of the column `group` of a CSV; the held-out classifiers see no sample of
    those whose column `fold_by` has the same value, such as the patient.
    """
    settings = checked_settings(seeds, backbone, weights, workers, shown)
    provenance()  # asks git now, before anything can change
    progress = progress or Progress(Console(quiet=True))
    with progress.counting("reading images") as report:
        data = read_audited_data(Path(path), group, report, fold_by)
    folder = Path(out) if out is not None else Path("audits", slug(data.name) or "data")
    check_folder(folder, data)
    for sentence in filter(None, (data.shown, data.folds)):
        say(sentence)
    ranked = rank_labels(data, ResultsFolder(folder / "work"), settings, progress, say)
    found = summarised(ranked, data, folder)
    write_audit(found, data, settings.as_json(len(data.ids)))
    network = settings.backbone
    images = f"{len(data.ids):,} images, {network_title(network.name)} at {network.image_size} px"
    write_page(found, ranked, data, images, shown, thumbnail_size, progress)
    return found


def summarised(ranked: Ranked, data: AuditedData, folder: Path | None, notes: Sequence[str] = ()) -> Audit:
    rates, counts = flag_rates(ranked.samples, ranked.errors), ranked.duplicates
    said = (*counts.sentences, *notes)
    return Audit(
        with_sample(ranked.samples), ranked.errors, rates, data.unreadable, folder, said, vars(counts), ranked.planted
    )


def write_page(
    found: Audit, ranked: Ranked, data: AuditedData, about: str, shown: int, thumbnail_size: int, progress: Progress
) -> None:
    """Of an audit that has a folder."""
    assert found.folder is not None
    lines = [
        f"{about}; {_pages(len(data.ids), shown)}.",
        *found.sentences,
    ]
    with progress.counting("thumbnails") as report:
        review = make_review(
            found.samples, data, found.folder, shown, thumbnail_size, lines, report, ranked.twins, found.planted
        )
    write_review(found.folder / PAGE, review)


def _pages(size: int, shown: int) -> str:
    """What the page has of so many images."""
    drawn = len(drawn_order(size))
    if shown >= size:
        return f"all are shown, {f'{drawn:,} of them' if drawn < size else 'by suspicion or'} in a random order"
    return f"the {shown:,} most suspicious are shown, and {drawn:,} of all in a random order"


def check_folder(folder: Path, data: AuditedData) -> None:
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

    Flagged are as many of the most suspicious samples as are wrong at least.
    """
    is_flagged = samples["rank"] <= errors.at_least
    flags = [is_flagged if errors.at_least else math.nan, samples["suggested"] != samples["given"]]
    if "component" in samples:
        flags.append(samples["component"] == COMPONENTS[0])
    rates = RATES[: len(flags)]
    counted = samples.assign(**dict(zip(rates, flags, strict=True)))
    return by_class_and_group(counted, {"samples": ("id", "size")} | {rate: (rate, "mean") for rate in rates})


def write_audit(found: Audit, data: AuditedData, settings: Mapping[str, object]) -> None:
    """Writes audit.json first: it says whose folder this is, so that an interrupted audit can be resumed."""
    assert found.folder is not None
    about = {
        "data": data.name,
        "source": str(data.source.resolve()),
        "identity": data.identity,
        "images": data.shown or AS_STORED,
        "audit": audit_digest(found.samples),
        "count": vars(found.errors),
        "duplicates": dict(found.duplicates),
        "planted": found.planted.as_json if found.planted else None,
    }
    write_json(found.folder / "audit.json", about | dict(settings) | provenance())
    write_text(found.folder / "audit.csv", as_csv(found.samples, floats=".6g"))
    write_text(found.folder / "rates.csv", as_csv(found.rates, floats=".4f"))
    unreadable = found.folder / UNREADABLE_LIST
    unreadable.unlink(missing_ok=True)
    if found.unreadable:
        write_text(unreadable, as_csv(pd.DataFrame(found.unreadable, columns=["id", "why"])))

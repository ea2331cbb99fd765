"""Writes the review page: one self-contained HTML file in which a person decides, sample by sample, on its label."""

import base64
import math
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from benchmark.display.page import write_html
from benchmark.display.tables import MISSING
from benchmark.errors import LincBenchError
from benchmark.identity import Json

ENLARGED = 96  # pixels that small images are enlarged to
QUALITY = 85  # of thumbnails that are smaller than their image; one that is larger keeps every pixel as it was


@dataclass(frozen=True)
class ReviewSample:
    id: str  # a file's name or a number: any text, but each sample has its own
    given: int
    suggested: int
    sureness: float  # of the suggestion, from 0 to 1
    component: str  # of the mixture: noisy, ambiguous, clean, or nothing
    trust: float
    scores: tuple[float, ...]  # one per detector
    ranks: tuple[int, ...]  # one per detector; 1 is the most suspicious
    thumbnail: bytes  # WebP
    group: str = ""


@dataclass(frozen=True)
class Review:
    """Samples to look at, the most suspicious first; decisions name the audit, the sample's id and the class."""

    title: str
    audit: str  # the digest that says which audit the decisions belong to
    class_names: tuple[str, ...]
    detectors: tuple[str, ...]
    samples: tuple[ReviewSample, ...]
    examples: tuple[tuple[bytes, ...], ...]  # per class, WebP of typical samples
    summary_lines: tuple[str, ...]

    def __post_init__(self) -> None:
        ids = [sample.id for sample in self.samples]
        for what, names in [("samples", ids), ("classes", self.class_names)]:
            if repeated := [name for name, times in Counter(names).items() if times > 1]:
                raise LincBenchError(f"decisions could not tell {what} of the same name apart: {repeated[:5]}")
            if unwritable := [name for name in names if not _is_writable(name)]:
                raise LincBenchError(f"names of {what} cannot be written as UTF-8: {unwritable[:5]}")
        classes = len(self.class_names)
        if len(self.examples) != classes:
            raise LincBenchError(f"a review of {classes} classes has examples of {len(self.examples)}")
        for sample in self.samples:
            if not (0 <= sample.given < classes and 0 <= sample.suggested < classes):
                raise LincBenchError(f"sample {sample.id!r} has a label that is none of the {classes} classes")
            if not len(sample.scores) == len(sample.ranks) == len(self.detectors):
                raise LincBenchError(f"sample {sample.id!r} needs a score and a rank of each detector")


def write_review(path: Path, review: Review) -> None:
    """The same review gives the same bytes, always."""
    scripts = ("review_decisions.js", "review.js")
    write_html(path, "review.html", ("page.css", "review.css"), scripts, {"review": review, "data": _data(review)})


def thumbnail(image: np.ndarray, size: int = 96) -> bytes:
    """An 8-bit grey or RGB image as a WebP with no side longer than `size`.

    A small image is enlarged by a whole factor, without loss, so that its pixels can be seen.
    """
    picture = Image.fromarray(image[..., 0] if image.shape[2:] == (1,) else image)
    longest = max(picture.size)
    factor = max(1, min(size, ENLARGED) // longest) if longest <= size else size / longest
    width, height = (max(1, round(side * factor)) for side in picture.size)
    picture = picture.resize((width, height), Image.Resampling.NEAREST if factor >= 1 else Image.Resampling.LANCZOS)
    written = BytesIO()
    picture.save(written, format="webp", lossless=factor >= 1 and longest <= ENLARGED, quality=QUALITY)
    return written.getvalue()


def _data(review: Review) -> dict[str, Json]:
    """What templates/review.js reads: numbers as they are shown, pictures in base 64."""
    return {
        "audit": review.audit,
        "classes": list(review.class_names),
        "detectors": list(review.detectors),
        "examples": [[_base64(picture) for picture in pictures] for pictures in review.examples],
        "samples": [
            {
                "id": sample.id,
                "given": sample.given,
                "suggested": sample.suggested,
                "sureness": _shown(sample.sureness, ".0%"),
                "component": sample.component,
                "trust": _shown(sample.trust, ".3g"),
                "scores": [_shown(score, ".4g") for score in sample.scores],
                "ranks": list(sample.ranks),
                "picture": _base64(sample.thumbnail),
                "group": sample.group,
            }
            for sample in review.samples
        ],
    }


def _shown(value: float, form: str) -> str:
    return format(value, form).replace("%", " %").replace("-", "−") if math.isfinite(value) else MISSING


def _base64(picture: bytes) -> str:
    return base64.b64encode(picture).decode()


def _is_writable(name: str) -> bool:
    """Names of files need not be: what is no UTF-8 on disk has half characters in Python."""
    return name == name.encode(errors="ignore").decode()

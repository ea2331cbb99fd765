"""Writes the review page: one self-contained HTML file in which a person decides on labels, sample by sample."""

import base64
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.audit.apply_review import audit_digest
from benchmark.audit.audited_data import AuditedData
from benchmark.audit.planted import Planted
from benchmark.audit.ranking import rank_column, ranked_detectors
from benchmark.counting.review_sample import as_javascript, drawn_order, edges_of
from benchmark.data.contradictions import Twin
from benchmark.data.image_files import FileImages, Images
from benchmark.disk import write_text
from benchmark.display.page import render_html
from benchmark.display.tables import MISSING
from benchmark.identity import Json

EXAMPLES, EXAMPLE_SIZE = 6, 96  # per class; pixels
SHOWN_TWINS = 4  # of a sample whose duplicates have other labels
WHY_TWIN = {True: "The same image with another label", False: "Nearly the same image with another label"}
SMALL = 96  # pixels up to which nothing is lost by compression
QUALITY = 85  # of others
# What templates/review.html and review.js read. A sample may have `twins`, duplicates with another label: a list of
# {"id", "given" (a class number, as of samples), "thumbnail", "why" (the heading that they stand under)}.
Review = dict[str, Json]


def make_review(
    ranked: pd.DataFrame,
    data: AuditedData,
    folder: Path,
    shown: int,
    size: int,
    summary_lines: Sequence[str],
    report: Callable[[int, int], None],
    twins: Mapping[str, Sequence[Twin]],
    planted: Planted | None = None,
) -> Review:
    """The first `shown` samples of the list and the random sample, with thumbnails, and typical samples of each class.

    The page in `folder` links to the original files. Duplicates that have another label, `twins` by id, are shown
    beside a sample.
    """
    pages = _Samples(data, ranked_detectors(ranked), folder, size, twins)
    is_shown = (ranked.index < shown) | (ranked["sample"] != "")
    samples, top = [], ranked[is_shown]
    for done, (place, row) in enumerate(zip(top.index.tolist(), top.to_dict("records"), strict=True), 1):
        samples.append(pages.of(row) | {"place": place})
        report(done, len(top))
    least_suspicious = {name: rows["id"].tail(EXAMPLES)[::-1] for name, rows in ranked.groupby("given")}
    examples = [
        [_picture(data, pages.number_of[id], EXAMPLE_SIZE) for id in least_suspicious.get(name, ())]
        for name in data.class_names
    ]
    return {
        "title": f"Audit of {data.name}: labels to review",
        "summary_lines": list(summary_lines),
        "audit": audit_digest(ranked),  # decisions name it
        "classes": list(data.class_names),
        "detectors": pages.detectors,
        "examples": examples,
        "samples": samples,
        "size": len(ranked),
        "edges": edges_of(len(ranked)),
        "order": drawn_order(len(ranked)).tolist(),
        "reliability": reliability_diagram(planted) if planted else "",
        "checked_to": f"{max(row['predicted'] for row in planted.reliability):.0%}".replace("%", " %")
        if planted
        else "",
    }


@dataclass(frozen=True)
class _Samples:
    """Makes what the page shows of a sample from its row of the list."""

    data: AuditedData
    detectors: list[str]
    folder: Path
    size: int  # of thumbnails
    twins: Mapping[str, Sequence[Twin]]

    @cached_property
    def number_of(self) -> dict[str, int]:
        return {id: number for number, id in enumerate(self.data.ids)}

    @cached_property
    def class_of(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.data.class_names)}

    def of(self, row: Mapping[Any, Any]) -> dict[str, Json]:
        number = self.number_of[row["id"]]
        sample: dict[str, Json] = {
            "id": row["id"],
            "given": self.class_of[row["given"]],
            "suggested": self.class_of[row["suggested"]],
            "p_wrong": _chance(row["p_wrong"]) if "p_wrong" in row else "",
            "confidence": _chance(row["confidence"]),
            "group": row.get("group", ""),
            "scores": [_text(row[name], ".4g") for name in self.detectors],
            "ranks": [int(row[rank_column(name)]) for name in self.detectors],
            "thumbnail": _picture(self.data, number, self.size),
            "original": original_link(self.data.images, number, self.folder),
        }
        if row["id"] in self.twins:
            sample["twins"] = [_beside(self.data, twin) for twin in self.twins[row["id"]][:SHOWN_TWINS]]
        return sample


def _picture(data: AuditedData, number: int, size: int) -> str:
    return thumbnail(np.asarray(data.images[number : number + 1][0]), size)


def _beside(data: AuditedData, twin: Twin) -> dict[str, Json]:
    """What the page shows of a duplicate."""
    given, picture = int(data.labels[twin.number]), _picture(data, twin.number, EXAMPLE_SIZE)
    return {"id": data.ids[twin.number], "given": given, "thumbnail": picture, "why": WHY_TWIN[twin.is_copy]}


def reliability_diagram(planted: Planted) -> str:
    """Predicted and true shares of planted errors, a dot per bin, in SVG; on the diagonal if predictions are right."""
    size, margin = 180, 34
    bins = [(row["predicted"], row["planted"]) for row in planted.reliability]
    most = max(0.01, *(value for pair in bins for value in pair))

    def at(share: float) -> float:
        return round(share / most * size, 1)

    dots = "".join(f'<circle cx="{at(x)}" cy="{size - at(y)}" r="3"/>' for x, y in bins)
    ends = f'<text x="{size}" y="{size + 14}" text-anchor="end">{most:.0%}</text><text x="-4" y="10" text-anchor="end">'
    return (
        f'<svg role="img" aria-labelledby="reliability" width="{size + 2 * margin}" height="{size + 2 * margin}" '
        f'viewBox="{-margin} -8 {size + 2 * margin} {size + 2 * margin}" fill="currentColor" font-size="11">'
        f'<path d="M0 0V{size}H{size}M0 {size}L{size} 0" fill="none" stroke="currentColor" stroke-opacity="0.5"/>{dots}'
        f'{ends}{most:.0%}</text><text x="0" y="{size + 14}">0%</text><text x="{size / 2}" y="{size + 28}" '
        f'text-anchor="middle">predicted</text><text transform="translate(-8 {size / 2}) rotate(-90)" '
        'text-anchor="middle">made wrong</text></svg>'
    )


def write_review(path: Path, review: Review) -> None:
    """The same review gives the same bytes, always."""
    scripts = ("review_decisions.js", "review_import.js", "review_certificate.js", "review.js")
    page = render_html("review.html", ("page.css", "review.css"), scripts, as_javascript(), review=review)
    write_text(path, page)


def original_link(images: Images, number: int, folder: Path) -> str:
    """The address of an image's file relative to a page in `folder`; "" if it has no file, or one on another drive.

    Every character that has a meaning in addresses is encoded, so that no name can be taken for a scheme or a query.
    """
    if not isinstance(images, FileImages):
        return ""
    try:
        path = Path(os.path.relpath(images.paths[number], folder))
    except ValueError:  # another drive of Windows
        return ""
    return quote(os.fsencode(path.as_posix()))


def thumbnail(image: np.ndarray, size: int = 96) -> str:
    """An 8-bit grey or RGB image as a WebP in base 64, with no side longer than `size`."""
    picture = Image.fromarray(image[..., 0] if image.shape[2:] == (1,) else image)
    longest = max(picture.size)
    if longest > size:
        width, height = (max(1, round(side * size / longest)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    written = BytesIO()
    picture.save(written, format="webp", lossless=longest <= min(size, SMALL), quality=QUALITY)
    return base64.b64encode(written.getvalue()).decode()


def _chance(value: float) -> str:
    """Never 0 or 100 %: nothing here is certain."""
    return ">99 %" if value > 0.99 else "<1 %" if value < 0.01 else f"{value:.0%}".replace("%", " %")


def _text(value: float, form: str) -> str:
    return format(value, form).replace("%", " %").replace("-", "−") if math.isfinite(value) else MISSING

"""Flip files: which labels are wrong, small enough to be sent to another group.

Every run writes one. `--noise-file` reads one, so that two groups compare on the same wrong labels; it is refused if
the correct labels are not those that it was made of. Images may differ, so one file serves all sizes of a data set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.disk import UNREADABLE, read_json, write_json
from benchmark.errors import LincBenchError
from benchmark.identity import Json, bytes_digest, digest_of
from benchmark.noise.base import NoiseKind, Samples, WrongLabels
from benchmark.paths import regular_file, typed_path

FORMAT = "LiNC-Bench flips 1"


def write_flips(path: Path, samples: Samples, about: Mapping[str, Json], wrong: WrongLabels) -> None:
    """`about` is what people read: data set, kind, rate and seed. Replaced images are listed, and not read again."""
    write_json(path, {"format": FORMAT, **about, **content_of(samples, wrong)})


def content_of(samples: Samples, wrong: WrongLabels) -> dict[str, Json]:
    """What follows from the labels, with its digest."""
    flips = {split: _flips(labels, wrong.given[split]) for split, labels in samples.by_split(samples.labels).items()}
    content = {"classes": samples.num_classes, "correct_labels": labels_digest(samples), "flips": flips}
    if wrong.replaced is not None:
        content["replaced"] = {split: _replaced(number_N) for split, number_N in wrong.replaced.items()}
    return content | {"digest": digest_of(content)}


def labels_digest(samples: Samples) -> str:
    """Changes with any correct label, the number of classes or the sizes of the splits."""
    sizes = repr((samples.num_classes, *samples.sizes.values())).encode()
    return f"sha256:{bytes_digest((sizes, samples.labels.astype('<i8').tobytes()))}"


def _replaced(number_N: np.ndarray) -> Json:
    at = np.flatnonzero(number_N >= 0)
    return {"index": at.tolist(), "image": number_N[at].tolist()}


def _flips(correct_N: np.ndarray, given_N: np.ndarray) -> Json:
    at = np.flatnonzero(correct_N != given_N)
    return {"samples": len(correct_N), "index": at.tolist(), "label": given_N[at].tolist()}


@dataclass(frozen=True)
class FromFile(NoiseKind):
    """The wrong labels of a flip file."""

    name: ClassVar[str] = "file"
    summary: ClassVar[str] = "the wrong labels of a flip file, which every run writes"
    options: ClassVar[str] = "PATH of a flip file"

    takes_rate: ClassVar[bool] = False
    takes_seed: ClassVar[bool] = False

    path: str = ""
    made_by: str = ""
    rate: float = 0.0
    classes: int = 0
    correct_labels: str = ""
    digest: str = ""
    flips: Mapping[str, Json] = field(default_factory=dict, compare=False)

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        if not option:
            raise LincBenchError("Which flip file? Name it: --noise-file PATH.")
        return read_flips(typed_path(option))

    @property
    def source(self) -> str:
        return f"{self.made_by}-{self.digest[:4]}@{self.digest}"

    @property
    def own_rate(self) -> float:
        return self.rate

    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels:
        if self.correct_labels != labels_digest(samples) or set(self.flips) != set(samples.sizes):
            raise LincBenchError(
                f"The flip file {self.path} belongs to other data: the correct labels, their order or the splits are "
                "not those that it was made of. Give it with its own data set, or choose another --noise."
            )
        given = {split: labels.copy() for split, labels in samples.by_split(samples.labels).items()}
        for split, labels in given.items():
            labels[self.flips[split]["index"]] = self.flips[split]["label"]
        return WrongLabels(given)


def read_flips(path: Path) -> FromFile:
    hint = f"Runs write them into `flips` of their results folder; their format is '{FORMAT}'."
    try:
        file = read_json(regular_file(path, f"The flip file {path}"))
        if not isinstance(file, dict) or file.get("format") != FORMAT:
            raise ValueError("it does not say so")
        content = {key: file[key] for key in ("classes", "correct_labels", "flips")}
        if "replaced" in file:
            raise LincBenchError(
                f"{path} lists images of another data set, which follow from the seed: give --noise {file['noise']} "
                f"(or open-set: and its path) --rate {file['rate']} --noise-seed {file['seed']} instead."
            )
        if digest_of(content) != file["digest"]:
            raise ValueError("its digest is not that of its content: it is damaged, or was changed by hand")
        kind, rate, classes = str(file["noise"]), float(file["rate"]), int(file["classes"])
        for flips in file["flips"].values():
            _check(flips, classes)
    except (*UNREADABLE, AttributeError, TypeError) as error:
        raise LincBenchError(f"{path} is not a flip file ({error}). {hint}") from error
    return FromFile(str(path), kind, rate, classes, str(file["correct_labels"]), file["digest"], file["flips"])


def _check(flips: Json, classes: int) -> None:
    index, label = (np.array(flips[key], dtype=np.int64) for key in ("index", "label"))
    is_whole = index.shape == label.shape == (len(set(index.tolist())),)
    if not is_whole or ((index < 0) | (index >= flips["samples"])).any() or ((label < 0) | (label >= classes)).any():
        raise ValueError("its samples or labels are out of range")

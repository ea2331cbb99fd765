"""Images that are of no class: some of another data set, under the labels of the images whose places they take.

A share of the images is chosen as in symmetric noise, and each is replaced by a different image of the same split of
the other data set (Wang et al., CVPR 2018, arXiv 1804.00092). Their labels stay, and all of them are wrong. Test images
stay as they are.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.data.datasets import DatasetInfo, describe_dataset
from benchmark.errors import LincBenchError
from benchmark.identity import digest_of
from benchmark.noise.base import NoiseKind, Samples, WrongLabels
from benchmark.seeds import numpy_generator
from benchmark.wording import paper_dataset


@dataclass(frozen=True)
class OpenSet(NoiseKind):
    name: ClassVar[str] = "open-set"
    summary: ClassVar[str] = "that share of images replaced by those of another data set, under the same labels"
    options: ClassVar[str] = "a data set, by name or path"

    dataset: str = ""
    other: DatasetInfo | None = None

    @classmethod
    def with_option(cls, option: str) -> NoiseKind:
        if not option:
            raise LincBenchError("Images of which data set? Name it after a colon: --noise open-set:digits.")
        return cls(str(Path(option).absolute()) if Path(option).exists() else option)  # for workers elsewhere

    def of_dataset(self, argument: str, data_root: Path | None) -> "OpenSet":
        own, other = (describe_dataset(name, data_root) for name in (argument, self.dataset))
        if own.identity == other.identity or paper_dataset(own.name) == paper_dataset(other.name):
            raise LincBenchError(
                f"Images of {self.dataset} are of the classes of {argument}. Name another data set after the colon."
            )
        return replace(self, other=other)

    @property
    def source(self) -> str:
        assert self.other is not None, "of_dataset comes first"
        return f"{self.other.name}@{digest_of(self.other.identity)}"

    @property
    def foreign(self) -> tuple[DatasetInfo, str] | None:
        return (self.other, self.dataset) if self.other else None

    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels:
        assert self.other is not None, "of_dataset comes first"
        given, replaced = samples.by_split(samples.labels), {}
        for (split, labels), available in zip(given.items(), self.other.sizes, strict=False):
            count = round(rate * len(labels))
            if count > available:
                raise LincBenchError(
                    f"{self.dataset} has {available:,} images to replace {count:,} of the {split} split. Choose a "
                    "lower rate, or a larger data set."
                )
            generator = numpy_generator(seed, "noise", split)
            replaced[split] = np.full(len(labels), -1)
            chosen = generator.choice(len(labels), size=count, replace=False)
            replaced[split][chosen] = generator.choice(available, size=count, replace=False)
        return WrongLabels(given, replaced=replaced)

"""What a kind of noise is, what it may look at, and what it leaves behind."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmark.data.datasets import DatasetInfo
from benchmark.data.image_files import Images
from benchmark.errors import LincBenchError
from benchmark.noise.patches import patch_features, small_images
from benchmark.seeds import numpy_generator


@dataclass(frozen=True)
class Samples:
    """The samples that get wrong labels: all of them, split by split, with their correct labels and their images."""

    sizes: Mapping[str, int]  # of the splits, in order
    labels: np.ndarray
    num_classes: int
    images: tuple[Images, ...] = ()  # of the splits

    @classmethod
    def of_labels(cls, labels: np.ndarray, num_classes: int, split: str = "train") -> "Samples":
        """One split, for kinds that look at labels alone."""
        return cls({split: len(labels)}, labels, num_classes)

    def by_split(self, values_N: np.ndarray) -> dict[str, np.ndarray]:
        starts = np.cumsum(list(self.sizes.values()))[:-1]
        return dict(zip(self.sizes, np.split(values_N, starts), strict=True))

    @cached_property
    def small_images(self) -> np.ndarray:
        """Of all splits; grey ones become RGB if others are."""
        parts = [small_images(images) for images in self.images if len(images)]
        channels = max(part.shape[3] for part in parts)
        return np.concatenate([np.broadcast_to(part, (*part.shape[:3], channels)) for part in parts])

    @cached_property
    def confusion(self) -> np.ndarray:
        """Held-out probabilities of simple classifiers that are trained on the correct labels, without any network."""
        from benchmark.statistics.held_out import held_out_probabilities

        return held_out_probabilities(patch_features(self.small_images), self.labels, self.num_classes)


@dataclass(frozen=True)
class WrongLabels:
    """What a kind made of the labels of each split."""

    given: Mapping[str, np.ndarray]
    replaced: Mapping[str, np.ndarray] | None = None  # the number of another data set's image in its place, or -1
    chances: np.ndarray | None = None  # N: of being wrong, if the kind has one for each sample


@dataclass(frozen=True)
class NoiseKind(ABC):
    """Makes labels wrong. Every method and recipe faces the same ones at the same rate and seed."""

    name: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when other labels may come out
    summary: ClassVar[str]
    options: ClassVar[str] = ""  # what may follow the name and a colon
    reaches: ClassVar[tuple[float, float]] = (0.0, 1.0)  # rates above 0
    takes_rate: ClassVar[bool] = True  # or has its own
    takes_seed: ClassVar[bool] = True  # or always gives the same labels

    @classmethod
    def with_option(cls, option: str) -> "NoiseKind":
        """From what follows the colon in `name:option`."""
        if not option:
            return cls()
        hint = f"one of {cls.options}" if cls.options else "nothing"
        raise LincBenchError(f"'{cls.name}' noise takes {hint} after a colon; it was given '{option}'.")

    def of_dataset(self, argument: str, data_root: Path | None) -> "NoiseKind":
        """With what it reads for a data set, if anything: other labels from its file, or another data set."""
        return self

    @property
    def foreign(self) -> tuple[DatasetInfo, str] | None:
        """Another data set whose images take the places of some, and the name or path that loads it."""
        return None

    @property
    def source(self) -> str:
        """What it depends on beside rate, seed and samples; a digest follows an @."""
        return ""

    @property
    def own_rate(self) -> float | None:
        """Of kinds that take none."""
        return None

    def check_rate(self, rate: float) -> None:
        low, high = self.reaches
        if rate > 0 and not low <= rate <= high:
            raise LincBenchError(f"'{self.name}' noise reaches rates from {low:g} to {high:g}; it was given {rate:g}.")

    @abstractmethod
    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels: ...


@dataclass(frozen=True)
class ExactNoise(NoiseKind):
    """Chooses exactly the wanted share of the samples of each split, whatever they show, and redraws their labels."""

    @abstractmethod
    def redraw(self, labels: np.ndarray, samples: Samples, generator: np.random.Generator) -> np.ndarray:
        """New labels for the chosen ones."""

    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels:
        given = {}
        for split, labels in samples.by_split(samples.labels).items():
            generator = numpy_generator(seed, "noise", split)
            given[split] = labels.copy()
            chosen = generator.choice(len(labels), size=round(rate * len(labels)), replace=False)
            given[split][chosen] = self.redraw(labels[chosen], samples, generator)
        return WrongLabels(given)


@dataclass(frozen=True)
class ChanceNoise(NoiseKind):
    """Draws every label from chances of its own; so the share of wrong labels is near the rate, and not exactly it."""

    @abstractmethod
    def chances(self, samples: Samples, rate: float, generator: np.random.Generator) -> np.ndarray:
        """Samples × classes: how likely each label is to be given; rows sum to one."""

    def corrupt(self, samples: Samples, rate: float, seed: int) -> WrongLabels:
        chances_NK = self.chances(samples, rate, numpy_generator(seed, "noise", self.name))
        draws = {split: numpy_generator(seed, "noise", self.name, split) for split in samples.sizes}
        uniform_N = np.concatenate([draws[split].random(size) for split, size in samples.sizes.items()])
        given_N = (uniform_N[:, None] > chances_NK.cumsum(axis=1)[:, :-1]).sum(axis=1)
        chance_N = 1 - chances_NK[np.arange(len(given_N)), samples.labels]
        return WrongLabels(samples.by_split(given_N), chances=chance_N)


def one_hot(labels_N: np.ndarray, num_classes: int) -> np.ndarray:
    return np.eye(num_classes)[labels_N]


def flipped(labels_N: np.ndarray, to_N: np.ndarray, chance_N: np.ndarray, num_classes: int) -> np.ndarray:
    """Chances of labels that go to one other class each, or stay."""
    wrong_NK = one_hot(to_N, num_classes)
    return one_hot(labels_N, num_classes) + chance_N[:, None] * (wrong_NK - one_hot(labels_N, num_classes))

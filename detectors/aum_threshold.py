"""AUM with its threshold class (Pleiss et al., NeurIPS 2020, arXiv 2001.10528).

N / (C + 1) samples are given a class that does not exist, and the 99th percentile of their AUM is what a wrong label
reaches: below it a label is flagged. Two trainings, each with other such samples, which the other one judges; like the
authors', without a drop of the learning rate. Score: the threshold less the AUM, so that flagged is above 0; for
samples of neither set the mean over both trainings, where the authors flag what both flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmark.record import Example, RunRecord, RunShape, Signal
from benchmark.record.history import History
from benchmark.seeds import numpy_generator
from benchmark.training import Job, Objective, Recipe, TrainingSettings
from detectors.base import Detector
from detectors.relabelled import REPLACED, ROLES, TRAININGS, draw_roles, mean_where_judged, train_twice

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Margins(Signal):
    """The mean margin of each training's label, without its first epoch: samples × 2."""

    kind: ClassVar[str] = "margins_beside_a_threshold_class"

    def bytes_needed(self, shape: RunShape) -> int:
        return 8 * TRAININGS * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return -suspicion_N[:, None] + example.generator.normal(0, 0.1, (shape.samples, TRAININGS))


MARGINS = Margins()


@dataclass(frozen=True)
class ThresholdClass(Recipe):
    name: ClassVar[str] = "threshold class"
    summary: ClassVar[str] = "two standard trainings with one more class, which some samples are given"
    leaves: ClassVar[tuple[Signal, ...]] = (MARGINS, ROLES)
    records: ClassVar[bool] = False

    @property
    def trainings(self) -> int:
        return TRAININGS

    def passes(self, epochs: int) -> float:
        return TRAININGS * min([epochs, *TrainingSettings().milestones])

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        given_N, classes = job.data.train.labels.cpu().numpy(), job.data.num_classes
        generator = numpy_generator(job.settings.seed, "threshold samples")
        roles_N2 = draw_roles(len(given_N), len(given_N) // (2 * (classes + 1)), generator)
        roles_N2[roles_N2 != 0] = REPLACED  # both halves of those drawn
        labels_N2 = np.where(roles_N2 == REPLACED, classes, given_N[:, None])
        epochs = min([job.settings.epochs, *job.settings.milestones])
        history, objectives = train_twice(job, labels_N2, epochs, MarginMeans, more_classes=1)
        return history, {ROLES: roles_N2, MARGINS: np.stack([seen.signals()[MARGINS] for seen in objectives], axis=1)}


class MarginMeans(Objective):
    """Cross-entropy that keeps the margins of the logits that produce each update."""

    def __init__(self, labels: "Tensor") -> None:
        self.labels, self.sums, self.epochs = labels, labels.new_zeros(len(labels)).double(), 1

    def loss(self, epoch: int, indices: "Tensor", logits: "Tensor") -> "Tensor":
        from torch.nn.functional import cross_entropy

        labels = self.labels[indices]
        if epoch == 2:  # what the first epoch gave is dropped, unless it is the only one
            self.sums[indices] = 0.0
        given = logits.detach().double().gather(1, labels[:, None])[:, 0]
        other = logits.detach().double().scatter(1, labels[:, None], float("-inf")).amax(1)
        self.sums[indices] += given - other
        self.epochs = max(1, epoch - 1)
        return cross_entropy(logits, labels)

    def signals(self) -> Mapping[Signal, np.ndarray]:
        return {MARGINS: (self.sums / self.epochs).cpu().numpy()}


@dataclass(frozen=True)
class AUMThreshold(Detector):
    name: ClassVar[str] = "AUM, threshold"
    summary: ClassVar[str] = "how far the AUM is below that of samples of a class that does not exist"

    percentile: float = 99.0

    @property
    def training(self) -> Recipe:
        return ThresholdClass()

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (MARGINS, ROLES)

    def epochs_used_in(self, training: TrainingSettings) -> int:
        return min([training.epochs, *training.milestones])

    def score(self, record: RunRecord) -> np.ndarray:
        margins_N2, roles_N2 = record[MARGINS], record[ROLES]
        below_N2 = np.zeros(margins_N2.shape)
        for number in range(TRAININGS):
            of_threshold = margins_N2[roles_N2[:, number] == REPLACED, number]
            threshold = np.percentile(of_threshold, self.percentile) if len(of_threshold) else 0.0
            below_N2[:, number] = threshold - margins_N2[:, number]  # a low AUM is noisy
        return mean_where_judged(below_N2, roles_N2)

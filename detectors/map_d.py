"""MAP-D, metadata archaeology (Siddiqui et al., ICLR 2023, arXiv 2209.10015); high is noisy.

Probes are samples whose nature is known: some that are given a wrong label on purpose, others as they are. A sample's
score is the share of wrong ones among the k = 20 probes whose losses over the epochs are nearest to its own. 250 probes
of each kind, as the authors', or an eighth of a small data set. Their other suites need scores computed elsewhere
(typical, atypical) or other images (corrupted). Probes as they are may have wrong labels of their own, and a wrong
label may happen to be right, so the share is no probability. Two trainings with other probes, so that every sample is
judged in one in which it is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmark.record import Example, RunRecord, RunShape, Signal
from benchmark.record.history import History
from benchmark.seeds import numpy_generator
from benchmark.training import Job, Objective, Recipe
from detectors.base import Detector
from detectors.relabelled import REPLACED, ROLES, TRAININGS, draw_roles, mean_where_judged, train_twice

if TYPE_CHECKING:
    from torch import Tensor

    from benchmark.record.recorders import Predict


@dataclass(frozen=True)
class LossCurves(Signal):
    """The loss of each training's label at the end of each epoch: samples × 2 × epochs."""

    kind: ClassVar[str] = "loss_curves_beside_probes"

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * TRAININGS * shape.epochs * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        is_wrong_N2 = ROLES.example(shape, suspicion_N, example) == REPLACED
        reached_N2 = np.where(is_wrong_N2, 1 + example.generator.random(is_wrong_N2.shape), suspicion_N[:, None])
        return np.repeat(reached_N2[:, :, None], shape.epochs, axis=2).astype(np.float32)


LOSS_CURVES = LossCurves()


@dataclass(frozen=True)
class Probes(Recipe):
    name: ClassVar[str] = "probes"
    summary: ClassVar[str] = "two standard trainings, in each of which some labels are made wrong on purpose"
    leaves: ClassVar[tuple[Signal, ...]] = (LOSS_CURVES, ROLES)
    records: ClassVar[bool] = False

    of_each_kind: int = 250

    @property
    def trainings(self) -> int:
        return TRAININGS

    def passes(self, epochs: int) -> float:
        return TRAININGS * epochs

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        given_N, classes = job.data.train.labels.cpu().numpy(), job.data.num_classes
        generator = numpy_generator(job.settings.seed, "probes")
        roles_N2 = draw_roles(len(given_N), min(self.of_each_kind, len(given_N) // 8), generator)
        wrong_N2 = (given_N[:, None] + generator.integers(1, classes, roles_N2.shape)) % classes
        labels_N2 = np.where(roles_N2 == REPLACED, wrong_N2, given_N[:, None])
        history, objectives = train_twice(job, labels_N2, job.settings.epochs, KeptLosses)
        curves_N2E = np.stack([seen.signals()[LOSS_CURVES] for seen in objectives], axis=1)
        return history, {ROLES: roles_N2, LOSS_CURVES: curves_N2E}


class KeptLosses(Objective):
    """Cross-entropy that keeps each sample's loss at the end of each epoch."""

    def __init__(self, labels: "Tensor") -> None:
        self.labels, self.of_epochs = labels, list["Tensor"]()

    def loss(self, epoch: int, indices: "Tensor", logits: "Tensor") -> "Tensor":
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, self.labels[indices])

    def end_epoch(self, epoch: int, predict: "Predict") -> None:
        from torch.nn.functional import cross_entropy

        self.of_epochs.append(cross_entropy(predict(), self.labels, reduction="none"))

    def signals(self) -> Mapping[Signal, np.ndarray]:
        return {LOSS_CURVES: np.stack([losses.cpu().numpy() for losses in self.of_epochs], axis=1)}


@dataclass(frozen=True)
class MAPD(Detector):
    name: ClassVar[str] = "MAP-D"
    summary: ClassVar[str] = "share of probes made wrong on purpose among those with the most similar loss curves"

    k: int = 20

    @property
    def training(self) -> Recipe:
        return Probes()

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (LOSS_CURVES, ROLES)

    def score(self, record: RunRecord) -> np.ndarray:
        from sklearn.neighbors import NearestNeighbors

        curves_N2E, roles_N2 = record[LOSS_CURVES], record[ROLES]
        shares_N2 = np.zeros(roles_N2.shape)
        for number in range(TRAININGS):
            probes, curves_NE = np.flatnonzero(roles_N2[:, number]), curves_N2E[:, number].astype(np.float64)
            if len(probes):
                nearest = NearestNeighbors(n_neighbors=min(self.k, len(probes))).fit(curves_NE[probes])
                found_NK = nearest.kneighbors(curves_NE, return_distance=False)
                shares_N2[:, number] = (roles_N2[probes, number][found_NK] == REPLACED).mean(axis=1)
        return mean_where_judged(shares_N2, roles_N2)

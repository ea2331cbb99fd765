"""LiNC: a trust value per sample, learned while the classifier trains; low trust after the warm-up is suspicious.

Paper: "LiNC: Lightweight Noise Correction via Per-Sample Trust and Gaussian Mixture Modeling" (Moturu et al.).
Target q = (1 − α)·stopgrad(p) + α·e_ỹ; loss −Σ q log p; α ← α − η(∂L/∂α + λα) with ∂L/∂α = −log p_ỹ − H(p).
Score: 1 − α after w epochs. Then a mixture over α finds the noisy cluster, which is trained softly on p for s epochs
and relabelled once; plain cross-entropy on the corrected labels follows.
Where the paper leaves a choice: the trust gradient is that of the batch mean (`trust_gradient`), trust is kept in
[0, 1], and the hard correction follows the text (the noisy cluster, once), not the algorithm box, in which every target
is the current prediction in every step (`hard_correction`). The score is trust after the warm-up, as in the text's
figure and table, or as the box returns it, after the soft correction (`read_after`). Trust may start to move later
than the network (`trust_from_epoch`), since the first steps of a new head say little about labels.
Where the paper warns of itself: a mixture has a lowest component even if every label is right. A recipe that may
abstain corrects nothing unless held-out classifiers find evidence of label noise (benchmark/counting); too few
samples to tell are no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from benchmark.counting.error_count import VERSION, count_errors
from benchmark.identity import later
from benchmark.record import Example, RunRecord, RunShape, Signal
from benchmark.training import Embed, Objective, Recipe, TrainingSettings
from detectors.base import Detector
from detectors.linc_loss import LiNCLoss, LiNCParameters

if TYPE_CHECKING:
    from torch import Tensor

    from benchmark.data.labelled import TrainingData
    from benchmark.record.recorders import Predict


@dataclass(frozen=True)
class Trust(Signal):
    """α at the end of each epoch: epochs × samples."""

    kind: ClassVar[str] = "trust"
    per_epoch: ClassVar[bool] = True

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * shape.epochs * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return np.float32(0.9) ** np.arange(1, shape.epochs + 1)[:, None] * (1 - 0.5 * suspicion_N.astype(np.float32))


@dataclass(frozen=True)
class TrustMixture(Signal):
    """Mean, standard deviation and weight of each component, from the lowest mean; all zero if none was fitted."""

    kind: ClassVar[str] = "trust_mixture"

    def bytes_needed(self, shape: RunShape) -> int:
        return 0  # a few numbers


@dataclass(frozen=True)
class Component(Signal):
    """Each sample's component, 0 being the noisy one; −1 if no mixture was fitted, as where LiNC abstains."""

    kind: ClassVar[str] = "component"

    def bytes_needed(self, shape: RunShape) -> int:
        return shape.samples


@dataclass(frozen=True)
class CorrectedLabels(Signal):
    """The labels of the hard-correction phase; those of its beginning if they follow the prediction in every step."""

    kind: ClassVar[str] = "corrected_labels"


TRUST, TRUST_MIXTURE, COMPONENT, CORRECTED_LABELS = Trust(), TrustMixture(), Component(), CorrectedLabels()


@dataclass(frozen=True)
class LiNCRecipe(LiNCParameters, Recipe):
    name: ClassVar[str] = "linc"
    version: ClassVar[int] = 2  # the mixture of more than 16,384 samples is fitted to as many
    summary: ClassVar[str] = "trust-weighted warm-up, soft correction of the noisy cluster, then its relabelling"
    leaves: ClassVar[tuple[Signal, ...]] = (TRUST, TRUST_MIXTURE, COMPONENT, CORRECTED_LABELS)

    may_abstain: bool = field(default=False, metadata=later(VERSION))

    @property
    def min_epochs(self) -> int:
        return self.soft_end + 1

    def objective(self, data: TrainingData, settings: TrainingSettings, embed: Embed) -> Objective:
        abstains = self.may_abstain and not _is_evidence(data, embed)
        return LiNCObjective(self, data.train.labels, settings, abstains)


def _is_evidence(data: TrainingData, embed: Embed) -> bool:
    from benchmark.statistics.held_out import held_out_probabilities

    labels = data.train.labels.cpu().numpy()
    probabilities_NK = held_out_probabilities(embed(), labels, data.num_classes, groups_N=data.groups)
    return count_errors(probabilities_NK, labels).is_evidence


class LiNCObjective(Objective):
    def __init__(
        self, recipe: LiNCRecipe, given_labels: Tensor, settings: TrainingSettings, abstains: bool = False
    ) -> None:
        self.criterion, self.abstains = LiNCLoss(given_labels, settings.batch_size, recipe, not abstains), abstains
        self.trust_history_EN = np.empty((settings.epochs, len(given_labels)), dtype=np.float32)

    def loss(self, epoch: int, indices: Tensor, logits: Tensor) -> Tensor:
        self.criterion.epoch = epoch
        return self.criterion(logits, indices)

    def end_epoch(self, epoch: int, predict: Predict) -> None:
        self.criterion.end_epoch(predict.classes)
        self.trust_history_EN[epoch - 1] = self.criterion.trust.cpu().numpy()

    def signals(self) -> Mapping[Signal, np.ndarray]:
        return {
            TRUST: self.trust_history_EN,
            TRUST_MIXTURE: self.criterion.mixture.cpu().numpy(),
            COMPONENT: self.criterion.component.cpu().numpy().astype(np.int8),
            CORRECTED_LABELS: self.criterion.labels.cpu().numpy(),
        }


@dataclass(frozen=True)
class LiNC(Detector):
    name: ClassVar[str] = "LiNC"
    summary: ClassVar[str] = "one minus the trust learned during the warm-up"

    recipe: LiNCRecipe = field(default=LiNCRecipe())
    read_after: Literal["warm-up", "soft correction"] = field(default="warm-up", metadata=later(1))

    @property
    def training(self) -> Recipe:
        return self.recipe

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (TRUST,)

    def score(self, record: RunRecord) -> np.ndarray:
        return 1.0 - record[TRUST][self.epochs_used(record.epochs) - 1].astype(np.float64)  # low trust is noisy

    def epochs_used(self, epochs: int) -> int:
        return min(self.recipe.warm_up if self.read_after == "warm-up" else self.recipe.soft_end, epochs)

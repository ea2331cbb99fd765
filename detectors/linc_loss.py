"""LiNC as a loss for any training loop; the suite's own loop uses it too (detectors/linc.py has paper and formulas).

    criterion = LiNCLoss(given_labels, batch_size=128)
    for epoch in range(epochs):
        for indices, images in loader:  # indices: the places of the samples in given_labels
            criterion(model(images), indices).backward()
            ...
        criterion.end_epoch(lambda: logits_of_all_samples_in_order(model))
    criterion.suspicion  # per sample; higher is more suspicious

Trust moves when the loss is computed with gradients enabled, so call it once for each training batch. `batch_size` is
that of an optimiser step: over all devices, and over all parts if gradients are accumulated. In distributed training
each process moves the trust of its own samples, and `end_epoch` gathers it; a sample that several processes had gets
the mean. Save `state_dict()` beside the model's at the end of an epoch to resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from benchmark.errors import LincBenchError
from benchmark.identity import later
from benchmark.record.logger import processes
from benchmark.statistics.mixture import fit_mixture

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LiNCParameters:
    warm_up: int = 5
    soft_epochs: int = 5
    trust_rate: float = 1.0
    trust_decay: float = 0.1
    components: int = 3
    trust_gradient: Literal["mean", "sample"] = "mean"
    soft_correction: Literal["stopgrad", "entropy"] = "stopgrad"
    hard_correction: Literal["once", "every step", "every step, all"] = field(default="once", metadata=later(1))
    trust_from_epoch: int = field(default=1, metadata=later(1))

    @property
    def soft_end(self) -> int:
        """The last epoch in which trust moves; the hard correction follows."""
        return self.warm_up + self.soft_epochs


PAPER = LiNCParameters()
KEPT = ("given_labels", "labels", "trust", "component", "suspicion")  # on the device of the logits


def soft_target(trust: Tensor, probabilities: Tensor, labels: Tensor) -> Tensor:
    """q = (1 − α)·p + α·e_ỹ."""
    given = probabilities.new_zeros(probabilities.shape).scatter_(1, labels[:, None], 1.0)
    return probabilities.lerp(given, trust[:, None].to(probabilities))


def trust_gradient(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """∂L/∂α = −log p_ỹ − H(p), per sample."""
    return -log_probabilities.gather(1, labels[:, None])[:, 0] + (log_probabilities.exp() * log_probabilities).sum(1)


def _rank() -> int:
    from torch import distributed

    return distributed.get_rank() if processes() > 1 else 0


class LiNCLoss:
    def __init__(
        self,
        given_labels: Tensor,
        batch_size: int,
        parameters: LiNCParameters = PAPER,
        corrects: bool = True,  # if not, trust is learned, and the labels stay as they are
    ) -> None:
        import torch

        self.parameters, self.corrects, self.epoch, self.batch_size = parameters, corrects, 1, batch_size
        self.given_labels = torch.as_tensor(given_labels).long()
        if self.given_labels.ndim != 1 or (self.given_labels < 0).any():
            raise LincBenchError("given_labels are not a whole number from 0 for each sample.")
        self.labels = self.given_labels.clone()  # corrected at the end of the soft phase
        self.trust = self.given_labels.new_ones(len(given_labels)).float()
        self.component = self.given_labels.new_full((len(given_labels),), -1)  # 0 is the noisy one; −1: no mixture
        self.mixture = torch.zeros(parameters.components, 3, dtype=torch.float64)  # means, deviations, weights
        self.suspicion = 1 - self.trust  # after the warm-up
        self._moved = self.is_noisy.clone()  # in this epoch
        # The mean over the configured batch size, so that a short last batch does not take a bigger step.
        self._gradient_scale = 1 / batch_size if parameters.trust_gradient == "mean" else 1.0

    @property
    def is_noisy(self) -> Tensor:
        return self.component == 0

    def __call__(self, logits: Tensor, indices: Tensor) -> Tensor:
        """The mean loss of a batch; gradients reach the logits only."""
        import torch

        if self.trust.device != logits.device:
            self._move_to(logits.device)
        indices = indices.to(logits.device)
        logits = logits if logits.dtype == torch.float64 else logits.float()  # mixed precision
        if self.epoch > self.parameters.soft_end:
            return self._hard_loss(logits, indices)
        labels, is_noisy = self.given_labels[indices], self.component[indices] == 0
        log_p = logits.log_softmax(1)
        self_trained = log_p.exp() if self.parameters.soft_correction == "entropy" else log_p.detach().exp()
        # The noisy cluster's target is p itself, which is q at α = 0; no sample is noisy before the warm-up ends.
        target = soft_target(self.trust[indices], log_p.detach().exp(), labels)
        target = self_trained.where(is_noisy[:, None], target)
        if self.epoch >= self.parameters.trust_from_epoch and torch.is_grad_enabled():
            self._move_trust(indices, log_p.detach(), labels, is_noisy)
        return -(target * log_p).sum(1).mean()

    def end_epoch(self, predict: Callable[[], Tensor] | None = None) -> None:
        """To be called after every epoch. `predict` gives the logits, or the classes, of all samples in order.

        It is called once, at the end of the soft phase; put the network into evaluation mode there. In distributed
        training every process calls `end_epoch`, and the prediction of the first one counts.
        """
        is_due = self.epoch == self.parameters.soft_end and self.corrects
        if is_due and predict is None and _rank() == 0:
            raise LincBenchError(
                f"LiNC corrects labels at the end of epoch {self.epoch}. Give `end_epoch` a function that returns the "
                "network's logits of all samples in order."
            )
        self._gather_trust()
        if self.epoch <= self.parameters.warm_up:
            self.suspicion = 1 - self.trust
        if self.epoch == self.parameters.warm_up and self.corrects:
            self._find_noisy()
        if is_due and self.is_noisy.any():
            self._correct(predict)
        self.epoch += 1

    @property
    def settings(self) -> dict[str, Any]:
        return asdict(self.parameters) | {"batch_size": self.batch_size, "corrects": self.corrects}

    def state_dict(self) -> dict[str, Any]:
        about = {"epoch": self.epoch, "settings": self.settings}
        return about | {name: getattr(self, name).clone() for name in (*KEPT, "mixture")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues with the epoch after that at whose end the state was saved."""
        if state["given_labels"].tolist() != self.given_labels.tolist():
            raise LincBenchError("This state of LiNC belongs to other labels. Use those with which it was saved.")
        if state["settings"] != self.settings:
            raise LincBenchError(f"This state of LiNC was saved with {state['settings']}; here are {self.settings}.")
        for name in KEPT:
            setattr(self, name, state[name].clone().to(self.given_labels.device))
        self.mixture, self.epoch = state["mixture"].clone(), int(state["epoch"])
        self._moved.zero_()

    def _hard_loss(self, logits: Tensor, indices: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        if self.parameters.hard_correction == "once" or not self.is_noisy.any():
            return cross_entropy(logits, self.labels[indices])
        return cross_entropy(logits, self._corrected(logits.detach().argmax(1), indices))

    def _correct(self, predict: Callable[[], Tensor] | None) -> None:
        from torch import distributed

        if predict is not None and _rank() == 0:
            predicted = predict().to(self.labels.device)
            self.labels = self._corrected(predicted.argmax(1) if predicted.ndim == 2 else predicted)
        if processes() > 1:  # networks may differ between processes, in what normalises batches
            distributed.broadcast(self.labels, 0)

    def _corrected(self, predicted: Tensor, indices: Tensor | slice = slice(None)) -> Tensor:
        """The predictions, for the noisy cluster or for all; the given labels for the others."""
        if self.parameters.hard_correction == "every step, all":
            return predicted
        return predicted.where(self.component[indices] == 0, self.given_labels[indices])

    def _move_trust(self, indices: Tensor, log_p: Tensor, labels: Tensor, is_noisy: Tensor) -> None:
        gradient = trust_gradient(log_p, labels).masked_fill(is_noisy, 0.0) * self._gradient_scale
        trust = self.trust[indices]
        moved = trust - self.parameters.trust_rate * (gradient + self.parameters.trust_decay * trust)
        moved = moved.clamp(0.0, 1.0).where(gradient.isfinite(), trust)  # half precision may overflow
        self.trust[indices] = moved.to(self.trust)
        self._moved[indices] = True

    def _find_noisy(self) -> None:
        import numpy as np

        mixture = fit_mixture(self.trust.cpu().numpy(), self.parameters.components)
        if mixture is not None:
            parts = np.stack([mixture.means, mixture.standard_deviations, mixture.weights], axis=1)
            self.mixture, self.component = self.mixture.new_tensor(parts), self.component.new_tensor(mixture.assignment)

    def _gather_trust(self) -> None:
        """Of all processes, if there are several: the mean of those that moved a sample."""
        from torch import distributed

        if processes() > 1:
            sums, counts = self.trust * self._moved, self._moved.to(self.trust)
            for tensor in (sums, counts):
                distributed.all_reduce(tensor)
            self.trust = (sums / counts).where(counts > 0, self.trust)
        self._moved.zero_()

    def _move_to(self, device: Any) -> None:
        for name in (*KEPT, "_moved"):
            setattr(self, name, getattr(self, name).to(device))

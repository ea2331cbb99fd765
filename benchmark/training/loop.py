"""The training loop, the recipes that plug into it, and nothing else.

A recipe gives the loop an objective: a loss per batch and a word at the end of each epoch. Cross-entropy is the short
case below; LiNC is another objective in the same loop (detectors/linc.py).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.errors import LincBenchError
from benchmark.networks.backbones import SplitModel
from benchmark.record.history import END_OF_EPOCHS, EVALUATION, OBJECTIVE, PASS, STEPS, History, Stopwatch
from benchmark.record.recorders import Predict, Recorder, Signal, embedding_of
from benchmark.seeds import torch_generator
from benchmark.training.augmentation import flip_and_crop

Embed = Callable[[], np.ndarray]  # what the pretrained network says of the training samples: samples × dimensions


@dataclass(frozen=True)
class TrainingSettings:
    """The paper's section on the model and training, as values."""

    epochs: int = 70
    batch_size: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    milestones: tuple[int, ...] = (10, 20, 40, 60)
    decay: float = 0.7
    seed: int = 0
    threads: int = 1  # bytes depend on it, so it is a setting; parallelism is over runs
    device: str = "cpu"
    plain: bool = False  # the whole network runs in every step, instead of its tail on cached features
    augment: bool = False  # random flips and crops of the training images

    def __post_init__(self) -> None:
        if self.augment and not self.plain:
            raise LincBenchError("Augmentation changes the images in every step, so it needs the plain path.")


class Objective:
    """What is minimised. May keep state per sample; leaves signals behind."""

    def loss(self, epoch: int, indices: Tensor, logits: Tensor) -> Tensor:
        raise NotImplementedError

    def end_epoch(self, epoch: int, predict: Predict) -> None:
        pass

    def signals(self) -> Mapping[Signal, np.ndarray]:
        return {}


@dataclass(frozen=True)
class Job:
    """What a recipe has to work with."""

    data: TrainingData
    settings: TrainingSettings
    new_model: Callable[[int], SplitModel]  # pretrained, with a head that depends on the given seed alone
    recorders: Callable[[SplitModel], Sequence[Recorder]]
    after_epoch: Callable[[int], None] = lambda epoch: None


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained on the given labels: the standard way, or a method's own."""

    name: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when numbers may change
    summary: ClassVar[str] = ""
    leaves: ClassVar[tuple[Signal, ...]] = ()  # signals of its own, recorded whoever needs them
    records: ClassVar[bool] = True  # recorders may listen

    def passes(self, epochs: int) -> float:
        """How often it trains on the whole training set in a run of so many epochs; for estimates of time."""
        return epochs

    @property
    def min_epochs(self) -> int:
        """With fewer, it does not do all it is meant to."""
        return 1

    def objective(self, data: TrainingData, settings: TrainingSettings, embed: Embed) -> Objective:
        raise NotImplementedError

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        """One network in the loop below; a method that needs another loop (k folds, two networks) overrides this."""
        model = job.new_model(job.settings.seed)
        objective = self.objective(job.data, job.settings, lambda: embedding_of(model, job.data.train))
        history = train(model, job.data, objective, job.recorders(model), job.settings, job.after_epoch)
        return history, objective.signals()


@dataclass(frozen=True)
class CrossEntropy(Objective):
    labels: Tensor

    def loss(self, epoch: int, indices: Tensor, logits: Tensor) -> Tensor:
        return F.cross_entropy(logits, self.labels[indices])


@dataclass(frozen=True)
class Standard(Recipe):
    name: ClassVar[str] = "standard"
    summary: ClassVar[str] = "plain cross-entropy on the given labels"

    def objective(self, data: TrainingData, settings: TrainingSettings, embed: Embed) -> Objective:
        return CrossEntropy(data.train.labels)


def train(
    model: SplitModel,
    data: TrainingData,
    objective: Objective,
    recorders: Sequence[Recorder],
    settings: TrainingSettings,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> History:
    tail, parameters = model.tail, model.trained().values()
    optimiser = torch.optim.Adam(parameters, settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, list(settings.milestones), settings.decay)
    order, draws = torch_generator(settings.seed, "order"), torch_generator(settings.seed, "augmentation")
    change = (lambda images: flip_and_crop(images, draws)) if settings.augment else None
    labels, history = data.train.labels, History(stopwatch=Stopwatch(settings.device, settings.threads))
    on_read = history.stopwatch.add_background
    for recorder in recorders:
        with history.clock(recorder.charge):
            recorder.at_start()
    for epoch in range(1, settings.epochs + 1):
        loss_sum, correct = 0.0, 0
        shuffled = torch.randperm(len(labels), generator=order).to(labels.device)
        with history.clock(STEPS):
            for indices, features in data.train.batches(shuffled, settings.batch_size, change, on_read):
                outputs = tail(features)
                optimiser.zero_grad()
                with history.clock(OBJECTIVE):  # with its gradient: then a method's own time is known exactly
                    seen = outputs.detach().requires_grad_()
                    loss = objective.loss(epoch, indices, seen)
                    loss.backward()  # type: ignore[no-untyped-call]
                outputs.backward(seen.grad)  # type: ignore[no-untyped-call]
                optimiser.step()
                logits = outputs.detach()
                for recorder in recorders:
                    with history.clock(recorder.charge):
                        recorder.after_batch(epoch, indices, logits)
                loss_sum += loss.item() * len(indices)
                correct += int((logits.argmax(1) == labels[indices]).sum())
        schedule.step()
        if not math.isfinite(loss_sum):
            raise LincBenchError(
                f"The loss is {loss_sum} in epoch {epoch}: training diverged. Try a smaller learning rate."
            )
        row = {"epoch": epoch, "train_loss": loss_sum / len(labels), "train_accuracy": correct / len(labels)}
        predict_train = Predict(lambda: _timed(history, logits_by_batch(tail, data.train, on_read)))
        with history.clock(END_OF_EPOCHS):
            objective.end_epoch(epoch, predict_train)
        for recorder in recorders:
            with history.clock(recorder.charge):
                recorder.after_epoch(epoch, predict_train)
        history.rows.append(row | _evaluate(tail, data, history))
        after_epoch(epoch)
    for recorder in recorders:
        with history.clock(recorder.charge):
            recorder.at_end()
    return history


def predict(tail: Callable[[Tensor], Tensor], split: LabelledFeatures) -> Tensor:
    """Logits of a whole split, in order."""
    return torch.cat(list(logits_by_batch(tail, split)))


def logits_by_batch(
    tail: Callable[[Tensor], Tensor],
    split: LabelledFeatures,
    on_read: Callable[[float], None] = lambda seconds: None,
    batch_size: int = 256,
) -> Iterator[Tensor]:
    for batch in split.in_order(batch_size, on_read):
        with torch.no_grad():
            logits = tail(batch)
        yield logits


def _timed(history: History, logits: Iterator[Tensor]) -> Iterator[Tensor]:
    with history.clock(history.charge_caller(PASS)):
        yield from logits


def _evaluate(tail: Callable[[Tensor], Tensor], data: TrainingData, history: History) -> dict[str, float]:
    """Accuracy and loss on validation (as noisy as the training labels) and the clean test split, if there are any."""
    row = {}
    with history.clock(EVALUATION):
        for name, split in (("validation", data.validation), ("test", data.test)):
            if not len(split.labels):
                continue
            logits = predict(tail, split)
            predicted = logits.argmax(1)
            row[f"{name}_loss"] = F.cross_entropy(logits, split.labels).item()
            row[f"{name}_accuracy"] = int((predicted == split.labels).sum()) / len(split.labels)
            history.predictions[name].append(predicted.cpu().numpy().astype(np.int16))
    return row

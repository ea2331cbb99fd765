"""The training loop, with its evaluation and its augmentation."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.errors import LincBenchError
from benchmark.networks.split_model import SplitModel
from benchmark.record.history import END_OF_EPOCHS, EVALUATION, OBJECTIVE, PASS, STEPS, History, Stopwatch
from benchmark.record.recorders import Predict, Recorder
from benchmark.seeds import torch_generator
from benchmark.training.objective import Objective, TrainingSettings


@contextmanager
def tiny_numbers_as_zero() -> Iterator[None]:
    """Weights that no sample uses any more decay below 1e-38, where multiplying them takes up to 100 times as long."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@tiny_numbers_as_zero()
def train(
    model: SplitModel,
    data: TrainingData,
    objective: Objective,
    recorders: Sequence[Recorder],
    settings: TrainingSettings,
    after_epoch: Callable[[int], None] = lambda epoch: None,
) -> History:
    tail, optimiser = model.tail, _optimiser(list(model.trained().values()), settings)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, list(settings.milestones), settings.decay)
    draws = torch_generator(settings.seed, "augmentation")
    change = (lambda images: flip_and_crop(images, draws)) if settings.augment else None
    labels, orders = data.train.labels, sample_orders(settings.seed, len(data.train.labels))
    history = History(stopwatch=Stopwatch(settings.device, settings.threads))
    for recorder in _clocked(recorders, history):
        recorder.at_start()
    for epoch in range(1, settings.epochs + 1):
        loss_sum, correct, shuffled = 0.0, 0, next(orders).to(labels.device)
        with history.clock(STEPS):
            for indices, features in data.train.batches(shuffled, settings.batch_size, change):
                outputs = tail(features)
                optimiser.zero_grad()
                with history.clock(OBJECTIVE):  # with its gradient: then a method's own time is known exactly
                    seen = outputs.detach().requires_grad_()
                    loss = objective.loss(epoch, indices, seen)
                    loss.backward()  # type: ignore[no-untyped-call]
                outputs.backward(seen.grad)  # type: ignore[no-untyped-call]
                optimiser.step()
                logits = outputs.detach()
                for recorder in _clocked(recorders, history, epoch):
                    recorder.after_batch(epoch, indices, logits)
                loss_sum += loss.item() * len(indices)
                correct += int((logits.argmax(1) == labels[indices]).sum())
        schedule.step()
        if not math.isfinite(loss_sum):
            raise LincBenchError(f"Training diverged: loss {loss_sum} in epoch {epoch}. Lower the learning rate.")
        row = {"epoch": epoch, "train_loss": loss_sum / len(labels), "train_accuracy": correct / len(labels)}
        predict_train = Predict(lambda: _timed_pass(logits_by_batch(tail, data.train), history))
        with history.clock(END_OF_EPOCHS):
            objective.end_epoch(epoch, predict_train)
        for recorder in _clocked(recorders, history, epoch):
            recorder.after_epoch(epoch, predict_train)
        history.rows.append(row | _evaluate(tail, data, history))
        after_epoch(epoch)
    for recorder in _clocked(recorders, history):
        recorder.at_end()
    return history


def sample_orders(seed: int, samples: int) -> Iterator[Tensor]:
    """The order of samples in each epoch."""
    generator = torch_generator(seed, "order")
    while True:
        yield torch.randperm(samples, generator=generator)


def _optimiser(parameters: list[nn.Parameter], settings: TrainingSettings) -> torch.optim.Adam:
    """Adam; on request the learning rate rises in the first steps, and long gradients are cut."""
    optimiser = torch.optim.Adam(parameters, settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    steps = count(1)

    def before_step(*_: object) -> None:
        if settings.clip_norm:
            nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
        if (step := next(steps)) <= settings.warm_up_steps:
            for group in optimiser.param_groups:
                group["lr"] = settings.learning_rate * step / settings.warm_up_steps

    optimiser.register_step_pre_hook(before_step)
    return optimiser


def _clocked(recorders: Sequence[Recorder], history: History, epoch: int | None = None) -> Iterator[Recorder]:
    """Each recorder in turn, while its clock runs."""
    for recorder in recorders:
        with history.clock(recorder.charge(epoch)):
            yield recorder


def _timed_pass(logits: Iterator[Tensor], history: History) -> Iterator[Tensor]:
    with history.clock(history.charge_caller(PASS)):
        yield from logits


def predict(tail: Callable[[Tensor], Tensor], split: LabelledFeatures) -> Tensor:
    """Logits of a whole split, in order."""
    return torch.cat(list(logits_by_batch(tail, split)))


@torch.no_grad()
def logits_by_batch(tail: Callable[[Tensor], Tensor], split: LabelledFeatures) -> Iterator[Tensor]:
    yield from map(tail, split.in_order(256))


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


def flip_and_crop(images_BCHW: Tensor, generator: torch.Generator) -> Tensor:
    """Each image mirrored or not, and moved by up to an eighth of its size; what moves in is its own mirrored edge.

    Off by default, since the paper does not say what it used.
    """
    count, size = len(images_BCHW), images_BCHW.shape[-1]
    reach = size // 8
    is_mirrored = torch.rand(count, generator=generator) < 0.5
    offsets = torch.randint(0, 2 * reach + 1, (count, 2), generator=generator).tolist()
    mirrored = torch.where(is_mirrored[:, None, None, None].to(images_BCHW.device), images_BCHW.flip(-1), images_BCHW)
    padded = F.pad(mirrored, (reach,) * 4, mode="reflect")
    return torch.stack([image[:, y : y + size, x : x + size] for image, (y, x) in zip(padded, offsets, strict=True)])

"""Confident learning's label quality (Northcutt et al., JAIR 2021, arXiv 1911.00068).

From held-out probabilities p, each sample predicted by a network that did not train on it: self-confidence p(ỹ), or the
normalised margin (p(ỹ) − max over the others + 1) / 2. Low quality is noisy, so the score is 1 − quality.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from benchmark.record import Example, RunRecord, RunShape, Signal
from benchmark.record.history import Charge, History
from benchmark.seeds import numpy_generator
from benchmark.training import CrossEntropy, Job, Recipe
from detectors.base import Detector
from detectors.logits import best_other_class, given_class, softmax


@dataclass(frozen=True)
class HeldOutLogits(Signal):
    """Logits of each sample from the network that did not train on it: samples × classes."""

    kind: ClassVar[str] = "held_out_logits"

    def bytes_needed(self, shape: RunShape) -> int:
        return 4 * shape.samples * shape.classes

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return example.logits[-1]


HELD_OUT_LOGITS = HeldOutLogits()


@dataclass(frozen=True)
class CrossValidation(Recipe):
    """Standard training in each of k folds, stratified by given label as in cleanlab; duplicates share a fold.

    Its accuracies are the first fold's.
    """

    name: ClassVar[str] = "cross-validation"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "standard training k times, each on all but one fold"
    leaves: ClassVar[tuple[Signal, ...]] = (HELD_OUT_LOGITS,)
    records: ClassVar[bool] = False

    folds: int = 5
    epochs: int = 10  # fewer than a full run: held-out predictions are best before labels are memorised

    @property
    def trainings(self) -> int:
        return self.folds

    def passes(self, epochs: int) -> float:
        return (self.folds - 1) * min(self.epochs, epochs)

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        from benchmark.statistics.held_out import stratified_folds
        from benchmark.training.loop import predict, train

        settings = replace(job.settings, epochs=min(self.epochs, job.settings.epochs))
        given_N = job.data.train.labels.cpu().numpy()
        logits_NK = np.empty((len(given_N), job.data.num_classes), dtype=np.float32)
        generator = numpy_generator(settings.seed, "folds")
        fold_N = stratified_folds(given_N, job.data.groups, self.folds, generator)
        numbers = np.unique(fold_N).tolist()
        histories: list[History] = []
        for done, number in enumerate(numbers, 1):
            kept, held_out = np.flatnonzero(fold_N != number), np.flatnonzero(fold_N == number)
            model, fold = job.new_model(settings.seed), job.data.with_training_rows(kept)
            histories.append(train(model, fold, CrossEntropy(fold.train.labels), (), settings))
            with histories[-1].clock(Charge("held-out predictions", (HELD_OUT_LOGITS.key,))):
                logits_NK[held_out] = predict(model.tail, job.data.train.subset(held_out)).cpu().numpy()
            job.after_epoch(job.settings.epochs * done // len(numbers))
        history, *others = histories
        for other in others:
            history.add_time_of(other)
        return history, {HELD_OUT_LOGITS: logits_NK}


@dataclass(frozen=True)
class ConfidentLearning(Detector):
    name: ClassVar[str] = "confident learning"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "one minus the held-out probability of the given label"

    quality: Literal["self-confidence", "normalised margin"] = "self-confidence"
    recipe: CrossValidation = field(default=CrossValidation())

    @property
    def training(self) -> Recipe:
        return self.recipe

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (HELD_OUT_LOGITS,)

    def epochs_used(self, epochs: int) -> int:
        return min(self.recipe.epochs, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        return record.map_samples(self._score, HELD_OUT_LOGITS)

    def _score(self, labels_B: np.ndarray, logits_BK: np.ndarray) -> np.ndarray:
        probability_1BK = softmax(logits_BK)[None]
        given_B = given_class(probability_1BK, labels_B)[0]
        if self.quality == "self-confidence":
            return 1.0 - given_B
        return 1.0 - (given_B - best_other_class(probability_1BK, labels_B)[0] + 1.0) / 2.0

"""Recipes: how a classifier is trained on the given labels, the standard way or a method's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmark.record import Signal
from benchmark.training.objective import CrossEntropy, Objective, TrainingSettings

if TYPE_CHECKING:
    from benchmark.data.labelled import TrainingData
    from benchmark.networks.split_model import SplitModel
    from benchmark.record.history import History
    from benchmark.record.recorders import Recorder

Embed = Callable[[], np.ndarray]  # the pretrained network's embedding of the training samples: samples × dimensions


@dataclass(frozen=True)
class Job:
    """What a recipe has to work with."""

    data: TrainingData
    settings: TrainingSettings
    new_model: Callable[..., SplitModel]  # of a seed, on which the head depends alone, and of `more_classes`
    recorders: Callable[[SplitModel], Sequence[Recorder]]
    after_epoch: Callable[[int], None] = lambda epoch: None


@dataclass(frozen=True)
class Recipe:
    """A recipe gives the loop an objective: a loss per batch, and a call at the end of each epoch."""

    name: ClassVar[str]
    version: ClassVar[int] = 1  # raise it when numbers may change
    summary: ClassVar[str] = ""
    leaves: ClassVar[tuple[Signal, ...]] = ()  # signals of its own, always kept
    records: ClassVar[bool] = True  # recorders may listen

    def passes(self, epochs: int) -> float:
        """How often it trains on the whole training set in a run of so many epochs; for estimates of time."""
        return epochs

    @property
    def trainings(self) -> int:
        """How many networks it trains in a run."""
        return 1

    @property
    def min_epochs(self) -> int:
        """With fewer, it does not do all it is meant to."""
        return 1

    def objective(self, data: TrainingData, settings: TrainingSettings, embed: Embed) -> Objective:
        raise NotImplementedError

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        """One network in the loop; a method that needs another loop (k folds, two networks) overrides this."""
        from benchmark.record.recorders import embedding_of
        from benchmark.training.loop import train

        model = job.new_model(job.settings.seed)
        objective = self.objective(job.data, job.settings, lambda: embedding_of(model, job.data.train))
        history = train(model, job.data, objective, job.recorders(model), job.settings, job.after_epoch)
        return history, objective.signals()


@dataclass(frozen=True)
class Standard(Recipe):
    name: ClassVar[str] = "standard"
    summary: ClassVar[str] = "plain cross-entropy on the given labels"

    def objective(self, data: TrainingData, settings: TrainingSettings, embed: Embed) -> Objective:
        return CrossEntropy(data.train.labels)

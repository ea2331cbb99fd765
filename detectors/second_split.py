"""Second-split forgetting (Maini et al., NeurIPS 2022, arXiv 2210.15031).

A network is trained on one half of the samples and then on the other: after how many epochs of the second half is a
sample of the first forgotten, which is classified otherwise than labelled from then on? Wrong labels go first. One that
was never learned gets 0, one that is never forgotten one more than there are epochs; few is noisy, so the score is
minus the number (the authors tell a sample that was never learned from none that is forgotten at once). The halves then
change places. Each part has 30 epochs and a schedule of its own, as the authors' for CIFAR-10; they average over five
seeds, as rows of several trainings do here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmark.record import Example, RunRecord, RunShape, Signal
from benchmark.record.history import END_OF_EPOCHS, History
from benchmark.seeds import numpy_generator
from benchmark.training import CrossEntropy, Job, Recipe, TrainingSettings
from detectors.base import Detector

if TYPE_CHECKING:
    from benchmark.record.recorders import Predict


@dataclass(frozen=True)
class AsLabelled(Signal):
    """Whether a sample is classified as labelled: after its own half, and after each epoch of the other one."""

    kind: ClassVar[str] = "as_labelled_in_the_second_split"

    def bytes_needed(self, shape: RunShape) -> int:
        return (1 + shape.epochs) * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        last_N = np.where(suspicion_N > 0.5, 1, shape.epochs)
        return np.arange(1 + shape.epochs) < last_N[:, None] + example.generator.integers(0, 2, (shape.samples, 1))


AS_LABELLED = AsLabelled()


@dataclass(frozen=True)
class SecondSplit(Recipe):
    """Its accuracies are those of the first half alone."""

    name: ClassVar[str] = "second split"
    summary: ClassVar[str] = "standard training on half of the samples and then on the others, both ways round"
    leaves: ClassVar[tuple[Signal, ...]] = (AS_LABELLED,)
    records: ClassVar[bool] = False

    epochs: int = 30  # on each half, unless the run has fewer

    @property
    def trainings(self) -> int:
        return 2

    def passes(self, epochs: int) -> float:
        return 2 * min(self.epochs, epochs)

    def run(self, job: Job) -> tuple[History, Mapping[Signal, np.ndarray]]:
        settings = replace(job.settings, epochs=min(self.epochs, job.settings.epochs))
        samples = len(job.data.train.labels)
        is_first_N = numpy_generator(settings.seed, "splits").permutation(samples) < samples / 2
        kept_NE, histories = np.zeros((samples, 1 + settings.epochs), dtype=bool), list[History]()
        for number, is_own_N in enumerate((is_first_N, ~is_first_N), 1):
            histories += self._both_splits(job, settings, is_own_N, kept_NE)
            job.after_epoch(job.settings.epochs * number // 2)
        history, *others = histories
        for other in others:
            history.add_time_of(other)
        return history, {AS_LABELLED: kept_NE}

    def _both_splits(
        self, job: Job, settings: TrainingSettings, is_own_N: np.ndarray, kept_NE: np.ndarray
    ) -> list[History]:
        from benchmark.training.loop import predict, train

        own, other = np.flatnonzero(is_own_N), np.flatnonzero(~is_own_N)
        model, first, second = job.new_model(settings.seed), *map(job.data.with_training_rows, (own, other))

        def look(epoch: int) -> None:
            kept_NE[own, epoch] = (predict(model.tail, first.train).argmax(1) == first.train.labels).cpu().numpy()

        learning = train(model, first, CrossEntropy(first.train.labels), (), settings)
        with learning.clock(END_OF_EPOCHS):
            look(0)
        return [learning, train(model, second, Followed(second.train.labels, look), (), settings)]


@dataclass(frozen=True)
class Followed(CrossEntropy):
    look: Callable[[int], None]  # at the end of each epoch, while its clock runs

    def end_epoch(self, epoch: int, predict: "Predict") -> None:
        self.look(epoch)


@dataclass(frozen=True)
class SecondSplitForgetting(Detector):
    name: ClassVar[str] = "second-split forgetting"
    summary: ClassVar[str] = "how soon a sample is forgotten while other samples are trained on"

    recipe: SecondSplit = field(default=SecondSplit())

    @property
    def training(self) -> Recipe:
        return self.recipe

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (AS_LABELLED,)

    def epochs_used(self, epochs: int) -> int:
        return min(self.recipe.epochs, epochs)

    def score(self, record: RunRecord) -> np.ndarray:
        kept_NE = record[AS_LABELLED]
        until_N = kept_NE.shape[1] - kept_NE[:, ::-1].argmax(axis=1)  # the last epoch in which it was kept, from 1
        return -np.where(kept_NE.any(axis=1), until_N, 0).astype(np.float64)  # soon is noisy

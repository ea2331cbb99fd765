"""Two trainings in which some labels are replaced on purpose: what AUM's threshold class and MAP-D's probes share.

Each training has its own samples with a role, so that every sample is judged in one in which it has none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmark.record import Example, RunShape, Signal
from benchmark.record.history import History
from benchmark.training import Job, Objective

if TYPE_CHECKING:
    from torch import Tensor

TRAININGS = 2
REPLACED, AS_GIVEN = 1, 2  # roles; 0 is none


@dataclass(frozen=True)
class Roles(Signal):
    """Of each sample in each training: its label was replaced, it is a probe as it is given, or neither."""

    kind: ClassVar[str] = "roles"

    def bytes_needed(self, shape: RunShape) -> int:
        return TRAININGS * shape.samples

    def example(self, shape: RunShape, suspicion_N: np.ndarray, example: Example) -> np.ndarray:
        return draw_roles(shape.samples, shape.samples // 8, np.random.default_rng(0))


ROLES = Roles()


def draw_roles(samples: int, of_each: int, generator: np.random.Generator) -> np.ndarray:
    """In each training `of_each` samples are replaced, and as many are probes: no sample has two roles."""
    order, roles_N2 = generator.permutation(samples), np.zeros((samples, TRAININGS), dtype=np.int8)
    for number in range(TRAININGS):
        picked = order[2 * number * of_each : 2 * (number + 1) * of_each]
        roles_N2[picked[:of_each], number], roles_N2[picked[of_each:], number] = REPLACED, AS_GIVEN
    return roles_N2


def train_twice(
    job: Job, labels_N2: np.ndarray, epochs: int, objective: Callable[["Tensor"], Objective], more_classes: int = 0
) -> tuple[History, list[Objective]]:
    """On these labels, from the same initial weights; the history is that of the first training."""
    from torch import from_numpy

    from benchmark.training.loop import train

    settings, histories, objectives = replace(job.settings, epochs=epochs), list[History](), list[Objective]()
    for number in range(TRAININGS):
        labels = from_numpy(labels_N2[:, number].copy()).to(job.data.train.labels)
        data = replace(job.data, train=replace(job.data.train, labels=labels))
        objectives.append(objective(labels))
        histories.append(train(job.new_model(settings.seed, more_classes), data, objectives[-1], (), settings))
        job.after_epoch(job.settings.epochs * (number + 1) // TRAININGS)
    histories[0].add_time_of(histories[1])
    return histories[0], objectives


def mean_where_judged(values_N2: np.ndarray, roles_N2: np.ndarray) -> np.ndarray:
    """Over the trainings in which a sample has no role."""
    is_judged = roles_N2 == 0
    return np.where(is_judged, values_N2, 0.0).sum(axis=1) / is_judged.sum(axis=1)

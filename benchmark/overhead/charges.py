"""Who pays for the seconds of a measured run.

What a detector adds is read from the clocks of the training loop, each of which is paid by a signal or by the
objective. It is expressed as a share of standard training, relative to the same run's training time: the network's own
steps are the same whatever is recorded beside them, so a machine that slows down slows both. Baseline runs without any
detector alternate with the measured runs: they say how long cross-entropy itself takes, and whether the network's steps
are slower with a detector than without.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import quantile_test

from benchmark.errors import LincBenchError
from benchmark.overhead.benches import Measured
from benchmark.record import Signal
from benchmark.record.history import EVALUATION, OBJECTIVE, STEPS, THE_OBJECTIVE, TRAINING_LOOP, Charge
from benchmark.runs import signals_for
from benchmark.training import Recipe, Standard
from detectors import Detector

FAST_EPOCHS = 0.1  # this share of epochs is faster than a "fast" epoch


@dataclass(frozen=True)
class Variant:
    """A kind of run that is measured."""

    recipe: Recipe
    signals: tuple[Signal, ...]


BASELINE = Variant(Standard(), ())


def variant_for(detectors: Sequence[Detector]) -> Variant:
    """The run that these detectors, all of one recipe, can share."""
    recipe = detectors[0].training
    return Variant(recipe, signals_for(recipe, detectors))


def variants_for(detectors: Sequence[Detector]) -> dict[Variant, list[Detector]]:
    """The run of each detector alone, with all detectors that read the same run."""
    variants: dict[Variant, list[Detector]] = {}
    for detector in dict.fromkeys(detectors):
        variants.setdefault(variant_for([detector]), []).append(detector)
    return variants


@dataclass(frozen=True)
class Observation:
    """One run between two baseline runs; everything in seconds unless it says otherwise."""

    base: float  # standard training, relative to this run's own steps
    objective: float  # what the recipe adds to cross-entropy
    signals: Mapping[str, float]  # cost by signal key
    slower: float  # by how much the network's steps took longer than in the baseline runs, by a fast epoch of each
    outside: float  # beyond all clocks and charged to nobody, minus the same of the baseline runs
    laps: Mapping[Charge, Sequence[float]]
    baseline_objective: float  # cross-entropy in standard training, at the speed of this run
    scoring: Mapping[Detector, float]
    recorded: Mapping[str, int]  # bytes by signal key
    samples: int  # number of training samples

    def recording(self, variant: Variant) -> float:
        """What the signals of a variant cost in this run."""
        return sum(self.signals.get(signal.key, 0.0) for signal in variant.signals)


def observe(
    variant: Variant, run: Measured, baselines: tuple[Measured, Measured], scoring: Mapping[Detector, float]
) -> Observation:
    def of_baselines(seconds: Callable[[Measured], float]) -> float:
        return sum(map(seconds, baselines)) / len(baselines)

    def steady_steps(run: Measured) -> float:
        """As if every epoch were a fast one: other programs on the machine can only slow an epoch down."""
        laps = run.laps[STEPS]
        return float(np.quantile(laps, FAST_EPOCHS)) * len(laps)

    epochs = baselines[0].record.epochs
    of_standard = epochs / variant.recipe.passes(epochs)  # share of this run's steps
    own_steps, baseline_steps = steady_steps(run) * of_standard, of_baselines(steady_steps)
    baseline_objective = of_baselines(lambda baseline: baseline.seconds[OBJECTIVE]) * own_steps / baseline_steps
    baseline_outside = of_baselines(lambda baseline: baseline.outside_clocks)
    return Observation(
        base=run.seconds[STEPS] * of_standard + baseline_objective,
        objective=objective_cost(variant.recipe, run, epochs, baseline_objective),
        signals=signal_costs(variant, run),
        slower=own_steps - baseline_steps,
        outside=run.outside_clocks - baseline_outside if variant.recipe.records else 0.0,
        laps=run.laps,
        baseline_objective=baseline_objective,
        scoring=scoring,
        recorded=run.recorded,
        samples=len(run.record.given_labels),
    )


def objective_cost(recipe: Recipe, run: Measured, epochs: int, baseline_objective: float) -> float:
    """What a recipe adds to the standard training of so many epochs, with its additional passes over the data."""
    if not recipe.records or recipe == Standard():
        return 0.0
    more_steps = run.seconds[STEPS] * (1 - epochs / recipe.passes(epochs))
    own = sum(seconds for charge, seconds in run.seconds.items() if charge.payers == THE_OBJECTIVE)
    return more_steps + own - baseline_objective


def signal_costs(variant: Variant, run: Measured) -> dict[str, float]:
    """Seconds by signal key; signals of one recorder share its cost."""
    known = [signal.key for signal in variant.signals]
    if not variant.recipe.records:  # a training of its own, beside the one whose classifier is used
        own = run.outside_clocks + sum(run.seconds.values()) - run.seconds[EVALUATION]
        return {key: own / len(known) for key in known}
    costs: defaultdict[str, float] = defaultdict(float)
    for (_, payers), seconds in run.seconds.items():
        if payers in (TRAINING_LOOP, THE_OBJECTIVE):
            continue
        if unknown := set(payers) - set(known):
            raise LincBenchError(
                f"The time of a recorder is charged to {min(unknown)!r}, which is no signal of its run "
                f"({', '.join(sorted(known))}). Set the recorder's `name` to its signal's `key`."
            )
        for key in payers:
            costs[key] += seconds / len(payers)
    return dict(costs)


class Interval(NamedTuple):
    """A median with its 95 % confidence interval, which holds for any distribution."""

    median: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    interval = quantile_test(values, p=0.5).confidence_interval(0.95)
    low, high = (bound if np.isfinite(bound) else end(values) for bound, end in zip(interval, (min, max), strict=True))
    return Interval(float(np.median(values)), float(low), float(high))


def share_of_training(runs: Sequence[Observation], seconds: Callable[[Observation], float]) -> Interval:
    """Seconds as a share of standard training, relative to the same run's training time."""
    return median_interval([seconds(run) / run.base for run in runs])

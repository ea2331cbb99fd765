"""Who pays for the seconds of a measured run, and which share of standard training that is.

What a detector adds is read from the clocks of the training loop, each of which is paid by a signal or by the
objective. It is expressed as a share of standard training, relative to the same run's training time: the network's own
steps are the same whatever is recorded beside them, so a machine that slows down slows both. Baseline runs without any
detector alternate with the measured runs: they say how long cross-entropy itself takes, and whether the network's steps
are slower with a detector than without.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
from scipy.stats import quantile_test

from benchmark.errors import LincBenchError
from benchmark.record import RunRecord, Signal
from benchmark.record.history import (
    END_OF_EPOCHS,
    EVALUATION,
    OBJECTIVE,
    PASS_OF_OBJECTIVE,
    STEPS,
    THE_OBJECTIVE,
    TRAINING_LOOP,
    Charge,
)
from benchmark.reference import RECIPE
from benchmark.runs import LineUp, signals_for
from benchmark.training import Recipe, Standard
from detectors import Detector
from detectors.linc import LiNCRecipe

FAST_EPOCHS = 0.1  # this share of epochs is faster than a "fast" epoch
Row = dict[str, object]


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


def variants_for(detectors: Iterable[Detector]) -> dict[Variant, list[Detector]]:
    """The run of each detector alone, with all detectors that read the same run."""
    variants: dict[Variant, list[Detector]] = {}
    for detector in dict.fromkeys(detectors):
        variants.setdefault(variant_for([detector]), []).append(detector)
    return variants


def of_same_recipe(detector: Detector, detectors: Iterable[Detector]) -> list[Detector]:
    return [other for other in detectors if other.training == detector.training]


@dataclass(frozen=True)
class Measured:
    """One run: the seconds of each clock run, the seconds that no clock measured, and the record."""

    laps: Mapping[Charge, Sequence[float]]
    outside_clocks: float
    record: RunRecord

    @property
    def seconds(self) -> dict[Charge, float]:
        return {charge: sum(laps) for charge, laps in self.laps.items()}

    @property
    def recorded(self) -> dict[str, int]:
        """Bytes on disk by signal key."""
        return {key: array.nbytes for key, array in self.record.arrays.items()}

    @property
    def steady_steps(self) -> float:
        """As if every epoch were a fast one: other programs on the machine can only slow an epoch down."""
        laps = self.laps[STEPS]
        return float(np.quantile(laps, FAST_EPOCHS)) * len(laps)


@dataclass(frozen=True)
class Observation:
    """One run between two baseline runs; everything in seconds unless it says otherwise."""

    base: float  # standard training, relative to this run's own steps
    objective: float  # what the recipe adds to cross-entropy
    signals: Mapping[str, float]  # cost by signal key
    scoring: Mapping[Detector, float]
    slower: float  # by how much the network's steps took longer than in the baseline runs, by a fast epoch of each
    outside: float  # beyond all clocks and charged to nobody, minus the same of the baseline runs
    laps: Mapping[Charge, Sequence[float]]
    baseline_objective: float  # cross-entropy in standard training, at the speed of this run
    recorded: Mapping[str, int]  # bytes by signal key
    samples: int  # number of training samples

    def recording(self, detector: Detector) -> float:
        """What the signals that a detector reads cost in this run."""
        return sum(self.signals.get(signal.key, 0.0) for signal in variant_for([detector]).signals)

    def added(self, detector: Detector) -> float:
        return self.objective + self.recording(detector) + self.scoring[detector]


Observed = Mapping[Variant, Sequence[Observation]]


def observe(
    variant: Variant, run: Measured, baselines: tuple[Measured, Measured], scoring: Mapping[Detector, float]
) -> Observation:
    recipe, epochs = variant.recipe, baselines[0].record.epochs
    of_standard = epochs / recipe.passes(epochs)  # share of this run's steps
    of_baselines = [(other.steady_steps, other.seconds[OBJECTIVE], other.outside_clocks) for other in baselines]
    baseline_steps, cross_entropy, baseline_outside = np.mean(of_baselines, axis=0).tolist()
    own_steps = run.steady_steps * of_standard
    baseline_objective = cross_entropy * own_steps / baseline_steps
    return Observation(
        base=run.seconds[STEPS] * of_standard + baseline_objective,
        objective=objective_cost(recipe, run, epochs, baseline_objective),
        signals=signal_costs(variant, run),
        scoring=scoring,
        slower=own_steps - baseline_steps,
        outside=run.outside_clocks - baseline_outside if recipe.records else 0.0,
        laps=run.laps,
        baseline_objective=baseline_objective,
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


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 95 % confidence interval, which holds for any distribution."""
    low, high = quantile_test(values, p=0.5).confidence_interval(0.95)  # NaN if there are too few values
    return float(np.median(values)), float(np.fmax(low, min(values))), float(np.fmin(high, max(values)))


def interval_columns(name: str, values: Sequence[float]) -> Row:
    columns = (name, f"{name}_low", f"{name}_high")
    return {column: four_digits(value) for column, value in zip(columns, median_interval(values), strict=True)}


def four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def shares_of(observed: Observed, line_up: LineUp, detector: Detector) -> Row:
    """Shares of standard training: alone, and in the line-up, where detectors that read the same signal share it."""
    variant, same_recipe = variant_for([detector]), of_same_recipe(detector, line_up.detectors)
    all_read = [signal for other in same_recipe for signal in variant_for([other]).signals]

    def recording_shared(run: Observation) -> float:
        return sum(run.signals.get(signal.key, 0.0) / all_read.count(signal) for signal in variant.signals)

    def total_shared(own: Observation, shared: Observation) -> float:
        in_training = shared.objective / len(same_recipe) + recording_shared(shared)
        return own.scoring[detector] / own.base + in_training / shared.base

    rounds = [
        {
            "objective": own.objective / own.base,
            "recording": own.recording(detector) / own.base,
            "scoring": own.scoring[detector] / own.base,
            "alone": own.added(detector) / own.base,
            "recording_shared": recording_shared(shared) / shared.base,
            "shared": total_shared(own, shared),
            "slower_steps": own.slower / own.base,
            "outside_clocks": own.outside / own.base,
        }
        for own, shared in zip(observed[variant], observed[variant_for(same_recipe)], strict=True)
    ]
    row: Row = {}
    for name, shares in pd.DataFrame(rounds).items():
        row |= interval_columns(str(name), shares.tolist())
    return row


def terms_of(observed: Observed, epochs: int) -> list[Row]:
    """Rows of overhead_terms.csv, if the reference recipe was measured: the three operations by which the paper counts
    its cost, and what keeping trust for the record costs; each read from the epochs in which it happens."""
    variant = next((variant for variant in observed if variant.recipe.name == RECIPE), None)
    if variant is None:
        return []
    runs, recipe = observed[variant], cast(LiNCRecipe, variant.recipe)
    relabelled = recipe.warm_up + recipe.soft_epochs
    active = min(epochs, relabelled)

    def terms(run: Observation) -> dict[str, float]:
        laps_EB = np.reshape(run.laps[OBJECTIVE], (epochs, -1))
        # Cross-entropy of an epoch: as the same run has it after the soft phase, or else as the baseline runs have it.
        usual = np.median(laps_EB[active:], axis=0).sum() if active < epochs else run.baseline_objective / epochs
        forming = float(laps_EB[:active].sum() - active * usual)
        at_end = pd.Series(run.laps[END_OF_EPOCHS], index=range(1, epochs + 1))
        return {
            "forming q and moving trust, per step while it is done": forming * epochs / active,
            "forming q and moving trust, whole run": forming,
            "mixture": at_end.get(recipe.warm_up, 0.0),
            "relabelling pass": sum(run.laps.get(PASS_OF_OBJECTIVE, ())) + at_end.get(relabelled, 0.0),
            "keeping trust for the record": at_end.drop([recipe.warm_up, relabelled], errors="ignore").sum(),
        }

    shares = pd.DataFrame(map(terms, runs)).div([run.base for run in runs], axis=0)
    return [
        {"measured_samples": runs[0].samples, "term": term} | interval_columns("share", values.tolist())
        for term, values in shares.items()
    ]

"""What each detector costs as a share of standard training, from measured runs."""

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from benchmark.overhead.charges import (
    BASELINE,
    Interval,
    Observation,
    Variant,
    median_interval,
    share_of_training,
    variant_for,
)
from benchmark.overhead.measure import Memory
from benchmark.record.history import END_OF_EPOCHS, OBJECTIVE, PASS_OF_OBJECTIVE
from benchmark.reference import RECIPE
from benchmark.runs import LineUp
from detectors import Detector
from detectors.linc import LiNCRecipe

Row = dict[str, object]
Observed = Mapping[Variant, Sequence[Observation]]


def shared_run(line_up: LineUp, detector: Detector) -> Variant:
    """The run that a detector reads when the whole line-up is measured."""
    return variant_for([other for other in line_up.detectors if other.training == detector.training])


def row_of(training_samples: int, observed: Observed, line_up: LineUp, detector: Detector) -> Row:
    """A row of overhead.csv; what grows with the data is scaled to the whole training set."""
    runs = observed[variant_for([detector])]
    scale = training_samples / runs[0].samples
    return {
        "line_up": line_up.name,
        "detector": detector.label,
        "measured_samples": runs[0].samples,
        "standard_seconds": _four_digits(scale * float(np.median([run.base for run in runs]))),
        "disk_bytes": round(scale * sum(runs[0].recorded.values())),
    } | shares_of(observed, line_up, detector)


def shares_of(observed: Observed, line_up: LineUp, detector: Detector) -> Row:
    """Shares of standard training: alone, and in the line-up, where detectors that read the same signal share it."""
    variant = variant_for([detector])
    same_recipe = [other for other in line_up.detectors if other.training == detector.training]
    readers = {
        signal: sum(signal in variant_for([other]).signals for other in same_recipe) for signal in variant.signals
    }

    def recording_shared(run: Observation) -> float:
        return sum(run.signals.get(signal.key, 0.0) / count for signal, count in readers.items())

    def total_shared(own: Observation, shared: Observation) -> float:
        in_training = shared.objective / len(same_recipe) + recording_shared(shared)
        return own.scoring[detector] / own.base + in_training / shared.base

    def total(run: Observation) -> float:
        return run.objective + sum(run.signals.values()) + run.scoring[detector]

    runs, shared_runs = observed[variant], observed[shared_run(line_up, detector)]
    return {
        **_columns("objective", share_of_training(runs, lambda run: run.objective)),
        **_columns("recording", share_of_training(runs, lambda run: sum(run.signals.values()))),
        **_columns("scoring", share_of_training(runs, lambda run: run.scoring[detector])),
        **_columns("alone", share_of_training(runs, total)),
        **_columns("recording_shared", share_of_training(shared_runs, recording_shared)),
        **_columns("shared", median_interval(list(map(total_shared, runs, shared_runs)))),
        **_columns("slower_steps", share_of_training(runs, lambda run: run.slower)),
        **_columns("outside_clocks", share_of_training(runs, lambda run: run.outside)),
    }


def terms_of(observed: Observed, epochs: int) -> list[Row]:
    """Rows of overhead_terms.csv, if the reference recipe was measured: the three operations by which the paper counts
    its cost, and what keeping trust for the record costs; each read from the epochs in which it happens."""
    variant = next((variant for variant in observed if variant.recipe.name == RECIPE), None)
    if variant is None:
        return []
    runs, recipe = observed[variant], cast(LiNCRecipe, variant.recipe)
    relabelled = recipe.warm_up + recipe.soft_epochs
    active = min(epochs, relabelled)

    def forming(run: Observation) -> float:
        """Beyond cross-entropy, as the same run has it after the soft phase, or else as the baseline runs have it."""
        laps_EB = np.reshape(run.laps[OBJECTIVE], (epochs, -1))
        usual = np.median(laps_EB[active:], axis=0).sum() if active < epochs else run.baseline_objective / epochs
        return float(laps_EB[:active].sum() - active * usual)

    def at_end_of(run: Observation, *which: int) -> float:
        return sum(run.laps[END_OF_EPOCHS][epoch - 1] for epoch in which if epoch <= epochs)

    def keeping(run: Observation) -> float:
        return at_end_of(run, *(epoch for epoch in range(1, epochs + 1) if epoch not in (recipe.warm_up, relabelled)))

    terms = {
        "forming q and moving trust, per step while it is done": lambda run: forming(run) * epochs / active,
        "forming q and moving trust, whole run": forming,
        "mixture": lambda run: at_end_of(run, recipe.warm_up),
        "relabelling pass": lambda run: sum(run.laps.get(PASS_OF_OBJECTIVE, ())) + at_end_of(run, relabelled),
        "keeping trust for the record": keeping,
    }
    return [
        {"measured_samples": runs[0].samples, "term": name} | _columns("share", share_of_training(runs, seconds))
        for name, seconds in terms.items()
    ]


def memory_columns(memory: Mapping[Variant, Memory], detector: Detector) -> Row:
    own, baseline = memory[variant_for([detector])], memory[BASELINE]
    added, of_baselines = own.added(), [peaks.run for peaks in (*baseline.peaks, *baseline.baselines)]
    return {
        "memory_bytes": int(np.median(added)),
        "memory_bytes_low": min(added),
        "memory_bytes_high": max(added),
        "memory_floor_bytes": max(of_baselines) - min(of_baselines),
        "scoring_memory_bytes": own.scoring(detector),
        "device_bytes": int(np.median(own.added(lambda peaks: peaks.device))),
    }


def _columns(name: str, interval: Interval) -> Row:
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(_four_digits, interval), strict=True))


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")

"""What listening to training takes, signal by signal, and the mixture on a million numbers. Run with `make bench`."""

from functools import partial

import numpy as np
import pytest

from benchmark.overhead.charges import Observation, Variant, median_interval, variant_for
from benchmark.overhead.measure import measure_seconds
from benchmark.overhead.setups import synthetic
from benchmark.statistics import mixture
from benchmark.statistics.mixture import fit_mixture
from benchmark.training import TrainingSettings
from detectors import DETECTORS, detector_named
from tests.speed.conftest import Note

MILLION = 1_000_000
SAMPLES = 2048
ALONE = {
    "summaries of training logits": "AUM",
    "summaries of evaluation logits": "mean loss",
    "evaluation logits of one epoch": "CORES²",
    "embedding and logits of one epoch": "relation graph",
    "gradient norms of the classifier": "TracIn",
    "embedding": "nearest neighbours",
    "gradient norms": "GraNd",
    "input gradients": "VoG",
    "trust": "LiNC",
    "folds": "confident learning",
    "a threshold class": "AUM, threshold",
    "two splits": "second-split forgetting",
    "probes": "MAP-D",
}


@pytest.fixture(scope="module")
def observed() -> dict[Variant, list[Observation]]:
    setup = partial(synthetic, SAMPLES, 8, TrainingSettings(epochs=11))
    variants: dict[Variant, tuple] = {variant_for([detector_named(name)]): () for name in ALONE.values()}
    return measure_seconds(setup, variants, rounds=6)


@pytest.mark.parametrize("what", ALONE)
def test_recording(observed: dict[Variant, list[Observation]], what: str, compare: Note) -> None:
    """Of a very small network, so that what is added is a large share; the ratio is to its standard training."""
    runs = observed[variant_for([detector_named(ALONE[what])])]
    added, low, high = median_interval([(run.objective + sum(run.signals.values())) / run.base for run in runs])
    print(f"\n{what}: {100 * added:.1f} % of standard training [{100 * low:.1f}, {100 * high:.1f}]")
    network = f"test_vit, {SAMPLES:,} samples"
    base = float(np.median([run.base for run in runs]))
    compare(f"recording, {what}", network, added * base, added, "standard training")


def trust_like(kind: str) -> np.ndarray:
    generator = np.random.default_rng(0)
    if kind == "skewed":
        noisy = (generator.random(MILLION) < 0.2) * generator.gamma(2, 0.02, MILLION)
        return (0.6 - 0.1 * generator.gamma(0.5, 0.3, MILLION) - noisy).astype(np.float32)
    component = generator.choice(3, size=MILLION, p=[0.15, 0.15, 0.7])
    means, deviations = np.array([0.50, 0.56, 0.59]), np.array([0.02, 0.02, 0.004])
    return generator.normal(means[component], deviations[component]).clip(0, 1).astype(np.float32)


@pytest.mark.parametrize("kind", ["three components", "skewed"])
def test_the_mixture_of_a_million_values(benchmark, kind: str, compare: Note, monkeypatch) -> None:
    values = trust_like(kind)
    fit_mixture(values, 3)
    quick = benchmark.pedantic(fit_mixture, args=(values, 3), rounds=3)
    seconds = benchmark.stats.stats.min
    monkeypatch.setattr(mixture, "FITTED", MILLION)
    full = fit_mixture(values, 3)
    alike = (quick.assignment == full.assignment).mean()
    print(f"\n{kind}: {seconds:.2f} s; {100 * alike:.3f} % assigned as by scikit-learn's fit to all of them")
    assert alike >= 0.999
    compare("mixture of a million values", kind, seconds)


def test_every_recorded_signal_is_measured() -> None:
    kinds = {signal.kind for detector in DETECTORS for signal in detector.needs}
    measured = {signal.kind for name in ALONE.values() for signal in detector_named(name).needs}
    assert measured == kinds

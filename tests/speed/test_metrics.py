"""Metrics with intervals for a hundred runs and detectors on a hundred thousand samples. Run with `make bench`."""

import resource

import numpy as np

from benchmark.statistics.bootstrap import bootstrap_auroc
from benchmark.statistics.metrics import detection_metrics
from tests.speed.conftest import Note

SAMPLES, DETECTORS, DRAWS = 100_000, 10, 1000


def test_metrics_and_a_thousand_draws_for_ten_detectors(benchmark, compare: Note) -> None:
    """A tenth of a hundred pairs; ten runs take ten times as long, on one core."""
    generator = np.random.default_rng(0)
    is_mislabelled = generator.random(SAMPLES) < 0.2
    scores = generator.normal(size=(DETECTORS, SAMPLES)) + is_mislabelled
    scores[0] = scores[0].round()

    def judge() -> None:
        for of_detector in scores:
            detection_metrics(is_mislabelled, of_detector)
        bootstrap_auroc(is_mislabelled, scores, DRAWS)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    benchmark.pedantic(judge, rounds=1)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"\npeak memory grew by {grown / 1024:.0f} MB")
    assert grown < 200 * 1024
    compare("metrics and intervals of ten detectors", f"{SAMPLES:,} samples", benchmark.stats.stats.min)

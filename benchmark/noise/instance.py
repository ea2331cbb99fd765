"""Noise that depends on parts of the image (Xia et al., NeurIPS 2020, arXiv 2006.07836).

A sample's chance of a wrong label is drawn from a normal distribution (standard deviation 0.1) truncated to [0, 1];
which wrong label follows from a random projection of its pixels, one projection per class: softmax(x·W_y) without y.
As in the authors' code the pixels are standardised and not scaled down, so one class gets nearly all of the chance.
Where ours differs: the authors centre the normal distribution on the rate, which after truncation is not its mean
(0.101 at a rate of 0.05); ours is centred so that its mean is the rate.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmark.noise.base import ChanceNoise, Samples, one_hot

SPREAD = 0.1  # of the chances, before truncation
CENTRES = (-3.0, 4.0)  # between which the mean passes from 0.003 to 0.997


@dataclass(frozen=True)
class Instance(ChanceNoise):
    name: ClassVar[str] = "instance"
    summary: ClassVar[str] = "to a class that a random projection of the image chooses; chances vary by sample"
    reaches: ClassVar[tuple[float, float]] = (0.01, 0.99)

    def chances(self, samples: Samples, rate: float, generator: np.random.Generator) -> np.ndarray:
        from scipy.special import softmax

        labels, classes, images = samples.labels, samples.num_classes, samples.small_images
        if not rate:
            return one_hot(labels, classes)
        mean, deviation = mean_and_deviation(images)
        chance_N = truncated_normal(rate).rvs(len(labels), random_state=generator)
        chances_NK = np.zeros((len(labels), classes))
        for label in range(classes):
            members = np.flatnonzero(labels == label)
            standardised = (images[members].reshape(len(members), -1) - mean) / deviation
            scores = standardised @ generator.standard_normal((standardised.shape[1], classes))
            scores[:, label] = -np.inf
            chances_NK[members] = chance_N[members, None] * softmax(scores, axis=1)
        return chances_NK + (1 - chance_N)[:, None] * one_hot(labels, classes)


def mean_and_deviation(images: np.ndarray) -> tuple[float, float]:
    """Of all 8-bit values, from how often each occurs."""
    counts = sum(np.bincount(image.reshape(-1), minlength=256) for image in images)
    mean = float(np.average(range(256), weights=counts))
    return mean, max(float(np.average((np.arange(256) - mean) ** 2, weights=counts)) ** 0.5, 1e-6)


def truncated_normal(mean: float):  # type: ignore[no-untyped-def]  # scipy's frozen distributions have no type
    """Normal with the usual spread, truncated to [0, 1], whose mean after that is the wanted one."""

    from scipy.optimize import brentq
    from scipy.stats import truncnorm

    def around(centre: float):  # type: ignore[no-untyped-def]
        return truncnorm(-centre / SPREAD, (1 - centre) / SPREAD, centre, SPREAD)

    return around(brentq(lambda centre: around(centre).mean() - mean, *CENTRES))

"""How many labels are wrong? An estimate with an interval, which may be that there is no evidence of any.

The surer held-out classifiers are of a sample, the more seldom they are mistaken, so the share d of samples whose given
label is another than theirs falls with sureness. What it falls to is the share of wrong labels, if labels went wrong
whatever the image shows. With u from 0 (surest) to 1, we fit to the surest six tenths of samples

    d(u) = share + (1 − share) · rise · u^bend

by maximum likelihood. Where d is level among the surest, the share is known well. Where it is still falling there (few
samples, classes that look alike), low shares fit as well as high ones, and the interval says so: nothing in the labels
tells a hard image from a wrong label. Where labels are wrong because images are hard, more are wrong than is counted.

The constants were chosen on one half of the training images of four MedMNIST data sets; how the interval does on the
other half, on whole files and on digits is in the tables of the audit's trials.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

VERSION = 2  # raise it when answers may change: LiNC may ask
SUREST = 0.6  # of samples: d(u) has this form no farther
FEWEST = 500  # samples; of fewer the interval was wrong too often
GROUPS = 60  # of samples of nearly the same sureness
LEAST_BEND, MOST_BEND = 0.5, 12.0  # less falls so steeply at its end that no share could be told
LIKELIHOOD = 0.98  # of the likelihood interval; since d(u) is only a model, this is what covers 95 % of the halves
LEAST_EVIDENCE = 0.01  # of labels: what the lower end of the interval has to exceed


@dataclass(frozen=True)
class ErrorCount:
    """Shares of wrong labels, of so many samples."""

    samples: int
    share: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there were samples enough to say anything."""
        return self.samples >= FEWEST

    @property
    def is_evidence(self) -> bool:
        return self.low > LEAST_EVIDENCE

    @property
    def sentence(self) -> str:
        def labels(share: float) -> str:
            return f"{round(share * self.samples):,}"

        of_all, up_to = f"of {self.samples:,} labels are wrong", f"{labels(self.low)} to {labels(self.high)}"
        if not self.is_known:
            return f"{self.samples:,} images are too few to tell how many labels are wrong; {FEWEST} are needed."
        if self.is_evidence:
            estimate = f"About {labels(self.share)} {of_all} ({self.share:.1%}; 95 % interval {up_to})"
            return f"{estimate}, if they are wrong whatever the image shows."
        if self.share > LEAST_EVIDENCE:
            guess = f"{up_to} of {self.samples:,}, at a guess {labels(self.share)}"
            return f"It cannot be told whether labels are wrong or images hard: wrong are {guess}."
        return f"No evidence of label noise above {LEAST_EVIDENCE:.0%}: at most about {labels(self.high)} {of_all}."


def count_errors(probabilities_NK: np.ndarray, given_labels_N: np.ndarray) -> ErrorCount:
    """From held-out probabilities."""
    samples = len(given_labels_N)
    if samples < FEWEST:
        return ErrorCount(samples, 0.0, 0.0, 1.0)
    surest = np.argsort(-probabilities_NK.max(axis=1), kind="stable")[: round(SUREST * samples)]
    differs = probabilities_NK[surest].argmax(axis=1) != given_labels_N[surest]
    fit = _Fit(differs)
    share = fit.best_share()
    return ErrorCount(samples, share, fit.end_of_interval(share, 0.0), fit.end_of_interval(share, 1.0))


class _Fit:
    """Of d(u) to groups of samples, the surest first."""

    def __init__(self, differs: np.ndarray) -> None:
        groups = np.array_split(differs, GROUPS)
        self.sizes = np.array([len(group) for group in groups])
        self.differing = np.array([group.sum() for group in groups])
        self.centres = (np.cumsum(self.sizes) - self.sizes / 2) / len(differs)

    def _cost(self, share: float, shape: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log-likelihood, and its gradient by rise and log bend."""
        rise, bend = shape[0], np.exp(shape[1])
        climbing = (1 - share) * self.centres**bend
        d = np.clip(share + rise * climbing, 1e-9, 1 - 1e-9)
        likelihood = self.differing @ np.log(d) + (self.sizes - self.differing) @ np.log1p(-d)
        by_d = self.differing / d - (self.sizes - self.differing) / (1 - d)
        by_bend = rise * climbing * np.log(self.centres) * bend
        return -likelihood, -np.array([by_d @ climbing, by_d @ by_bend])

    def least_cost(self, share: float) -> float:
        """With the rise and the bend that suit this share best."""
        from scipy.optimize import minimize

        bounds = [(0.0, 1.0), (np.log(LEAST_BEND), np.log(MOST_BEND))]
        starts = [(0.3, np.log(bend)) for bend in (0.8, 2.0, 6.0)]
        return min(minimize(partial(self._cost, share), at, jac=True, bounds=bounds).fun for at in starts)

    def best_share(self) -> float:
        """The cost has one valley: thirds of a range are left out until it is narrow."""
        low, high = 0.0, 1.0
        while high - low > 1e-4:
            one, other = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, other) if self.least_cost(one) <= self.least_cost(other) else (one, high)
        return min((low, (low + high) / 2, high), key=self.least_cost)

    def end_of_interval(self, best: float, end: float) -> float:
        """Where, on the way to `end`, a share is no longer likely."""
        from scipy.optimize import brentq
        from scipy.stats import chi2

        limit = self.least_cost(best) + chi2.ppf(LIKELIHOOD, df=1) / 2
        if best == end or self.least_cost(end) <= limit:
            return end
        return float(brentq(lambda share: self.least_cost(share) - limit, best, end, xtol=1e-5))

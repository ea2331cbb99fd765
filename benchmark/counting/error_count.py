"""How many labels are wrong at least, and how many if errors are spread evenly over easy and hard images?

The surer held-out classifiers are of a sample, the more seldom they are mistaken, so the share d of samples whose given
label is another than theirs falls with sureness. What it falls to is the share of wrong labels, if labels went wrong
whatever the image shows. With u from 0 (surest) to 1, we fit to the surest six tenths of samples

    d(u) = share + (1 − share) · rise · u^bend

by maximum likelihood. Where labels are wrong because images are hard, more are wrong than the share that fits best, and
nothing in labels and features bounds them from above: people's errors look like hard images. So there is no upper
bound, and the best share is called what it is, an estimate for errors that are spread evenly. The lower bound is the
least share that fits about as well. Where d is still falling among the surest (few samples, classes that look alike),
it is near zero.

The constants were chosen on one half of the training images of four MedMNIST data sets; how often the lower bound holds
on other data, also with labels that people got wrong, is in the tables of the audit's trials.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

VERSION = 2  # raise it when answers may change: LiNC may ask
SUREST = 0.6  # of samples: d(u) has this form no farther
FEWEST = 500  # samples; of fewer the interval was wrong too often
SMALL = 1000  # samples; of fewer the lower bound was too high in some trials (BreastMNIST)
GROUPS = 60  # of samples of nearly the same sureness
LEAST_BEND, MOST_BEND = 0.5, 12.0  # less falls so steeply at its end that no share could be told
LIKELIHOOD = 0.98  # of the likelihood interval; since d(u) is only a model, this is what covers 95 % of the halves
LEAST_EVIDENCE = 0.01  # of labels: what the lower bound has to exceed before LiNC corrects


@dataclass(frozen=True)
class ErrorCount:
    """Shares of wrong labels, of so many samples."""

    samples: int
    share: float  # an estimate, if errors are spread evenly over easy and hard images
    low: float  # at least so many, with 95 % confidence if d(u) has that form; on BreastMNIST it was too high at times
    provable: int = 0  # labels that must be wrong, since copies of an image have others

    @property
    def is_known(self) -> bool:
        """Whether there were samples enough for an estimate."""
        return self.samples >= FEWEST

    @property
    def is_evidence(self) -> bool:
        return self.low > LEAST_EVIDENCE

    @property
    def at_least(self) -> int:
        return max(self.provable, math.floor(self.low * self.samples))

    @property
    def sentence(self) -> str:
        of_all = f"of {self.samples:,} labels {'is' if self.at_least == 1 else 'are'} wrong"
        is_modelled = self.at_least > self.provable
        reason = "95 % confidence" if is_modelled else "copies of an image have different labels"
        least = f"At least {self.at_least:,} {of_all} ({reason})" if self.at_least else "No label is proved wrong"
        open_above = "no upper bound without a review"
        if not self.is_known:
            return f"{least}; {open_above}. {self.samples:,} images are too few for an estimate; {FEWEST} are needed."
        even = f"about {round(self.share * self.samples):,} if errors are spread evenly, possibly more"
        small = f" With fewer than {SMALL:,} images, this lower bound was too high in some of our trials."
        return f"{least}; {even}; {open_above}." + small * (is_modelled and self.samples < SMALL)


def count_errors(probabilities_NK: np.ndarray, given_labels_N: np.ndarray) -> ErrorCount:
    """From held-out probabilities."""
    samples = len(given_labels_N)
    if samples < FEWEST:
        return ErrorCount(samples, 0.0, 0.0)
    surest = np.argsort(-probabilities_NK.max(axis=1), kind="stable")[: round(SUREST * samples)]
    differs = probabilities_NK[surest].argmax(axis=1) != given_labels_N[surest]
    fit = _Fit(differs)
    share = fit.best_share()
    return ErrorCount(samples, share, fit.lower_bound(share))


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

    def lower_bound(self, best: float) -> float:
        """Where, on the way from the best share to none, a share is no longer likely."""
        from scipy.optimize import brentq
        from scipy.stats import chi2

        limit = self.least_cost(best) + chi2.ppf(LIKELIHOOD, df=1) / 2
        if best == 0 or self.least_cost(0.0) <= limit:
            return 0.0
        return float(brentq(lambda share: self.least_cost(share) - limit, best, 0.0, xtol=1e-5))

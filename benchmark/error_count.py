"""How many labels are wrong? An estimate with an interval, which may be that there is no evidence of any.

The surer held-out classifiers are of a sample, the more seldom they are mistaken, so the share d of samples whose given
label is another than theirs falls with sureness. What it falls to is the share of wrong labels, if labels went wrong
whatever the image shows. With u from 0 (surest) to 1, we fit to the surest six tenths of samples

    d(u) = share + rise · u^bend

by maximum likelihood. Where d is level among the surest, the share is known well. Where it is still falling there (few
samples, classes that look alike), low shares fit as well as high ones, and the interval says so: nothing in the labels
tells a hard image from a wrong label. Where labels are wrong because images are hard, more are wrong than is counted.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

SUREST = 0.6  # of samples: d(u) has this form no farther
FEWEST = 500  # samples; of fewer the interval was wrong too often
GROUPS = 60  # of samples of nearly the same sureness
SHARES = np.arange(0.0, 0.8, 0.0025)
RISES = np.linspace(0.0, 1.0, 41)
BENDS = np.geomspace(0.5, 12.0, 25)  # less than a half falls so steeply at its end that no share could be told
LIKELIHOOD = 0.98  # of the likelihood interval; since d(u) is a model only, this is what covers 95 % (audit trials)
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
        return self.high < 1.0

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
            return f"About {labels(self.share)} {of_all} ({self.share:.1%}; 95 % interval {up_to})."
        if self.share > LEAST_EVIDENCE:
            return f"It cannot be told whether labels are wrong or images hard: {up_to} {of_all}."
        return f"No evidence of label noise: at most about {labels(self.high)} {of_all}."


def count_errors(probabilities_NK: np.ndarray, given_labels_N: np.ndarray) -> ErrorCount:
    """From held-out probabilities."""
    samples = len(given_labels_N)
    if samples < FEWEST:
        return ErrorCount(samples, 0.0, 0.0, 1.0)
    surest = np.argsort(-probabilities_NK.max(axis=1), kind="stable")[: round(SUREST * samples)]
    differs = probabilities_NK[surest].argmax(axis=1) != given_labels_N[surest]
    likelihoods = _log_likelihoods(differs)
    likely = SHARES[2 * (likelihoods.max() - likelihoods) <= chi2.ppf(LIKELIHOOD, df=1)]
    return ErrorCount(samples, float(SHARES[likelihoods.argmax()]), float(likely[0]), float(likely[-1]))


def _log_likelihoods(differs: np.ndarray) -> np.ndarray:
    """Of each share, with the rise and the bend that suit it best; `differs` begins with the surest sample."""
    groups = np.array_split(differs, GROUPS)
    sizes, differing = np.array([len(group) for group in groups]), np.array([group.sum() for group in groups])
    centre_G = (np.cumsum(sizes) - sizes / 2) / len(differs)
    best = np.full(len(SHARES), -np.inf)
    for bend in BENDS:
        d_SRG = SHARES[:, None, None] + RISES[:, None] * centre_G**bend
        d_SRG = np.clip(d_SRG, 1e-6, 1 - 1e-6)
        found_SR = np.log(d_SRG) @ differing + np.log1p(-d_SRG) @ (sizes - differing)
        best = np.maximum(best, found_SR.max(axis=1))
    return best

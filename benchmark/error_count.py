"""How many labels are wrong? An estimate with an interval, which may be that there is no evidence of any.

Where held-out classifiers are surest they are hardly ever wrong, so of those samples the share whose given label is
another is the share of wrong labels; and if labels went wrong whatever the image shows, that share holds for all. Where
labels are wrong because images are hard, more are wrong than is counted here. Where classifiers are mistaken even if
they are sure (few samples, hard classes), fewer are: nothing in the labels can tell the one from the other, and below
one in a hundred nobody should try.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

SUREST = 0.15  # of samples
FEWEST = 30  # of the surest; fewer tell nothing
LEAST_EVIDENCE = 0.01  # of labels: what the lower end of the interval has to exceed


@dataclass(frozen=True)
class ErrorCount:
    """Shares of wrong labels; `samples` of them are what is counted in."""

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

        of_all = f"of {self.samples:,} labels are wrong"
        if not self.is_known:
            least = math.ceil(FEWEST / SUREST)
            return f"{self.samples:,} images are too few to tell how many labels are wrong; {least} are needed."
        if not self.is_evidence:
            return f"No evidence of label noise: at most about {labels(self.high)} {of_all}."
        between = f"95 % interval {labels(self.low)} to {labels(self.high)}"
        return (
            f"About {labels(self.share)} {of_all} ({self.share:.1%}; {between}), if simple classifiers are right where "
            "they are surest; where images are hard even for them, fewer are."
        )


def count_errors(probabilities_NK: np.ndarray, given_labels_N: np.ndarray) -> ErrorCount:
    """From held-out probabilities; with fewer than a few hundred samples the interval is all that is possible."""
    samples = len(given_labels_N)
    surest = np.argsort(-probabilities_NK.max(axis=1), kind="stable")[: round(SUREST * samples)]
    if len(surest) < FEWEST:
        return ErrorCount(samples, 0.0, 0.0, 1.0)
    differing = int((probabilities_NK[surest].argmax(axis=1) != given_labels_N[surest]).sum())
    interval = binomtest(differing, len(surest)).proportion_ci(0.95, method="exact")
    return ErrorCount(samples, differing / len(surest), float(interval.low), float(interval.high))

"""How likely is it that a label is wrong? Learnt from errors that are planted into a copy, in a training of its own.

A few labels of the copy are flipped, half of them to the class that held-out classifiers find most likely beside the
given one, half to any other class. Detectors that rank planted errors higher get larger weights in the order of the
list. How many planted errors there are at each score, compared with all other labels, gives `p_wrong`.

A score is replaced by −log of its rank fraction among the labels that were not planted. So scores of the training on
the given labels, which no planted error can change, are comparable with those of the planted training. With s the
weighted mean over detectors, f its density among all labels and f1 among planted errors, we fit by maximum likelihood

    f(s) / f1(s) = share + exp(a − b·s)        and take        p_wrong(s) = share · f1(s) / f(s),

a logistic curve. It assumes that

- wrong labels have scores like planted errors. If they are harder to detect, as where people erred on hard images,
  p_wrong is too low; if they are easier to detect, too high.
- nearly all labels that score as high as the most suspicious planted errors are wrong, or there are none. Correct
  labels of unusual images that score as high are taken as wrong.

Dozens of planted errors tell the share only roughly; a weak prior (95 %: 0.4 % to 40 %) keeps it from extremes. A
planted flip of a wrong label may correct it, which makes the share slightly too large. The form and the constants were
chosen on digits and BreastMNIST, where ratios in bins were calibrated worse.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit
from sklearn.metrics import average_precision_score

from benchmark.audit.audited_data import AuditedData
from benchmark.audit.settings import FEWEST_SAMPLES
from benchmark.identity import Json, bytes_digest
from benchmark.seeds import numpy_generator

SHARE, FEWEST, MOST = 0.03, 50, 0.1  # of labels that are planted: a share, no fewer than so many, at most a share
FOLDS = 5
EQUALITY = 10.0  # how strongly weights are drawn to their mean
LIKELY_SHARE, LOGIT_SD = 0.05, 1.3  # the prior of the share of wrong labels
BINS = 10
Scores = dict[str, np.ndarray]  # by detector, higher is more suspicious


@dataclass(frozen=True)
class Curve:
    """The fitted densities as a function of the combined score s."""

    share: float
    offset: float
    slope: float

    def density_ratio(self, score_N: np.ndarray) -> np.ndarray:
        """f / f1 = share + exp(offset − slope · s)."""
        return self.share + np.exp(np.clip(self.offset - self.slope * score_N, -30, 30))

    def p_wrong(self, score_N: np.ndarray) -> np.ndarray:
        return self.share / self.density_ratio(score_N)

    def p_planted(self, score_N: np.ndarray, per_other: float) -> np.ndarray:
        """That a label of the planted training is a planted one, with so many of them per other label."""
        return per_other / (per_other + self.density_ratio(score_N))


@dataclass(frozen=True)
class Planted:
    """What planted errors say about the list of an audit. Their own ranks and calibration are cross-fitted."""

    weights: dict[str, float]
    count: int
    in_first: int  # planted errors that are among the first `count` of the list of the planted training
    in_twice: int  # among the first 2 · `count`
    reliability: list[dict[str, float]]  # bins of predicted probabilities of being planted
    calibration_error: float  # the mean difference of predicted and true share of planted errors
    score: np.ndarray  # combined, of every label as given: the order of the list
    p_wrong: np.ndarray

    @property
    def sentence(self) -> str:
        count, by_chance = self.count, self.count**2 / len(self.score)
        found = f"{self.in_first:,} of them are among the first {count:,} of its list (by chance: {by_chance:.0f})"
        twice = f"{self.in_twice:,} among the first {2 * count:,}"
        return f"Check: {count:,} labels were made wrong in a copy; {found}, {twice}."

    @property
    def as_json(self) -> dict[str, Json]:
        of_samples = ("score", "p_wrong")
        return {name: value for name, value in vars(self).items() if name not in of_samples}


def judge_by_planted_errors(
    data: AuditedData, scores: Scores, probabilities_NK: np.ndarray, seed: int, score: Callable[[AuditedData], Scores]
) -> Planted | None:
    """Trains on planted labels; `score` does what gave the scores of the given ones. None if the data are too few."""
    labels, is_planted = plant(data.labels, probabilities_NK, seed)
    if len(labels) < FEWEST_SAMPLES or is_planted.sum() < 2 * FOLDS:
        return None
    # Held-out probabilities decide about the labels, so other seeds may give others; records must not be mixed up.
    identity = f"{data.identity}, planted {bytes_digest([labels.tobytes()])[:16]}"
    return judge(scores, score(replace(data, labels=labels, identity=identity)), is_planted, seed)


def plant(labels_N: np.ndarray, probabilities_NK: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels with some flipped, and which; every class keeps a sample."""
    generator = numpy_generator(seed, "planted errors")
    drawn = generator.permutation(len(labels_N))
    _, from_end = np.unique(labels_N[drawn][::-1], return_index=True)
    drawn = np.delete(drawn, len(drawn) - 1 - from_end)  # the last one of each class is kept
    chosen = drawn[: min(max(round(SHARE * len(labels_N)), FEWEST), int(MOST * len(labels_N)))]
    confused, others = np.array_split(chosen, 2)
    planted_N, is_planted = labels_N.copy(), np.zeros(len(labels_N), dtype=bool)
    is_planted[chosen] = True
    beside_given = probabilities_NK[confused]
    beside_given[np.arange(len(confused)), labels_N[confused]] = -1
    planted_N[confused] = beside_given.argmax(axis=1)
    num_classes = probabilities_NK.shape[1]
    planted_N[others] = (labels_N[others] + generator.integers(1, num_classes, len(others))) % num_classes
    return planted_N, is_planted


def judge(scores: Scores, planted_scores: Scores, is_planted: np.ndarray, seed: int) -> Planted:
    """From the scores of both trainings."""
    names = list(scores)
    not_planted = {name: planted_scores[name][~is_planted] for name in names}
    planted_ND, given_ND = features(planted_scores, not_planted), features(scores, scores)
    fold_N = _folds(is_planted, seed)
    weights_D, score_N = choose_weights(planted_ND, is_planted, fold_N)
    in_first, in_twice = found_in_list(is_planted, np.argsort(-score_N, kind="stable"))
    chance_N = np.empty(len(is_planted))
    for fold in range(FOLDS):
        fitted, held_out = fold_N != fold, fold_N == fold
        curve = fit_curve(score_N[fitted], is_planted[fitted])
        per_other = is_planted[fitted].sum() / (~is_planted[fitted]).sum()
        chance_N[held_out] = curve.p_planted(score_N[held_out], per_other)
    bins, error = reliability(chance_N, is_planted)
    combined_N = given_ND @ weights_D
    p_wrong = fit_curve(planted_ND @ weights_D, is_planted).p_wrong(combined_N)
    by_name = dict(zip(names, weights_D.tolist(), strict=True))
    return Planted(by_name, int(is_planted.sum()), in_first, in_twice, bins, error, combined_N, p_wrong)


def features(scores: Scores, reference: Scores) -> np.ndarray:
    """Samples × detectors: −log of the share of the reference that is more suspicious; ties count half."""
    return np.stack([-np.log(_rank_fraction(scores[name], reference[name])) for name in reference], axis=1)


def _rank_fraction(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    ordered = np.sort(reference)
    below, up_to = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return (len(ordered) - (below + up_to) / 2 + 0.5) / (len(ordered) + 1)


def choose_weights(
    features_ND: np.ndarray, is_planted: np.ndarray, fold_N: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and the combined scores that cross-validation gave; all weights are equal unless fitted ones do better.

    Better is a higher average precision on planted errors that they were not fitted to.
    """
    equal_D = np.full(features_ND.shape[1], 1 / features_ND.shape[1])
    equal_N, fitted_N = features_ND @ equal_D, np.empty(len(features_ND))
    for fold in np.unique(fold_N):
        fitted, held_out = fold_N != fold, fold_N == fold
        fitted_N[held_out] = features_ND[held_out] @ fit_weights(features_ND[fitted], is_planted[fitted])
    if average_precision_score(is_planted, fitted_N) > average_precision_score(is_planted, equal_N):
        return fit_weights(features_ND, is_planted), fitted_N
    return equal_D, equal_N


def fit_weights(features_ND: np.ndarray, is_planted: np.ndarray) -> np.ndarray:
    """By logistic regression with non-negative weights that are drawn to their mean; they sum to 1."""
    from scipy.optimize import minimize

    detectors = features_ND.shape[1]

    def cost(at: np.ndarray) -> tuple[float, np.ndarray]:
        linear, apart = features_ND @ at[:-1] + at[-1], at[:-1] - at[:-1].mean()
        error = expit(linear) - is_planted
        gradient = np.append(features_ND.T @ error + 2 * EQUALITY * apart, error.sum())
        return np.logaddexp(0, linear).sum() - linear[is_planted].sum() + EQUALITY * apart @ apart, gradient

    bounds = [(0.0, None)] * detectors + [(None, None)]
    found = minimize(cost, np.append(np.full(detectors, 1 / detectors), -3.0), jac=True, bounds=bounds).x[:-1]
    return found / found.sum() if found.sum() > 0 else np.full(detectors, 1 / detectors)


def fit_curve(score_N: np.ndarray, is_planted: np.ndarray) -> Curve:
    """By maximum likelihood of which labels are planted, with the prior of the share."""
    from scipy.optimize import minimize

    centre, scale = score_N.mean(), max(score_N.std(), 1e-12)
    z_N, per_other = (score_N - centre) / scale, is_planted.sum() / (~is_planted).sum()

    def cost(at: np.ndarray) -> tuple[float, np.ndarray]:
        share, slope = expit(at[0]), np.exp(at[2])
        falling_N = np.exp(np.clip(at[1] - slope * z_N, -30, 30))
        ratio_N = share + falling_N
        likelihood = np.where(is_planted, np.log(per_other), np.log(ratio_N)) - np.log(per_other + ratio_N)
        by_ratio = np.where(is_planted, 0, 1 / ratio_N) - 1 / (per_other + ratio_N)
        apart = (at[0] - logit(LIKELY_SHARE)) / LOGIT_SD
        by_share = by_ratio.sum() * share * (1 - share) - apart / LOGIT_SD
        gradient = np.array([by_share, by_ratio @ falling_N, -(by_ratio * falling_N) @ z_N * slope])
        return apart**2 / 2 - likelihood.sum(), -gradient

    bounds = [(float(logit(1e-4)), float(logit(0.9))), (-20.0, 40.0), (-3.0, 3.0)]
    starts = [(logit(share), offset, np.log(slope)) for share in (0.02, 0.2) for offset, slope in ((2, 2), (5, 4))]
    tries = [minimize(cost, start, jac=True, bounds=bounds) for start in starts]
    at = min(tries, key=lambda found: found.fun).x
    slope = float(np.exp(at[2]) / scale)
    return Curve(float(expit(at[0])), float(at[1] + slope * centre), slope)


def found_in_list(is_planted: np.ndarray, order: np.ndarray) -> tuple[int, int]:
    """How many planted errors are among the first of the list, as many as there are and twice as many."""
    count, is_found = int(is_planted.sum()), is_planted[order]
    return int(is_found[:count].sum()), int(is_found[: 2 * count].sum())


def reliability(chance_N: np.ndarray, is_planted: np.ndarray) -> tuple[list[dict[str, float]], float]:
    """Bins of predicted probabilities of being planted, each with as many expected, and the expected calibration error.

    Which labels are planted is known, which others are wrong is not. So this checks the fitted ratio of densities, and
    not whether wrong labels are like planted ones.
    """
    order = np.argsort(-chance_N, kind="stable")
    passed = np.cumsum(chance_N[order])
    bin_of = np.minimum(BINS * (passed - chance_N[order] / 2) / max(passed[-1], 1e-12), BINS - 1).astype(int)
    bins = [order[bin_of == number] for number in np.unique(bin_of)]
    rows = [
        {"samples": len(own), "predicted": float(chance_N[own].mean()), "planted": float(is_planted[own].mean())}
        for own in bins
    ]
    return rows, sum(row["samples"] * abs(row["predicted"] - row["planted"]) for row in rows) / len(chance_N)


def _folds(is_planted: np.ndarray, seed: int) -> np.ndarray:
    """With as many planted errors in each."""
    generator, fold_N = numpy_generator(seed, "folds of planted errors"), np.empty(len(is_planted), dtype=np.int64)
    for own in (np.flatnonzero(is_planted), np.flatnonzero(~is_planted)):
        fold_N[generator.permutation(own)] = np.arange(len(own)) % FOLDS
    return fold_N

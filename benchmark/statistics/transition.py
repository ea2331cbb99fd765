"""HOC: which labels become which, estimated without any correct label (Zhu et al., ICML 2021, arXiv 2102.05291).

If a sample and its two nearest neighbours share their true class, how often their given labels agree tells how labels
were made wrong. With p the share of each true class and T_yi the chance that class y is labelled i:
P(i) = Σ_y p_y T_yi, P(i, j) = Σ_y p_y T_yi T_yj, P(i, j, l) = Σ_y p_y T_yi T_yj T_yl for the given labels of the three.
p and T are those whose predictions are closest to the counted shares, by least squares, from a start at few errors.
The authors count over 50 draws of 15,000 samples, and descend for 1,500 steps on the sum of the three distances; ours
counts all samples once and minimises the squares by L-BFGS, so that there is no chance in it.
"""

from dataclasses import dataclass

import numpy as np

START = 5.0  # how much larger the logits of labels that stay are at the start: the authors'


@dataclass(frozen=True)
class Transition:
    prior: np.ndarray  # of the true classes
    chances: np.ndarray  # true class × given label

    @property
    def wrong_share(self) -> np.ndarray:
        """Of the samples that are given each label, the share whose true class is another: P(Y ≠ j | Ỹ = j)."""
        given_K = self.prior @ self.chances
        return 1 - self.prior * np.diag(self.chances) / np.maximum(given_K, 1e-12)


def estimate_transition(labels_N: np.ndarray, neighbours_N2: np.ndarray, num_classes: int) -> Transition:
    from scipy.optimize import minimize
    from scipy.special import softmax

    k = num_classes
    counts = np.zeros((k, k, k), dtype=np.int64)
    np.add.at(counts, (labels_N, labels_N[neighbours_N2[:, 0]], labels_N[neighbours_N2[:, 1]]), 1)
    diagonal, whole = np.arange(k), counts.sum(axis=(1, 2))
    order = np.lexsort((counts.sum(axis=(0, 1)), counts[diagonal, diagonal, diagonal], whole))  # not by their numbers
    counted = counts[np.ix_(order, order, order)] / len(labels_N)
    shares = (counted.sum(axis=(1, 2)), counted.sum(axis=2), counted)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        p, t = softmax(parameters[:k]), softmax(parameters[k:].reshape(k, k), axis=1)
        pairs = (t[:, :, None] * t[:, None, :]).reshape(k, k * k)  # of labels, by true class
        first = p @ t - shares[0]
        second = (p[:, None] * t).T @ t - shares[1]
        third = ((p[:, None] * t).T @ pairs).reshape(k, k, k) - shares[2]
        each_first = third + third.transpose(1, 0, 2) + third.transpose(2, 0, 1)
        of_third = pairs @ each_first.reshape(k, k * k).T
        by_p = t @ first + pairs @ second.ravel() + (t * (pairs @ third.reshape(k, k * k).T)).sum(axis=1)
        by_t = p[:, None] * (first + t @ (second + second.T) + of_third)
        by_p, by_t = p * (by_p - by_p @ p), t * (by_t - (by_t * t).sum(axis=1, keepdims=True))
        squares = sum(float(np.square(residual).sum()) for residual in (first, second, third))
        return squares / 2, np.concatenate([by_p, by_t.ravel()])

    start = np.concatenate([np.zeros(k), START * np.eye(k).ravel()])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1500, "ftol": 1e-14, "gtol": 1e-9}).x
    place = np.argsort(order)
    return Transition(softmax(found[:k])[place], softmax(found[k:].reshape(k, k), axis=1)[np.ix_(place, place)])

"""cleanlab, as its tutorials use it: the peer that trials compare the audit with."""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.errors import LincBenchError
from benchmark.seeds import numpy_generator
from benchmark.statistics.held_out import FOLDS, cross_validated, stratified_folds

STRENGTHS, TUNED_ON = (1e-4, 1e-3, 1e-2, 0.1, 1.0), 2000  # scikit-learn's C for cleanlab's classifier; samples


def cleanlab() -> Any:
    try:
        import cleanlab.count
        import cleanlab.rank
    except ImportError as error:
        raise LincBenchError("Trials compare the audit with cleanlab. Install it: pip install cleanlab") from error
    return cleanlab


def out_of_sample_probabilities(
    embedding_ND: np.ndarray, labels_N: np.ndarray, groups_N: np.ndarray | None, num_classes: int, seed: int
) -> np.ndarray:
    """Of logistic regression, with the regularisation that predicts the given labels of some samples best."""
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        scaled, generator = StandardScaler().fit_transform(embedding_ND), numpy_generator(seed, "cleanlab")
        fold_N = stratified_folds(labels_N, groups_N, FOLDS, generator)
        some = generator.permutation(len(labels_N))[:TUNED_ON]

        def loss(strength: float) -> float:
            classifiers = [(LogisticRegression(C=strength, max_iter=400), scaled[some])]
            probabilities_NK = cross_validated(classifiers, labels_N[some], num_classes, fold_N[some])
            return float(-np.log(np.maximum(probabilities_NK[np.arange(len(some)), labels_N[some]], 1e-6)).mean())

        best, least = STRENGTHS[0], loss(STRENGTHS[0])
        for strength in STRENGTHS[1:]:  # stops when the loss no longer falls, since weak regularisation is slow
            if (current := loss(strength)) >= least:
                break
            best, least = strength, current
        return cross_validated([(LogisticRegression(C=best, max_iter=400), scaled)], labels_N, num_classes, fold_N)

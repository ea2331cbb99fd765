"""cleanlab on the embeddings of an audit, as its tutorials use it: what the audit is compared with in trials.

It is given out-of-sample probabilities of logistic regression and ranks by its label quality; how strongly to
regularise is chosen on the given labels.
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.errors import LincBenchError
from benchmark.seeds import numpy_generator
from benchmark.statistics.held_out import cross_validated

STRENGTHS, TUNED_ON = (1e-4, 1e-3, 1e-2, 0.1, 1.0), 2000  # scikit-learn's C; samples


def cleanlab() -> Any:
    try:
        import cleanlab.count
        import cleanlab.rank
    except ImportError as error:
        raise LincBenchError("Trials compare the audit with cleanlab. Install it: pip install cleanlab") from error
    return cleanlab


def out_of_sample_probabilities(
    embedding_ND: np.ndarray, labels_N: np.ndarray, num_classes: int, seed: int
) -> np.ndarray:
    """With the regularisation that predicts the given labels of a part of the samples best."""
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        scaled, generator = StandardScaler().fit_transform(embedding_ND), numpy_generator(seed, "cleanlab")
        some = generator.permutation(len(labels_N))[:TUNED_ON]

        def loss(strength: float) -> float:
            folds = numpy_generator(seed, "folds of cleanlab")
            classifiers = [(LogisticRegression(C=strength, max_iter=400), scaled[some])]
            probabilities_NK = cross_validated(classifiers, labels_N[some], num_classes, folds)
            return float(-np.log(np.maximum(probabilities_NK[np.arange(len(some)), labels_N[some]], 1e-6)).mean())

        best, least = STRENGTHS[0], loss(STRENGTHS[0])
        for strength in STRENGTHS[1:]:  # stops when the loss no longer falls, since weak regularisation is slow
            if (current := loss(strength)) >= least:
                break
            best, least = strength, current
        return cross_validated([(LogisticRegression(C=best, max_iter=400), scaled)], labels_N, num_classes, generator)

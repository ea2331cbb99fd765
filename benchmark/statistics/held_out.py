"""What classifiers say of samples that they were not trained on: simple ones, on the features of a pretrained network.

The mean of four: logistic regression on the principal components of all features and of either half of them, and the
nearest neighbours. Where all of them are sure they are hardly ever wrong, which is what counting errors rests on
(`error_count.py`). A sample's own label has no part in what is said of it.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.seeds import numpy_generator

FOLDS = 5
SAMPLES_PER_COMPONENT, MOST_COMPONENTS = 16, 64
STRENGTH = 0.1  # scikit-learn's C: strong regularisation, since some labels are wrong
NEIGHBOURS = 25


Classifier: TypeAlias = LogisticRegression | KNeighborsClassifier
Report = Callable[[int, int], None]


def held_out_probabilities(
    features_ND: np.ndarray,
    labels_N: np.ndarray,
    num_classes: int,
    seed: int = 0,
    report: Report = lambda done, total: None,
) -> np.ndarray:
    """Samples × classes; each row is of classifiers that have not seen its sample."""
    generator = numpy_generator(seed, "held out")
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        everything = StandardScaler().fit_transform(np.asarray(features_ND, dtype=np.float64))
        one, other = np.array_split(generator.permutation(everything.shape[1]), 2)
        whole, *halves = (_components(view) for view in (everything, everything[:, one], everything[:, other]))
        fewest = len(labels_N) * (FOLDS - 1) // FOLDS - 1  # that a classifier learns from
        classifiers: list[tuple[Classifier, np.ndarray]] = [
            (KNeighborsClassifier(max(1, min(NEIGHBOURS, fewest))), whole),
            *((LogisticRegression(C=STRENGTH, max_iter=1000), view) for view in (whole, *halves)),
        ]
        return cross_validated(classifiers, labels_N, num_classes, generator, report)


def cross_validated(
    classifiers: Sequence[tuple[Classifier, np.ndarray]],
    labels_N: np.ndarray,
    num_classes: int,
    generator: np.random.Generator,
    report: Report = lambda done, total: None,
) -> np.ndarray:
    """The mean of what classifiers, each with the features it sees, say of the fold that they were not fitted to."""
    fold_N = _folds(labels_N, generator)
    found_NK = np.zeros((len(labels_N), num_classes))
    for fold in range(FOLDS):
        held_out = fold_N == fold
        for number, (classifier, features) in enumerate(classifiers, 1):
            if held_out.any():
                found_NK[held_out] += _predicted(clone(classifier), features, labels_N, held_out, num_classes)
            report(fold * len(classifiers) + number, FOLDS * len(classifiers))
    return found_NK / len(classifiers)


def _components(features_ND: np.ndarray) -> np.ndarray:
    """The first principal components, all on one scale, that of their mean deviation."""
    samples, dimensions = features_ND.shape
    count = max(1, min(MOST_COMPONENTS, dimensions, samples // SAMPLES_PER_COMPONENT))
    components = PCA(count, svd_solver="covariance_eigh").fit_transform(features_ND)
    return components / max(components.std(axis=0).mean(), 1e-12)


def _folds(labels_N: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Each class spread evenly, as far as it goes."""
    shuffled = generator.permutation(len(labels_N))
    by_class = shuffled[np.argsort(labels_N[shuffled], kind="stable")]
    fold_N = np.empty(len(labels_N), dtype=np.int64)
    fold_N[by_class] = np.arange(len(labels_N)) % FOLDS
    return fold_N


def _predicted(
    model: Classifier,
    view_ND: np.ndarray,
    labels_N: np.ndarray,
    held_out: np.ndarray,
    num_classes: int,
) -> np.ndarray:
    """A class that has no sample outside the fold has no probability there."""
    found_BK = np.zeros((int(held_out.sum()), num_classes))
    seen = np.unique(labels_N[~held_out])
    if len(seen) == 1:
        found_BK[:, seen[0]] = 1.0
        return found_BK
    found_BK[:, seen] = model.fit(view_ND[~held_out], labels_N[~held_out]).predict_proba(view_ND[held_out])
    return found_BK

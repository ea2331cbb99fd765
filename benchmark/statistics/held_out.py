"""Held-out predictions of simple classifiers on the features of a pretrained network.

The mean of four: logistic regression on the principal components of all features and of each half of them, and nearest
neighbours. Where all of them are sure they are hardly ever wrong, which is what counting errors rests on
(`counting/error_count.py`). A sample's own label has no influence on its prediction.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmark.seeds import numpy_generator
from benchmark.statistics import without_advice

FOLDS = 5
SAMPLES_PER_COMPONENT, MOST_COMPONENTS = 16, 64
STRENGTH = 0.1  # scikit-learn's C: strong regularisation, since some labels are wrong
NEIGHBOURS = 25

Report = Callable[[int, int], None]


@without_advice()
def held_out_probabilities(
    features_ND: np.ndarray,
    labels_N: np.ndarray,
    num_classes: int,
    seed: int = 0,
    report: Report = lambda done, total: None,
    groups_N: np.ndarray | None = None,
) -> np.ndarray:
    """Samples × classes; each row comes from classifiers that have seen nothing of its sample's group."""
    generator = numpy_generator(seed, "held out")
    fold_N = stratified_folds(labels_N, groups_N, FOLDS, generator)
    with threadpool_limits(limits=1):  # libraries' own threads change bytes
        everything = StandardScaler().fit_transform(np.asarray(features_ND, dtype=np.float64))
        one, other = np.array_split(generator.permutation(everything.shape[1]), 2)
        whole, *halves = (_components(view) for view in (everything, everything[:, one], everything[:, other]))
        fewest = len(labels_N) - int(np.bincount(fold_N).max())  # training samples of a classifier
        classifiers: list[tuple[ClassifierMixin, np.ndarray]] = [
            (KNeighborsClassifier(max(1, min(NEIGHBOURS, fewest))), whole),
            *((LogisticRegression(C=STRENGTH, max_iter=1000), view) for view in (whole, *halves)),
        ]
        return cross_validated(classifiers, labels_N, num_classes, fold_N, report)


@without_advice()
def cross_validated(
    classifiers: Sequence[tuple[ClassifierMixin, np.ndarray]],
    labels_N: np.ndarray,
    num_classes: int,
    fold_N: np.ndarray,
    report: Report = lambda done, total: None,
) -> np.ndarray:
    """The mean prediction of classifiers, each with its own features, for the fold that they were not fitted to."""
    sum_NK = np.zeros((len(labels_N), num_classes))
    for number, (classifier, features_ND) in enumerate(classifiers, 1):
        for fold in np.unique(fold_N):
            fitted, held_out = np.flatnonzero(fold_N != fold), np.flatnonzero(fold_N == fold)
            known = np.unique(labels_N[fitted])  # other classes get probability 0
            if len(known) == 1:  # logistic regression would fail
                sum_NK[held_out, known] += 1
            else:
                model = clone(classifier).fit(features_ND[fitted], labels_N[fitted])
                sum_NK[np.ix_(held_out, known)] += model.predict_proba(features_ND[held_out])
        report(number, len(classifiers))
    return sum_NK / len(classifiers)


def _components(features_ND: np.ndarray) -> np.ndarray:
    """The first principal components, all on one scale, that of their mean deviation."""
    samples, dimensions = features_ND.shape
    count = max(1, min(MOST_COMPONENTS, dimensions, samples // SAMPLES_PER_COMPONENT))
    components = PCA(count, svd_solver="covariance_eigh").fit_transform(features_ND)
    return components / max(components.std(axis=0).mean(), 1e-12)


@without_advice()
def stratified_folds(
    labels_N: np.ndarray, groups_N: np.ndarray | None, folds: int, generator: np.random.Generator
) -> np.ndarray:
    """A fold for each sample: classes are spread evenly and groups, such as duplicates, are kept together.

    As few folds as there are groups; with a single group, samples are on their own.
    """
    if groups_N is None or len(np.unique(groups_N)) < 2:
        groups_N = np.arange(len(labels_N))
    groups_N = np.unique(groups_N, return_inverse=True)[1]
    count = int(groups_N.max()) + 1
    folds = min(folds, count)
    # Numbers decide between equal groups, so that shuffling them shuffles folds; older scikit-learns shuffle wrongly.
    shuffled_N = generator.permutation(count)[groups_N]
    is_possible = np.bincount(labels_N).max() >= folds
    strata_N = labels_N if is_possible else np.zeros_like(labels_N)
    fold_N = np.empty(len(labels_N), dtype=np.int64)
    for fold, (_, held_out) in enumerate(StratifiedGroupKFold(folds).split(labels_N, strata_N, shuffled_N)):
        fold_N[held_out] = fold
    return fold_N

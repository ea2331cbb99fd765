"""Pure functions on arrays: mixtures, held-out classifiers, metrics, bootstrap intervals."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_advice() -> Iterator[None]:
    """Without scikit-learn's warnings, which advise whoever chooses a model: users of this suite choose none.

    A fit that stops at its last step, a class of two samples and constant features are all handled: predictions are
    only less certain, and held-out ones show it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sklearn")
        yield

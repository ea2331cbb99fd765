"""scikit-learn's warnings are advice for whoever chooses a model, and users of this suite choose none."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_advice() -> Iterator[None]:
    """A fit that stops at its last step, a class of two samples and constant features are all handled: predictions are
    only less certain, and held-out ones show it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sklearn")
        yield

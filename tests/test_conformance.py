"""check_detector catches deliberately wrong detectors, and tells each what to do."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, RunRecord, Signal
from detectors.base import Detector
from detectors.logits import given_class, log_softmax
from detectors.testing import CHECKS, CheckFailedError, check_detector


@dataclass(frozen=True)
class Right(Detector):
    """Mean loss once more; every wrong one below differs in one thing."""

    name: ClassVar[str] = "right"

    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_LOGITS,)

    def score(self, record: RunRecord) -> np.ndarray:
        def mean_loss(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
            return -given_class(log_softmax(logits), labels).mean(axis=0)

        return record.map_samples(mean_loss, EVAL_LOGITS)


@dataclass(frozen=True)
class Unhashable(Right):
    weights: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class NeedsArguments(Right):
    k: int = field(kw_only=True)


@dataclass(frozen=True)
class Imaginary(Right):
    weight: complex = 1j


class WrongShape(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record)[:, None]


class SinglePrecision(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record).astype(np.float32)


class NotFinite(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + (np.inf if record.epochs == 1 else 0.0)


class Chancy(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + 1e-3 * np.random.default_rng().random(len(record.given_labels))


class Writes(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        scores = super().score(record)
        if record[EVAL_LOGITS].flags.writeable:
            record[EVAL_LOGITS][0] = 0
        return scores


class Undeclared(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + 0 * record[TRAIN_LOGITS].sum()


class Peeks(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + (1.0 if TRAIN_LOGITS in record else 0.0)


class Undecorated(Right):
    k: int = 3


class Surplus(Right):
    @property
    def needs(self) -> tuple[Signal, ...]:
        return (EVAL_LOGITS, TRAIN_LOGITS)


class Positional(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + 1e-3 * np.arange(len(record.given_labels))


class Favourite(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record) + 1e-3 * record.given_labels


class Inverted(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return -super().score(record)


class ReadsOn(Right):
    def epochs_used(self, epochs: int) -> int:
        return min(5, epochs)


class Ranks(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        return super().score(record).argsort().argsort().astype(np.float64)


class NeedsManyClasses(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        record[EVAL_LOGITS][:, :, 2]
        return super().score(record)


class Overflows(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            exponentials = np.exp(record[EVAL_LOGITS][-1].astype(np.float64))
            given = exponentials[np.arange(len(record.given_labels)), record.given_labels]
            return -given / exponentials.sum(axis=1)


class PerClassSpread(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        scores = super().score(record)
        with np.errstate(invalid="ignore", divide="ignore"):
            for label in np.unique(record.given_labels):
                members = record.given_labels == label
                scores[members] = (scores[members] - scores[members].mean()) / scores[members].std()
        return scores


class TooFewSamples(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        np.partition(record.given_labels, 3)
        return super().score(record)


class Quadratic(Right):
    def score(self, record: RunRecord) -> np.ndarray:
        if len(record.given_labels) > 50_000:
            raise MemoryError("of pairs")
        return super().score(record)


class Resigned(Right):
    expected_failures: ClassVar[dict[str, str]] = {"sample order": "I thought so"}


class NamesItsNeeds(Right):
    needs = ("eval_logits",)  # type: ignore[assignment]


WRONG = [
    (NamesItsNeeds, "declarations", "expected a tuple of signals"),
    (Unhashable, "frozen value", "frozen=True"),
    (Imaginary, "JSON round trip", "use numbers, strings, tuples"),
    (WrongShape, "one finite number each", "one number per sample"),
    (SinglePrecision, "one finite number each", "astype"),
    (NotFinite, "one epoch", "guard logarithms"),
    (Chancy, "deterministic", "default_rng"),
    (Writes, "leaves the record alone", "work on a copy"),
    (Undeclared, "reads what it declares", "add what it reads to `needs`"),
    (Peeks, "reads what it declares", "add what it reads to `needs`"),
    (Undecorated, "frozen value", "decorate Undecorated"),
    (Surplus, "reads what it declares", "take it out"),
    (Positional, "sample order", "do not let order matter"),
    (Favourite, "class names", "a class's number means nothing"),
    (Inverted, "right direction", "its sign or its formula is wrong"),
    (ReadsOn, "epochs used", "epochs_used(12) is 5, but scores change"),
    (Ranks, "identical samples", "different scores"),
    (NeedsManyClasses, "two classes", "cope with this record"),
    (Overflows, "logits of ±10,000", "NaN or infinite"),
    (PerClassSpread, "a class with one member", "NaN or infinite"),
    (TooFewSamples, "two samples", "cope with this record"),
    (Quadratic, "100,000 samples", "cope with this record"),
    (Resigned, "sample order", "Remove that entry"),
]


def test_the_right_one_passes() -> None:
    check_detector(Right())


@pytest.mark.parametrize(("wrong", "check", "says"), WRONG, ids=lambda value: getattr(value, "__name__", None))
def test_a_wrong_one_fails_and_is_told_what_to_do(wrong: type[Detector], check: str, says: str) -> None:
    with pytest.raises(CheckFailedError) as failure:
        check_detector(wrong())
    complaints = [line for line in str(failure.value).splitlines() if check in line[2:].partition(": ")[0].split(", ")]
    assert complaints, str(failure.value)
    assert says in complaints[0]


def test_a_detector_that_needs_arguments_is_told_so() -> None:
    with pytest.raises(CheckFailedError, match="give each field a default"):
        check_detector(NeedsArguments(k=3))


def test_every_check_has_a_wrong_detector_that_fails_it() -> None:
    assert {check for _, check, _ in WRONG} == set(CHECKS)

"""Conformance checks for any detector, yours too: `check_detector(MyDetector())`.

Each check has a name and explains its failure: what was seen, what was expected, what to do. A check that a detector
cannot pass by its nature is declared, with the reason, in `Detector.expected_failures`.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from benchmark.errors import error_message
from benchmark.identity import settings_of
from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, Example, RunRecord, RunShape, Signal
from benchmark.training import Recipe, TrainingSettings
from detectors.base import Detector

RTOL = 1e-9


class CheckFailedError(AssertionError):
    """Lists every check that failed and what to do about it."""


def check_detector(detector: Detector) -> None:
    """Runs every check and raises one error that explains all failures, expected ones that did not come included."""
    problems: dict[str, list[str]] = {}  # names of checks by what they found
    for name, check in CHECKS.items():
        expected = detector.expected_failures.get(name)
        try:
            check(detector)
        except AssertionError as failure:
            if expected is None:
                problems.setdefault(str(failure), []).append(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raised = f"score() raised {error_message(error)}. It has to cope with this record."
            problems.setdefault(raised, []).append(name)
        else:
            if expected is not None:
                passes = f"passes, although expected_failures says '{expected}'. Remove that entry."
                problems.setdefault(passes, []).append(name)
    if problems:
        lines = "\n- ".join(f"{', '.join(names)}: {problem}" for problem, names in problems.items())
        count = sum(map(len, problems.values()))
        raise CheckFailedError(f"{type(detector).__name__} fails {count} of {len(CHECKS)} checks:\n- {lines}")


def planted_record(
    detector: Detector, samples: int = 400, epochs: int = 6, classes: int = 4, seed: int = 0, scale: float = 1.0
) -> tuple[RunRecord, np.ndarray]:
    """A record with the detector's signals in which a fifth of the labels is wrong, and which ones."""
    generator = np.random.default_rng(seed)
    clean = np.arange(samples) % classes
    given = clean.copy()
    wrong = generator.choice(samples, max(1, samples // 5), replace=False)
    given[wrong] = (given[wrong] + generator.integers(1, classes, len(wrong))) % classes
    logits_ENK = generator.normal(size=(epochs, samples, classes))
    logits_ENK[:, np.arange(samples), clean] += 3.0
    suspicion = (given != clean) + generator.uniform(0, 0.1, samples)
    return _record(detector, given, suspicion, (scale * logits_ENK).astype(np.float32), generator), given != clean


def _record(
    detector: Detector, given: np.ndarray, suspicion: np.ndarray, logits_ENK: np.ndarray, generator: np.random.Generator
) -> RunRecord:
    epochs, samples, classes = logits_ENK.shape
    example = Example(given, logits_ENK, generator)
    arrays = {
        s.key: np.asarray(s.example(RunShape(epochs, samples, classes), suspicion, example)) for s in detector.needs
    }
    for array in (given, *arrays.values()):
        array.flags.writeable = False
    return RunRecord(given, classes, epochs, arrays)


def _scores(detector: Detector, record: RunRecord) -> np.ndarray:
    scores = detector.score(record)
    n = len(record.given_labels)
    assert isinstance(scores, np.ndarray), f"score() returned {type(scores).__name__}; return a numpy array."
    assert scores.shape == (n,), f"score() returned shape {scores.shape}; return one number per sample, ({n},)."
    assert scores.dtype == np.float64, f"score() returned {scores.dtype}; convert with .astype(np.float64)."
    bad = np.count_nonzero(~np.isfinite(scores))
    of = f"{bad} of {n} scores are NaN or infinite on a record of {record.epochs} epochs"
    assert bad == 0, f"{of}; guard logarithms and divisions, and cope with short runs."
    return scores


def _is_a_value(detector: Detector) -> None:
    kind = type(detector)
    own = {name for name, kind_of in vars(kind).get("__annotations__", {}).items() if "ClassVar" not in str(kind_of)}
    plain = own - {field.name for field in fields(kind)}
    assert not plain, f"{', '.join(sorted(plain))} is no field: decorate {kind.__name__} with @dataclass(frozen=True)."
    try:
        default = kind()
    except TypeError as error:
        raise AssertionError(f"{kind.__name__}() cannot be made ({error}); give each field a default.") from error
    try:
        assert hash(default) == hash(kind()), "two default instances differ in their hash; use plain values as fields."
    except TypeError as error:
        raise AssertionError(
            f"it cannot be hashed ({error}); use @dataclass(frozen=True) and tuples, not lists."
        ) from error
    assert default == kind(), "two default instances are not equal; use plain values as fields."
    assert isinstance(getattr(kind, "name", None), str), "give it a `name: ClassVar[str]`."


def _json_round_trip(detector: Detector) -> None:
    try:
        settings = json.loads(json.dumps(settings_of(detector), allow_nan=False))
    except (TypeError, ValueError) as error:
        why = f"its fields cannot be written as JSON ({error}); use numbers, strings, tuples."
        raise AssertionError(why) from error
    again = _rebuilt(detector, settings)
    assert again == detector, f"rebuilt from its JSON it is {again}, not {detector}; use numbers, strings and tuples."


def _rebuilt(like: Any, settings: Any) -> Any:
    """A settings value of the same classes, from its JSON."""
    if isinstance(like, tuple):
        return tuple(_rebuilt(part, of_part) for part, of_part in zip(like, settings, strict=True))
    if not is_dataclass(like):
        return settings
    kind: Any = type(like)
    listed = [field.name for field in fields(kind) if field.name in settings or "later" not in field.metadata]
    return kind(**{name: _rebuilt(getattr(like, name), settings[name]) for name in listed})


def _declarations(detector: Detector) -> None:
    needs, recipe = detector.needs, detector.training
    assert isinstance(needs, tuple) and all(isinstance(signal, Signal) for signal in needs), (  # noqa: PT018
        f"`needs` is {needs!r}; expected a tuple of signals, such as (TRAIN_LOGITS,)."
    )
    assert isinstance(recipe, Recipe), f"`training` is {recipe!r}; expected a recipe, such as Standard()."
    assert callable(detector.score), f"`score` is {detector.score!r}; expected a method that takes a record."
    assert isinstance(detector.label, str), f"`label` is {detector.label!r}; expected text."
    check_epochs_used(detector, TrainingSettings())


def check_epochs_used(detector: Detector, training: TrainingSettings) -> None:
    used, epochs = detector.epochs_used_in(training), training.epochs
    is_whole = isinstance(used, int | np.integer) and not isinstance(used, bool)
    assert is_whole and 0 <= used <= epochs, (  # noqa: PT018
        f"`epochs_used_in` is {used!r} of {epochs} epochs; expected a whole number from 0 to {epochs}."
    )


def _one_finite_number_each(detector: Detector) -> None:
    _scores(detector, planted_record(detector)[0])


def _deterministic(detector: Detector) -> None:
    record, _ = planted_record(detector)
    same = np.array_equal(_scores(detector, record), _scores(detector, record))
    assert same, "two calls on one record differ; draw chance from np.random.default_rng(seed) with a field `seed`."


def _leaves_the_record_alone(detector: Detector) -> None:
    record, _ = planted_record(detector)
    arrays = {key: array.copy() for key, array in record.arrays.items()}
    record = RunRecord(record.given_labels.copy(), record.num_classes, record.epochs, arrays)  # writable, to be caught
    before = {key: array.copy() for key, array in arrays.items()} | {"given_labels": record.given_labels.copy()}
    _scores(detector, record)
    for key, array in (arrays | {"given_labels": record.given_labels}).items():
        assert np.array_equal(array, before[key]), f"score() changed {key}; work on a copy."


class _Watched(dict[str, np.ndarray]):
    """Remembers which signals were asked for."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(arrays)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> np.ndarray:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)


def _reads_what_it_declares(detector: Detector) -> None:
    record, _ = planted_record(detector)
    logits = np.zeros((record.epochs, len(record.given_labels), record.num_classes), dtype=np.float32)
    watched = _Watched({TRAIN_LOGITS.key: logits, EVAL_LOGITS.key: logits} | dict(record.arrays))
    declared = {signal.key for signal in detector.needs}
    with _with_hint(f"it declares {sorted(declared) or 'nothing'}; add what it reads to `needs`"):
        detector.score(RunRecord(record.given_labels, record.num_classes, record.epochs, watched))
    undeclared = watched.read - declared
    assert not undeclared, f"it looks at {sorted(undeclared)}; add what it reads to `needs`."
    surplus = declared - watched.read
    assert not surplus, f"it declares {sorted(surplus)} and never reads it; recording costs time, so take it out."


@contextmanager
def _with_hint(hint: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} ({hint}).") from error


def _along_samples(record: RunRecord, signals: tuple[Signal, ...], order: np.ndarray) -> dict[str, np.ndarray]:
    return {s.key: record.arrays[s.key][:, order] if s.per_epoch else record.arrays[s.key][order] for s in signals}


def _sample_order(detector: Detector) -> None:
    record, _ = planted_record(detector)
    order = np.random.default_rng(1).permutation(len(record.given_labels))
    arrays = _along_samples(record, detector.needs, order)
    moved = RunRecord(record.given_labels[order], record.num_classes, record.epochs, arrays)
    seen, expected = _scores(detector, moved), _scores(detector, record)[order]
    close = np.allclose(seen, expected, rtol=RTOL, atol=RTOL)
    assert close, "a sample's score changes with its position; do not let order matter (sort before fitting a model)."


def _class_names(detector: Detector) -> None:
    record, _ = planted_record(detector)
    renamed = np.random.default_rng(2).permutation(record.num_classes)
    arrays = {}
    for key, array in record.arrays.items():
        arrays[key] = array.copy()
        if array.dtype.names:
            arrays[key]["predicted"] = renamed[array["predicted"]]
        elif array.ndim > 1 and array.shape[-1] == record.num_classes and "logits" in key:
            arrays[key][..., renamed] = array
    other = RunRecord(renamed[record.given_labels], record.num_classes, record.epochs, arrays)
    close = np.allclose(_scores(detector, other), _scores(detector, record), rtol=1e-6, atol=1e-9)
    assert close, "scores change when classes are renumbered; a class's number means nothing."


def _right_direction(detector: Detector) -> None:
    record, is_mislabelled = planted_record(detector)
    scores = _scores(detector, record)
    wrong, right = scores[is_mislabelled], scores[~is_mislabelled]
    better = (wrong[:, None] > right[None, :]).mean() + 0.5 * (wrong[:, None] == right[None, :]).mean()
    assert better > 0.7, (
        "on a made-up record, whose wrong labels are unlikely in every epoch, a mislabelled sample outscores a clean "
        f"one in {better:.0%} of pairs. Higher means more suspicious: if the score is meant to rise with an unlikely "
        "label, its sign or its formula is wrong; if it reads something else, say so in expected_failures."
    )


def _epochs_used(detector: Detector) -> None:
    record, _ = planted_record(detector, epochs=12)
    used = detector.epochs_used(record.epochs)
    if used and all(signal.per_epoch for signal in detector.needs):
        close = np.allclose(_scores(detector, record.first_epochs(used)), _scores(detector, record), rtol=RTOL)
        assert close, f"epochs_used({record.epochs}) is {used}, but scores change without the epochs after {used}."


def _survives(**record: Any) -> Callable[[Detector], None]:
    def check(detector: Detector) -> None:
        _scores(detector, planted_record(detector, **record)[0])

    return check


def _class_with_one_member(detector: Detector) -> None:
    record, _ = planted_record(detector, classes=4)
    labels = np.where(record.given_labels == 3, 0, record.given_labels)
    labels[0] = 3
    _scores(detector, RunRecord(labels, 4, record.epochs, record.arrays))


def _identical_samples(detector: Detector) -> None:
    record, _ = planted_record(detector)
    first = np.zeros(len(record.given_labels), dtype=int)
    arrays = _along_samples(record, detector.needs, first)
    scores = _scores(detector, RunRecord(record.given_labels[first], record.num_classes, record.epochs, arrays))
    if "sample order" not in detector.expected_failures:
        assert np.allclose(scores, scores[0], rtol=1e-9, atol=1e-9), "identical samples get different scores."


CHECKS: dict[str, Callable[[Detector], None]] = {
    "frozen value": _is_a_value,
    "JSON round trip": _json_round_trip,
    "declarations": _declarations,
    "one finite number each": _one_finite_number_each,
    "deterministic": _deterministic,
    "leaves the record alone": _leaves_the_record_alone,
    "reads what it declares": _reads_what_it_declares,
    "sample order": _sample_order,
    "class names": _class_names,
    "right direction": _right_direction,
    "epochs used": _epochs_used,
    "one epoch": _survives(epochs=1),
    "two classes": _survives(classes=2),
    "a class with one member": _class_with_one_member,
    "identical samples": _identical_samples,
    "logits of ±10,000": _survives(scale=1e4),
    "two samples": _survives(samples=2, classes=2),
    "100,000 samples": _survives(samples=100_000, epochs=2),
}

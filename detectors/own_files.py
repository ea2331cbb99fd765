"""Detectors from users' own files, without a fork: `--detector path/to/file.py:MyDetector`, or `…:MyDetector(k=3)`."""

import ast
import importlib.util
import sys
from collections.abc import Iterable
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmark.errors import LincBenchError, error_message, unknown_name
from benchmark.identity import OWN_MODULE, file_digest
from benchmark.names import check_title
from benchmark.paths import typed_path
from benchmark.training import TrainingSettings
from detectors import Detector
from detectors.testing import CHECKS, check_epochs_used


def is_detector_file(name: str) -> bool:
    return ".py:" in name


def load_detector(argument: str, training: TrainingSettings) -> Detector:
    """The detector that `path/to/file.py:Class` or `path/to/file.py:Class(field=value)` names, for runs with these
    settings."""
    file, _, named = argument.partition(".py:")
    class_name, _, values = named.partition("(")
    file, fields = f"{file}.py", _fields(argument, values) if values else {}
    module = load_file(typed_path(file).resolve())
    classes = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Detector) and value.__module__ == module.__name__
    }
    if class_name not in classes:
        raise unknown_name(f"detector in {file}", class_name, classes)
    detector_class = classes[class_name]
    if isabstract(detector_class):
        missing = ", ".join(sorted(detector_class.__abstractmethods__))
        raise LincBenchError(f"{argument} lacks {missing}; detectors/base.py says what a detector must have.")
    try:
        detector = detector_class(**fields)
        for check in ("frozen value", "JSON round trip", "declarations"):
            CHECKS[check](detector)
        check_epochs_used(detector, training)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = str(error) if isinstance(error, AssertionError | TypeError) else error_message(error)
        raise LincBenchError(f"{argument} cannot be used: {why}") from error
    for title in (detector.name, detector.label):
        check_title("detector", title)
    return detector


def _fields(argument: str, values: str) -> dict[str, Any]:
    """Plain values by name, from what stands between the brackets."""
    try:
        call = ast.parse(f"Class({values}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("fields have names")
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise LincBenchError(f"{argument} cannot be read; expected path/to/file.py:Class(field=value, …).") from error


def load_file(path: Path) -> ModuleType:
    """Imports it under a name that worker processes use too, so that its detectors can be pickled."""
    if not path.is_file():
        raise LincBenchError(f"There is no file {path}. Name your own detector as path/to/file.py:Class.")
    name = f"{OWN_MODULE}{path.stem}_{file_digest(path)[:12]}"
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LincBenchError(f"{path} cannot be imported ({error_message(error)}).") from error
    return module


def load_files(paths: Iterable[Path]) -> None:
    for path in paths:
        load_file(path)


def loaded_files() -> tuple[Path, ...]:
    return tuple(Path(str(module.__file__)) for name, module in sys.modules.items() if name.startswith(OWN_MODULE))

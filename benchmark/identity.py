"""Turns settings into JSON, and JSON into the digest that names a folder."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

OWN_MODULE = "linc_bench_own_"  # prefix of the names of modules that are loaded from a user's file; its digest follows
Json = Any  # what json.dumps takes; its type is recursive


def later(version: int, before: Json = MISSING) -> dict[str, Json]:
    """Metadata of a field that was added when results existed; raise the version when its effect changes.

    `before` is its value in those results, if that is not the default.
    """
    return {"later": version, "before": before}


def settings_of(value: Any) -> Json:
    """Every field of a settings value, nested ones too, with the class's `name` and `version` where it has them.

    A field that was added later is left out while it has the value of older runs, so that these keep their ids.
    Otherwise its own version is listed beside it, since the version of the class is that of all runs.
    """
    if is_dataclass(value) and not isinstance(value, type):
        own = {key: getattr(type(value), key) for key in ("name", "version") if hasattr(type(value), key)}
        own |= {"file": own_file(value)} if own_file(value) else {}
        listed = [field for field in fields(value) if not is_as_before(field, getattr(value, field.name))]
        versions = {f"{field.name} version": field.metadata["later"] for field in listed if "later" in field.metadata}
        return own | {field.name: settings_of(getattr(value, field.name)) for field in listed} | versions
    if isinstance(value, tuple | list):
        return [settings_of(item) for item in value]
    return value


def value_of(kind: type[Any], settings: Json) -> Any:
    """The value of a class, all of whose fields have defaults, that has these settings, as read from JSON.

    They may be of another version: compare them with `settings_of` the value.
    """
    values = {}
    for field in fields(kind):
        value = settings.get(field.name, _before(field))
        values[field.name] = tuple(value) if isinstance(value, list) else value
        kinds = (float, int) if isinstance(field.default, float) else type(field.default)
        if not isinstance(values[field.name], kinds):
            raise ValueError(f"{field.name} is {value!r}")
    return kind(**values)


def is_as_before(field: Field[Any], current: Any) -> bool:
    """Whether a field was added later, and has the value of results from before."""
    return "later" in field.metadata and bool(current == _before(field))


def _before(field: Field[Any]) -> Any:
    """The value that it has where settings do not list it."""
    before = field.metadata.get("before", MISSING)
    return field.default if before is MISSING else before


def options_of(value: Any) -> dict[str, Json]:
    """The fields of a settings value that differ from their defaults, nested ones too."""
    options: dict[str, Json] = {}
    for field in fields(value):
        current = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if current != default:
            options |= options_of(current) if is_dataclass(current) else {field.name: current}
    return options


def label_of(value: Any) -> str:
    """Its name, and what differs from the defaults: what people read. Code reads `options_of`."""
    options = ", ".join(f"{name}={option}" for name, option in options_of(value).items())
    return f"{value.name} ({options})" if options else str(value.name)


def own_file(value: Any) -> str | None:
    """The digest of the user's file that a value's class comes from, if any: such a class has no reliable version."""
    module = type(value).__module__
    return module.rpartition("_")[2] if module.startswith(OWN_MODULE) else None


def digest_of(settings: Json, length: int = 12) -> str:
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def bytes_digest(chunks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()

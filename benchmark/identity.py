"""Turns settings into JSON, and JSON into the digest that names a folder."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

OWN_MODULE = "linc_bench_own_"  # what modules are called that are loaded from somebody's own file, with its digest
Json = Any  # what json.dumps takes; spelling the recursion out would help nobody


def later(version: int) -> dict[str, int]:
    """Metadata of a field that came when there were results already; raise the version when what it does changes."""
    return {"later": version}


def settings_of(value: Any) -> Json:
    """Every field of a settings value, nested ones too, with the class's `name` and `version` where it has them.

    A field that came later is left out while it has its default: older runs keep their names, and their results. Its
    own version stands beside it otherwise, since the version of the class is that of all runs.
    """
    if is_dataclass(value) and not isinstance(value, type):
        own = {key: getattr(type(value), key) for key in ("name", "version") if hasattr(type(value), key)}
        own |= {"file": own_file(value)} if own_file(value) else {}
        known = {field: getattr(value, field.name) for field in fields(value)}
        said = {field: one for field, one in known.items() if not ("later" in field.metadata and one == field.default)}
        versions = {f"{field.name} version": field.metadata["later"] for field in said if "later" in field.metadata}
        return own | {field.name: settings_of(one) for field, one in said.items()} | versions
    if isinstance(value, tuple | list):
        return [settings_of(item) for item in value]
    return value


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
    """The digest of the file that a value's class comes from, if it is somebody's own, where nobody counts versions."""
    module = type(value).__module__
    return module.rpartition("_")[2] if module.startswith(OWN_MODULE) else None


def digest_of(settings: Json, length: int = 12) -> str:
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def bytes_digest(chunks: Iterator[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()

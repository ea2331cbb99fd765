"""What was written into a results folder, and from what: unchanged outputs are kept, and only listed files deleted."""

import hashlib
import json
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path

from benchmark.disk.files import write_bytes, write_json
from benchmark.disk.results_folder import ResultsFolder
from benchmark.identity import Json

PACKAGE = Path(__file__).parents[1]


class Manifest:
    """Outputs by name, such as `tables/demo` or `figures/demo/roc_curves`.

    Each has the digest of what it was made from, the digests of its files, and a note that belongs to it.
    """

    def __init__(self, results: ResultsFolder):
        self._results, self._path = results, results.manifest
        try:
            outputs = json.loads(self._path.read_text())
        except (OSError, ValueError):
            outputs = {}
        self._outputs: dict[str, Json] = outputs if isinstance(outputs, dict) else {}

    def is_current(self, name: str, made_from: str) -> bool:
        """Made from the same, and nobody changed its files since."""
        output = self._outputs.get(name)
        return output is not None and output["made_from"] == made_from and self.is_intact(name)

    def is_intact(self, name: str) -> bool:
        if name not in self._outputs:
            return False
        paths = {self._folder(name) / Path(file).name: digest for file, digest in self._outputs[name]["files"].items()}
        return all(path.exists() and _digest(path.read_bytes()) == digest for path, digest in paths.items())

    def note(self, name: str) -> Json:
        return self._outputs.get(name, {}).get("note")

    def files(self, name: str) -> list[Path]:
        return [self._folder(name) / Path(file).name for file in self._outputs.get(name, {"files": ()})["files"]]

    def write(self, name: str, made_from: str, files: Mapping[str, bytes], note: Json = None) -> None:
        """Writes the files of an output; those that it had before and has no longer are deleted, unless changed."""
        folder = self._folder(name)
        for file, digest in self._outputs.get(name, {"files": {}})["files"].items():
            path = folder / Path(file).name
            if path.name not in files and path.is_file() and _digest(path.read_bytes()) == digest:
                path.unlink()
        for file, content in files.items():
            write_bytes(folder / file, content)
        digests = {file: _digest(content) for file, content in files.items()}
        self._outputs[name] = {"made_from": made_from, "files": digests, "note": note}

    def keep_only(self, prefix: str, names: Collection[str]) -> None:
        """Deletes all other outputs whose names begin like this."""
        for name in [name for name in self._outputs if name.startswith(prefix) and name not in names]:
            self.write(name, "", {})
            del self._outputs[name]

    def save(self) -> None:
        write_json(self._path, dict(sorted(self._outputs.items())))

    def _folder(self, name: str) -> Path:
        kind, _, rest = name.partition("/")
        folders = {"tables": self._results.tables, "figures": self._results.figures}
        return folders[kind](Path(rest).parts[0]) if kind in folders else self._results.root


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def code_digest(*patterns: str, libraries: Collection[str] = ()) -> str:
    """Of source files below `benchmark/`, and of the versions of libraries."""
    digest = hashlib.sha256(repr([(name, version(name)) for name in sorted(libraries)]).encode())
    for path in sorted({path for pattern in patterns for path in PACKAGE.glob(pattern) if path.is_file()}):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]

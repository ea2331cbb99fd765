"""What the report wrote into a results folder, and from what: current outputs are kept, only listed files deleted."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmark.disk.files import UNREADABLE, read_json, write_bytes, write_json
from benchmark.disk.results_folder import ResultsFolder
from benchmark.identity import Json

PACKAGE = Path(__file__).parents[1]
# An output's name and its file's: no other path is read, written or deleted.
OWN_FILE = re.compile(
    r"page/(?:report|details)\.html|tables/\w[\w.-]*/\w[\w.-]*\.(md|tex)|figures/\w[\w.-]*/(\w[\w.=-]*)/\2\.(svg|png)",
    re.ASCII,
)


@dataclass(frozen=True)
class Output:
    """Files by name, and a digest of what they were made from."""

    made_from: str
    files: Mapping[str, bytes]


class Manifest:
    """Outputs by name: `page`, `tables/demo`, `figures/demo/roc_curves`. The file has digests of their files."""

    def __init__(self, results: ResultsFolder):
        self._results = results
        try:
            entries = read_json(results.manifest).items()
        except UNREADABLE:
            entries = ()
        self._outputs: dict[str, Json] = {name: output for name, output in entries if _is_own(name, output)}

    def is_current(self, made_from: str) -> bool:
        """Whether the page was made from this, and nobody changed any file since."""
        is_intact = all(_content_digest(path) == digest for path, digest in self._listed())
        return is_intact and self._outputs.get("page", {}).get("made_from") == made_from

    def current(self, name: str, made_from: str) -> Output | None:
        """An output that was made from this, if nobody changed its files since."""
        output = self._outputs.get(name)
        if output is None or output.get("made_from") != made_from:
            return None
        paths = dict(self._listed(name))
        if any(_content_digest(path) != digest for path, digest in paths.items()):
            return None
        return Output(made_from, {path.name: path.read_bytes() for path in paths})

    def write(self, outputs: Mapping[str, Output]) -> None:
        """In the place of all outputs before; files that none has any longer are deleted, unless they were changed."""
        files = {
            self._folder(name) / file: content
            for name, output in outputs.items()
            for file, content in output.files.items()
        }
        for path, digest in self._listed():
            if path not in files and _content_digest(path) == digest:
                path.unlink()
        for path, content in files.items():
            if _content_digest(path) != _digest(content):
                write_bytes(path, content)
        listed = {
            name: {
                "made_from": output.made_from,
                "files": {file: _digest(content) for file, content in output.files.items()},
            }
            for name, output in sorted(outputs.items())
        }
        write_json(self._results.manifest, listed)

    def _listed(self, *names: str) -> Iterator[tuple[Path, str]]:
        """Files of these outputs, or of all, with their digests."""
        for name in names or self._outputs:
            for file, digest in self._outputs[name]["files"].items():
                yield self._folder(name) / file, digest

    def _folder(self, name: str) -> Path:
        kind, *rest = name.split("/")
        folders = {"tables": self._results.tables, "figures": self._results.figures}
        return folders[kind](rest[0]) if kind in folders else self._results.root


def _is_own(name: str, output: Json) -> bool:
    """Whether the report can have written this entry; another may have changed the file, to have others deleted."""
    files = output.get("files") if isinstance(output, dict) else None
    return isinstance(files, dict) and all(
        isinstance(digest, str) and OWN_FILE.fullmatch(f"{name}/{file}") for file, digest in files.items()
    )


def _content_digest(path: Path) -> str | None:
    return _digest(path.read_bytes()) if path.is_file() else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def code_digest(*patterns: str, libraries: Collection[str] = ()) -> str:
    """Of source files below `benchmark/`, and of the versions of libraries."""
    digest = hashlib.sha256(repr([(name, version(name)) for name in sorted(libraries)]).encode())
    files = {pattern: [path for path in PACKAGE.glob(pattern) if path.is_file()] for pattern in patterns}
    if missing := [pattern for pattern, found in files.items() if not found]:
        raise ValueError(f"no file is called {', '.join(missing)}, so a change of it would go unnoticed")
    for path in sorted({path for found in files.values() for path in found}):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]

"""What is damaged, orphaned or from another version in a results folder, and what to do about it."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from benchmark.data.noise import NoiseSettings
from benchmark.disk.files import OLD, PARTIAL, UNREADABLE, find_damage, has_checksums, is_transient
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from benchmark.evaluation.evaluate import TABLES
from benchmark.identity import Json, digest_of
from benchmark.networks import Backbone
from benchmark.record.run_record import open_record, read_metadata
from benchmark.runs.plan import RunSettings
from benchmark.runs.scores import read_scores
from benchmark.training import TrainingSettings
from benchmark.upkeep.status import is_held

DAMAGED, ORPHANED, OLDER, UNKNOWN = "damaged", "orphaned", "of another version", "unknown"
TEMPORARY = re.compile(r"\..+\.\d+")  # what storage.write_bytes fills before it gets its name
OF_CLASSES = {"name", "version", "file"}  # noted beside a value's own fields
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    state: str
    path: Path
    why: str
    what_to_do: str


Check = Callable[[ResultsFolder, Path], Iterator[Finding]]


def examine(results: ResultsFolder, report: Report = lambda done, total: None) -> Iterator[Finding]:
    """Reads every byte of every record, feature store and score, and changes nothing."""
    checks: list[tuple[Check, Path]] = [(_run, path) for path in results.all_runs()]
    checks += [(_store, path) for path in _inside(results.all_features)]
    checks += [(_scores, path) for path in sorted(results.root.glob("scores/*/*.npy"))]
    checks += [(_labels, path) for part in ("labels", "answers") for path in sorted(results.root.glob(f"{part}/*.npz"))]
    checks += [(_note, results.running(run_id)) for run_id in results.all_running()]
    checks += [(_temporary, path) for path in sorted(results.root.rglob(".*")) if TEMPORARY.fullmatch(path.name)]
    checks += [(_table, results.table_data(name)) for name in TABLES]
    for number, (check, path) in enumerate(checks, 1):
        try:
            yield from check(results, path)
        except (OSError, MemoryError) as error:
            yield Finding(UNKNOWN, path, f"it cannot be read now ({error})", "mend that and look again")
        report(number, len(checks))


def _run(results: ResultsFolder, folder: Path) -> Iterator[Finding]:
    name = folder.name
    if name.startswith("."):
        run_id = name.removeprefix(PARTIAL).removeprefix(OLD)
        if not is_held(results, run_id):
            yield Finding(ORPHANED, folder, "a run was begun and its process is gone", DELETE)
        return
    try:
        open_record(folder)
        about = read_metadata(folder)
        wrong = find_damage(folder)
    except LincBenchError as error:
        about, wrong = {}, str(error)
    if wrong is not None:
        yield Finding(DAMAGED, folder, wrong, "run its study again: it is trained anew, to the same bytes")
        return
    settings = about["settings"]
    if digest_of(settings) != name.rpartition("-")[2]:
        yield Finding(ORPHANED, folder, "its settings are not those of its name", DELETE)
    elif changed := _other_fields(settings):
        why = f"its settings {changed} are not those of this version, so no study finds it"
        yield Finding(OLDER, folder, why, f"{DELETE}, or use the version that made it ({about.get('commit')})")
    elif not has_checksums(folder):
        yield Finding(OLDER, folder, "it has no checksums, so damage cannot be seen", "run its study with --force")


def _other_fields(settings: Json) -> str:
    """Fields of a run's settings that this version lacks, or that it has and they do not."""
    kinds = {"": RunSettings, "noise": NoiseSettings, "backbone": Backbone, "training": TrainingSettings}
    found: set[str] = set()
    for part, kind in kinds.items():
        there = (settings.get(part) if part else settings) if isinstance(settings, dict) else None
        found |= set(there if isinstance(there, dict) else ()) ^ {field.name for field in fields(kind)}
    return ", ".join(sorted(found - OF_CLASSES))


def _store(results: ResultsFolder, folder: Path) -> Iterator[Finding]:
    if folder.name.startswith("."):
        if not is_held(results, folder.name.removeprefix(PARTIAL)):
            todo = "run its study again: it goes on from there; or `linc-bench features clean --unfinished`"
            yield Finding(ORPHANED, folder, "features were begun and nobody is at it", todo)
    elif (wrong := find_damage(folder)) is not None or not (folder / "features.npy").exists():
        yield Finding(DAMAGED, folder, wrong or "it has no features", RECOMPUTE.format(folder.name))
    elif not has_checksums(folder):
        yield Finding(OLDER, folder, "it has no checksums, so damage cannot be seen", RECOMPUTE.format(folder.name))


def _scores(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    if not results.run(path.parent.name).exists():
        yield Finding(ORPHANED, path, "the run that they belong to is not there", DELETE)
        return
    try:
        read_scores(path)
        is_checked = "crc32" in json.loads(path.with_suffix(".json").read_text())
    except UNREADABLE as error:
        if is_transient(error):
            raise
        yield Finding(DAMAGED, path, str(error), "run its study again: they are computed anew, without training")
        return
    if not is_checked:
        yield Finding(OLDER, path, "they have no checksum, so damage cannot be seen", "run its study with --force")


def _note(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    if not is_held(results, path.stem):
        yield Finding(ORPHANED, path, "it says that a run is trained, and nobody is at it", "run its study again")


def _labels(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                file[name]  # reading it compares it with its checksum
    except UNREADABLE as error:
        if is_transient(error):
            raise
        yield Finding(DAMAGED, path, str(error), "delete it and run its study again: it is written anew")


def _table(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    try:
        read_table(results, path.stem)
    except (LincBenchError, ValueError, OSError) as error:
        if is_transient(error):
            raise
        yield Finding(DAMAGED, path, str(error), "restore it from version control, or delete it and run its studies")
        return


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def _temporary(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    yield Finding(ORPHANED, path, "a file was begun and not finished", f"{DELETE}, unless a command is running")


DELETE = "delete it"
RECOMPUTE = "`linc-bench features clean {}`; they are computed again when needed"

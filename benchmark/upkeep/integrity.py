"""`linc-bench doctor`: what is damaged, orphaned or of another version in a results folder, and what to do about it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from benchmark.disk import OLD, PARTIAL, TABLES, UNREADABLE, ResultsFolder, find_damage, is_transient, open_arrays
from benchmark.disk.tables import OtherColumnsError, read_table, unknown_runs
from benchmark.errors import LincBenchError
from benchmark.identity import Json, digest_of
from benchmark.networks import Backbone
from benchmark.noise import NoiseSettings
from benchmark.record import open_record, read_metadata
from benchmark.runs import RunSettings
from benchmark.runs.scores import read_scores
from benchmark.training import TrainingSettings
from benchmark.upkeep.status import is_locked

DAMAGED, ORPHANED, OTHER_VERSION, UNKNOWN = "damaged", "orphaned", "of another version", "unknown"
# The names of folders and files while they are written (`disk.files`).
LEFTOVER = re.compile(rf"({re.escape(PARTIAL)}|{re.escape(OLD)}).+|\..+\.\d+")
CLASS_SETTINGS = {"name", "version", "file"}  # beside the fields of a settings value
DELETE = "delete it"


@dataclass(frozen=True)
class Finding:
    state: str
    path: Path
    why: str
    what_to_do: str


Check = Callable[[ResultsFolder, Path], Iterator[Finding]]
Report = Callable[[int, int], None]


def check_integrity(results: ResultsFolder, report: Report = lambda done, total: None) -> Iterator[Finding]:
    """Reads every byte of every record, feature store and score, and changes nothing."""
    files: dict[Check, list[Path]] = {
        _check_run: sorted(results.root.glob("runs/[!.]*")),
        _check_features: sorted(results.root.glob("features/[!.]*")),
        _check_scores: sorted(results.root.glob("scores/*/*.npy")),
        _check_labels: sorted(
            file
            for kind in ("labels", "answers", "duplicates", "checks")
            for file in results.root.glob(f"{kind}/*.npz")
        ),
        _check_leftover: [
            *(results.running(run_id) for run_id in results.all_running()),
            *(path for path in sorted(results.root.rglob(".*")) if LEFTOVER.fullmatch(path.name)),
        ],
        _check_table: [results.table_data(name) for name in TABLES],
    }
    calls = [(check, path) for check, paths in files.items() for path in paths]
    for number, (check, path) in enumerate(calls, 1):
        try:
            yield from check(results, path)
        except UNREADABLE as error:
            if is_transient(error):
                yield Finding(UNKNOWN, path, f"it cannot be read now ({error})", "fix that and check again")
            else:
                yield Finding(DAMAGED, path, str(error), REPAIRS.get(check, "delete it and run its study again"))
        report(number, len(calls))


def _check_run(results: ResultsFolder, folder: Path) -> Iterator[Finding]:
    try:
        settings, problem = open_record(folder).settings, find_damage(folder)
    except LincBenchError as error:
        settings, problem = None, str(error)
    if problem is not None:
        raise ValueError(problem)
    if digest_of(settings) != folder.name.rpartition("-")[2]:
        yield Finding(ORPHANED, folder, "its settings are not those of its name", DELETE)
    elif changed := _changed_fields(settings):
        why = f"its settings {changed} are not those of this version, so no study finds it"
        commit = read_metadata(folder).get("commit")
        yield Finding(OTHER_VERSION, folder, why, f"{DELETE}, or use the version that made it ({commit})")


def _changed_fields(settings: Json) -> str:
    """Fields that a run's settings have and this version does not, or the other way round."""
    kinds = {"": RunSettings, "noise": NoiseSettings, "backbone": Backbone, "training": TrainingSettings}
    changed: set[str] = set()
    for part, kind in kinds.items():
        recorded = (settings.get(part) if part else settings) if isinstance(settings, dict) else None
        changed |= set(recorded if isinstance(recorded, dict) else ()) ^ {field.name for field in fields(kind)}
        for later in (field.name for field in fields(kind) if "later" in field.metadata):
            changed -= {later, f"{later} version"}  # left out of the settings while it has its default
    return ", ".join(sorted(changed - CLASS_SETTINGS))


def _check_features(results: ResultsFolder, folder: Path) -> Iterator[Finding]:
    if (problem := find_damage(folder)) is not None or not (folder / "features.npy").exists():
        todo = f"remove it with `linc-bench features clean {folder.name}`; it is computed again when needed"
        yield Finding(DAMAGED, folder, problem or "it has no features", todo)


def _check_scores(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    if results.run(path.parent.name).exists():
        read_scores(path)
    else:
        yield Finding(ORPHANED, path, "their run is not there", DELETE)


def _check_labels(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    with open_arrays(path) as file:
        for name in file:
            file[name]  # reading it compares its checksum
    yield from ()


def _check_leftover(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    """Of a run, a computation of features, or the writing of a file."""
    if not is_locked(results, path.name.removeprefix(PARTIAL).removeprefix(OLD).removesuffix(".json")):
        todo = "run its study again; delete what is left when no command is running"
        yield Finding(ORPHANED, path, "an interrupted command left it", todo)


def _check_table(results: ResultsFolder, path: Path) -> Iterator[Finding]:
    try:
        rows = read_table(results, path.stem)
        if "run" in rows and (unknown := unknown_runs(rows, read_table(results, "runs"))):
            why = f"runs.csv does not describe {len(unknown)} of its runs, as {unknown[0]}"
            yield Finding(ORPHANED, path, why, "restore runs.csv, run their study again, or delete the rows")
    except LincBenchError as error:
        state = OTHER_VERSION if isinstance(error, OtherColumnsError) else DAMAGED
        yield Finding(state, path, str(error), REPAIRS[_check_table])


# What to do with something that is damaged.
REPAIRS: dict[Check, str] = {
    _check_run: "run its study again, which trains it again, to the same bytes",
    _check_scores: "run its study again, which computes them again without training",
    _check_labels: "delete it and run its study again, which writes it again",
    _check_table: "restore it from version control, or delete it and run its studies again",
}

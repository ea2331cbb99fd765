"""Packs: the runs of a study in one file, so that others score a detector on them without data, weights or training.

A pack is a plain tar. Its first member, `pack.json`, says of each run what a plan needs to know, and of each other
member, in their order, the size and SHA-256. The others are records, given labels, answer keys and flip files, under
the paths that they have in a results folder. These paths follow from the runs, so that a pack cannot name others; its
arrays are opened without unpickling; and nothing reaches a results folder before everything was read and compared.
"""

import io
import json
import shutil
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.filesize import decimal

from benchmark.disk import PARTIAL, UNREADABLE, ResultsFolder, atomic_file, is_transient, locked
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError, error_message, unknown_name
from benchmark.identity import Json, file_digest
from benchmark.names import check_name
from benchmark.paths import regular_file
from benchmark.upkeep.packed_runs import PackedRun, check_files

FORMAT, HEADER = "LiNC-Bench pack 1", "pack.json"
LARGEST_HEADER = 10**8
STAGED = "unpack"  # the lock, and the folder in which a pack is checked


@dataclass(frozen=True)
class Pack:
    path: Path
    study: str
    runs: tuple[PackedRun, ...]
    files: Mapping[str, Json]  # size and digest of each, in the order of the members

    def __str__(self) -> str:
        size = decimal(sum(file["bytes"] for file in self.files.values()))
        return f"{self.path}: {len(self.runs)} runs of {self.study}, {len(self.files)} files, {size}"


def write_pack(path: Path, study: str, results: ResultsFolder, datasets: Collection[str]) -> tuple[Pack, int]:
    """The finished runs of a study, or those on some data sets; also says how many have no record here."""
    if path.exists():
        raise LincBenchError(f"{path} exists. Choose another name for the pack, or delete the file first.")
    run_ids = _judged_runs(results, study, datasets)
    there = [run_id for run_id in run_ids if results.run(run_id).is_dir()]
    if not there:
        raise LincBenchError(
            f"{results.root} has no records of {study}, only rows of {len(run_ids)} runs. Name the folder in which "
            "they were trained with --results DIR, or train them with `linc-bench run`."
        )
    try:
        runs = [PackedRun.of_record(results, run_id) for run_id in there]
        check_files(results, runs)
        files: dict[str, Json] = {
            name: {"bytes": file.stat().st_size, "sha256": file_digest(file)}
            for name, file in _members(results, runs).items()
        }
    except (LincBenchError, *UNREADABLE) as error:
        if is_transient(error):
            raise
        raise LincBenchError(f"{study} cannot be packed: {_why(error)}. Run it again, and then pack it.") from error
    pack = Pack(path, study, tuple(runs), files)
    about = {"format": FORMAT, "study": study, "runs": {packed.run.run_id: packed.about for packed in runs}}
    header = json.dumps(about | {"files": files}, indent=1, allow_nan=False).encode()
    with atomic_file(path) as opened, tarfile.open(fileobj=opened, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(HEADER, len(header)), io.BytesIO(header))
        for name, file in files.items():
            with (results.root / name).open("rb") as content:
                tar.addfile(_member(name, file["bytes"]), content)
    return pack, len(run_ids) - len(there)


def _judged_runs(results: ResultsFolder, study: str, datasets: Collection[str]) -> list[str]:
    """Those with rows of their own; further trainings, of which only averages are shown, are left out."""
    runs, metrics, accuracy = (read_table(results, name) for name in ("runs", "metrics", "accuracy"))
    of_study = runs[runs["study"] == study]
    if of_study.empty:
        raise unknown_name(f"study with runs in {results.root}", study, runs["study"].unique())
    for name in datasets:
        if name not in set(of_study["dataset"]):
            raise unknown_name(f"data set in the runs of {study}", name, of_study["dataset"].unique())
    chosen = of_study[of_study["dataset"].isin(datasets)] if datasets else of_study
    alone = {*metrics.loc[metrics["runs_averaged"] == 1, "run"], *accuracy["run"]}
    return sorted(set(chosen["run"]) & alone)


def _members(results: ResultsFolder, runs: Iterable[PackedRun]) -> dict[str, Path]:
    """Every file of these runs, by its name in a pack, and in the order of a pack."""
    runs = sorted(runs, key=lambda packed: packed.run.run_id)
    folders = [(results.run(packed.run.run_id), packed) for packed in runs]
    files = [*_label_files(results, runs), *(folder / name for folder, packed in folders for name in packed.files)]
    return {file.relative_to(results.root).as_posix(): file for file in files}


def _label_files(results: ResultsFolder, runs: Iterable[PackedRun]) -> Iterator[Path]:
    for noise_id in sorted({packed.run.noise_id for packed in runs}):
        yield from (results.given_labels(noise_id), results.answer_key(noise_id), results.flips(noise_id))


def _member(name: str, size: int) -> tarfile.TarInfo:
    """Of nobody and of no time, so that the same runs give the same bytes."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def read_pack(path: Path) -> Pack:
    """What `pack.json` says, if this version of the code can use it; no other member is read."""
    with _opened(path) as tar:
        member = _next(tar, HEADER)
        if member.size > LARGEST_HEADER:
            raise ValueError(f"{HEADER} has {member.size:,} bytes")
        about = json.loads(_content(tar, member).read())
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise ValueError(f"its format is not '{FORMAT}'")
        check_name("study", about["study"])
        runs = tuple(PackedRun.of_settings(run_id, packed) for run_id, packed in about["runs"].items())
        if not runs or list(about["files"]) != list(_members(ResultsFolder(), runs)):
            raise ValueError(f"the files that {HEADER} lists are not those of its runs")
        if any(type(file["bytes"]) is not int for file in about["files"].values()):
            raise ValueError(f"{HEADER} has sizes that are no numbers")
        return Pack(path, about["study"], runs, about["files"])


def unpack(pack: Pack, results: ResultsFolder) -> None:
    """Into a results folder; keeps what is there with the same bytes, and refuses the pack if others are there."""
    results.prepare()
    with locked(results.locks, STAGED):
        staged = ResultsFolder(results.root / f"{PARTIAL}{STAGED}")
        shutil.rmtree(staged.root, ignore_errors=True)  # a killed command left it
        try:
            _extract(pack, staged)
            _refuse_conflicts(pack, results)
            _move(pack, staged, results)
        finally:
            shutil.rmtree(staged.root, ignore_errors=True)


def _extract(pack: Pack, staged: ResultsFolder) -> None:
    with _opened(pack.path) as tar:
        _next(tar, HEADER)
        for name, listed in pack.files.items():
            member, staged_file = _next(tar, name), staged.root / name
            if member.size != listed["bytes"]:
                raise ValueError(f"{name} has {member.size:,} bytes, where {HEADER} says {listed['bytes']:,}")
            with atomic_file(staged_file) as file, _content(tar, member) as content:
                shutil.copyfileobj(content, file)
            if file_digest(staged_file) != listed["sha256"]:
                raise ValueError(f"{name} is not what {HEADER} says: its bytes have another SHA-256")
        if (further := tar.next()) is not None:
            raise ValueError(f"it has a further member, {further.name!r}, that {HEADER} does not list")
        check_files(staged, pack.runs)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Says of every error inside that the pack is refused, and why."""
    regular_file(path, f"The pack {path}")
    try:
        with tarfile.open(path, "r:") as tar:
            yield tar
    except (LincBenchError, tarfile.TarError, *UNREADABLE) as error:
        if is_transient(error):
            raise
        hint = "Fetch it again, or have it made again with `linc-bench pack`."
        raise LincBenchError(f"The pack {path} is refused: {_why(error)}. {hint}") from error


def _why(error: BaseException) -> str:
    is_ours = type(error) in (LincBenchError, ValueError)
    return str(error).removesuffix(".") if is_ours else f"something is damaged ({error_message(error)})"


def _next(tar: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    """The next member, which has to be this file, and no link, device or other kind."""
    member = tar.next()
    if member is None:
        raise ValueError(f"{name} is missing")
    if member.name != name:
        raise ValueError(f"it has the member {member.name!r} where {name} is expected")
    if not member.isreg() or member.issparse() or member.size < 0:
        raise ValueError(f"its member {name} is not a file")
    return member


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None, "it is a file"
    return content


def _refuse_conflicts(pack: Pack, results: ResultsFolder) -> None:
    """What is there already has the bytes of the pack."""
    folders = [(results.run(packed.run.run_id), packed.files) for packed in pack.runs]
    other = [folder for folder, files in folders if folder.exists() and _names(folder) != files]
    for name, listed in pack.files.items():
        file = results.root / name
        if file.exists() and not (file.is_file() and file_digest(file) == listed["sha256"]):
            other.append(file)
    if other:
        raise LincBenchError(
            f"{other[0]} is there already, with other content than in {pack.path}. Nothing was changed; unpack into "
            "another folder with --results DIR."
        )


def _names(folder: Path) -> list[str]:
    """Of its files; of none if it is a file itself."""
    return sorted(file.name for file in folder.glob("*"))


def _move(pack: Pack, staged: ResultsFolder, results: ResultsFolder) -> None:
    """Labels first, since a record is useless without them; each is whole or absent, should this be interrupted."""
    for file in _label_files(staged, pack.runs):
        _place(file, results.root / file.relative_to(staged.root))
    for packed in pack.runs:
        with locked(results.locks, packed.run.run_id, seconds=0):
            _place(staged.run(packed.run.run_id), results.run(packed.run.run_id))


def _place(path: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)

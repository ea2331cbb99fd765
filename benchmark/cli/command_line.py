"""The command line: `linc-bench list`, `run`, `profile`, `report` and `verify`, and how all commands fail.

`audit` and `apply-review` are in cli_audit.py; `features`, `status` and `doctor` in cli_upkeep.py.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from benchmark.cli import audit as cli_audit
from benchmark.cli import upkeep as cli_upkeep
from benchmark.cli.overrides import overridden, with_whole_paths, within
from benchmark.data.datasets import known_datasets, missing_file
from benchmark.data.noise import NOISE_KINDS
from benchmark.disk.results_folder import DEFAULT_RESULTS, ResultsFolder
from benchmark.display.tables import for_terminal
from benchmark.errors import LincBenchError
from benchmark.evaluation.evaluate import evaluate
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress, console_for, duration
from benchmark.networks.backbones import SUGGESTED, load_backbone
from benchmark.overhead.growth import measure_growth
from benchmark.overhead.profiling import Effort, profile
from benchmark.report.report import make_report, report_overhead
from benchmark.runs.estimate import estimate
from benchmark.runs.own_detectors import loaded_files
from benchmark.runs.pipeline import Outcome, carry_out
from benchmark.runs.plan import Plan, Sources, Unit, plan_study
from benchmark.runs.studies import STUDIES, LineUp, study_named
from benchmark.upkeep.verify import SAME, TOLERANCE, WITHIN, choose, plans_of, verify
from detectors import DETECTORS


def main(arguments: Sequence[str] | None = None) -> int:
    options = command_line().parse_args(arguments)
    console, problems = console_for(), console_for(stderr=True)
    _hear_sigterm()
    try:
        return int(options.command(options, console))
    except LincBenchError as error:
        problems.print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
    except KeyboardInterrupt as stop:
        problems.print("Stopped. What was finished is kept; the same command goes on from there.")
        return 143 if isinstance(stop, Terminated) else 130
    except OSError as error:
        if error.strerror is None:
            raise
        where = f" ({error.filename})" if error.filename else ""
        problems.print(
            f"error: {error.strerror}{where}. What was finished is kept; mend that, make room or choose another folder "
            "(see --help), then run the same command again.", markup=False, soft_wrap=True,
        )  # fmt: skip
    return 1


class Terminated(KeyboardInterrupt):
    """Somebody asked us to end, as a cluster does when time is up."""


def _hear_sigterm() -> None:
    """It ends us as Ctrl-C does: locks freed, workers ended, and a sentence."""

    def stop(number: int, frame: object) -> None:
        raise Terminated

    if threading.current_thread() is threading.main_thread():  # elsewhere Python cannot listen
        signal.signal(signal.SIGTERM, stop)


def command_line() -> argparse.ArgumentParser:
    about = "Compare detectors of wrong labels, or audit the labels of your own images."
    parser = argparse.ArgumentParser(prog="linc-bench", description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="show studies, detectors, data sets, backbones and noise kinds")
    listing.set_defaults(command=_list)

    run = commands.add_parser("run", help="train and score a study, then report")
    run.set_defaults(command=_run)
    _add_study_options(run)
    run.add_argument("--rate", action="append", type=float, help="share of wrong labels, 0 to 1; repeatable")
    run.add_argument("--seed", action="append", type=int, help="training seed; repeatable")
    run.add_argument("--noise-seed", action="append", type=int, help="which labels are wrong; repeatable")
    run.add_argument("--noise", help="noise kind")
    run.add_argument(
        "--plain", action="store_true", help="run the whole network in every step, without cached features"
    )
    run.add_argument("--augment", action="store_true", help="random flips and crops in training; implies --plain")
    run.add_argument("--workers", type=int, help="runs at a time; default: as many as there are processors")
    run.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on a Dask cluster: its scheduler's address, `local` for processes of this machine, or `current` "
        "for the client of a Python program",
    )
    run.add_argument("--name", help="what the rows of a changed study go by; default: STUDY-modified")
    run.add_argument("--force", action="store_true", help="train again what is there already")
    run.add_argument("--dry-run", action="store_true", help="show the plan, with time and disk, and stop")

    profile = commands.add_parser("profile", help="measure what each detector of a study costs")
    profile.set_defaults(command=_profile, rate=None, seed=None, noise_seed=None, noise=None, augment=False, name=None)
    _add_study_options(profile)
    profile.add_argument("--path", choices=("fast", "plain", "both"), default="both", help="default: both")
    profile.add_argument("--rounds", type=int, help=f"how often each run is measured; default: {Effort().rounds}")
    profile.add_argument("--samples", type=int, help=f"training samples that are measured; default: {Effort().samples}")
    profile.add_argument(
        "--growth", action="store_true", help="instead: growth with samples, classes and epochs, on synthetic features"
    )

    report = commands.add_parser("report", help="make tables and figures from what is on disk")
    report.set_defaults(command=_report)
    report.add_argument("study", nargs="?", help="default: every study with results")

    verify = commands.add_parser("verify", help="make committed rows again, picked at random, and compare")
    verify.set_defaults(command=_verify)
    verify.add_argument("study", nargs="?", help="default: every study whose rows can be made again")
    verify.add_argument("--sample", type=int, default=5, metavar="N", help="rows to make again; default: 5")
    verify.add_argument("--seed", type=int, help="which rows; default: others every time")
    verify.add_argument("--workers", type=int, help="runs at a time; default: as many as there are processors")
    verify.add_argument("--dataset", action="append", metavar="NAME=PATH", help="a file that was used for a data set")
    _add_source_options(verify)

    cli_audit.add_commands(commands)

    features = commands.add_parser("features", help="list cached features, or remove them")
    features.set_defaults(command=cli_upkeep.features)
    features.add_argument("action", choices=("list", "clean"))
    features.add_argument("store", nargs="*", help="what to remove, by the names that `list` shows")
    features.add_argument("--unfinished", action="store_true", help="remove what was begun and not finished")
    features.add_argument("--all", action="store_true", help="remove every store; they are computed again when needed")

    status = commands.add_parser("status", help="tell which runs are done, running, failed, or begun and abandoned")
    status.set_defaults(command=cli_upkeep.status)

    doctor = commands.add_parser("doctor", help="look for what is damaged, orphaned or of another version")
    doctor.set_defaults(command=cli_upkeep.doctor)
    for command in (run, profile, report, verify, features, status, doctor):
        command.add_argument("--results", type=Path, default=DEFAULT_RESULTS, metavar="DIR", help="default: results")
    return parser


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", default="demo", help="default: demo")
    parser.add_argument(
        "--dataset",
        action="append",
        metavar="DATASET",
        help="a name or a path (.npz, .csv, image folder), or NAME=PATH: a file for the study's data set of that name; "
        "default: all of the study's; repeatable",
    )
    parser.add_argument("--detector", action="append", help="a name, or path/to/file.py:Class; repeatable")
    parser.add_argument("--line-up", action="append", help="original or hcat; default: all of the study's; repeatable")
    parser.add_argument("--backbone", help="any timm name")
    parser.add_argument("--image-size", type=int, metavar="PIXELS")
    parser.add_argument("--feature-dtype", choices=("float16", "float32"), help="precision of the stored features")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int)
    _add_source_options(parser)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), help="default: auto")


def _add_source_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, metavar="FILE", help="safetensors or pth file for the backbone")
    parser.add_argument(
        "--data-root",
        type=Path,
        metavar="DIR",
        help="where MedMNIST files are, or are downloaded to; default: MedMNIST's own, ~/.medmnist",
    )


def _list(_: argparse.Namespace, console: Console) -> int:
    sections = {
        "studies": {study.name: study.summary for study in STUDIES},
        "detectors": {detector.name: detector.summary for detector in DETECTORS},
        "data sets": known_datasets()
        | {
            "path/to/file.npz": "any file in MedMNIST's layout",
            "path/to/folder": "images in one sub-folder per class, or train, val and test folders of such",
            "path/to/file.csv": "columns path and label, optionally split",
        },
        "backbones": SUGGESTED | {"any timm name": "weights from the hub, or from a file with --weights"},
        "noise kinds": {kind.name: kind.summary for kind in NOISE_KINDS},
    }
    for title, entries in sections.items():
        table = Table(
            title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2)
        )
        for name, summary in entries.items():
            table.add_row(name, summary)
        console.print(table)
        console.print()
    return 0


def _run(options: argparse.Namespace, console: Console) -> int:
    study = overridden(study_named(options.study), options)
    results = ResultsFolder(options.results)
    sources = Sources(results, options.data_root, options.weights)
    if options.dask is not None:  # workers may be elsewhere on the file system
        study, sources = with_whole_paths(study), sources.with_whole_paths()
    plan = plan_study(study, sources, options.force)
    training = study.grids[0].training
    workers = within("--workers", options.workers, 1, 4096) or default_workers(training.threads, training.device)
    if not plan.stores_to_compute() and options.dask is None:
        workers = min(workers, max(1, len(plan.units)))
    if options.dry_run:
        _show_plan(plan, workers, console)
        return 0
    results.prepare()
    for note in plan.notes():
        console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    progress = Progress(console_for(stderr=True))
    with make_executor(workers, loaded_files(), options.dask, training.device, progress.say) as executor:
        outcomes = carry_out(plan, executor, progress)
    evaluate(plan, outcomes)
    trained, failed = (sum(map(bool, counts)) for counts in zip(*((o.trained, o.error) for o in outcomes), strict=True))
    console.print(
        f"{trained} of {len(plan.units)} runs trained, {len(plan.units) - trained - failed} were there already"
        f"{f', {failed} failed' if failed else ''}.",
        highlight=False,
    )
    if any(outcome.error is None for outcome in outcomes):
        make_report(results, study.name, console, {unit.run.run_id for unit in plan.units})
    return _tell_failures(outcomes, results, console)


def _profile(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    rounds = within("--rounds", options.rounds, 6, 1000) or Effort().rounds  # fewer have no interval
    effort = Effort(rounds, within("--samples", options.samples, 32, 10**6) or Effort().samples)
    progress = Progress(console_for(stderr=True))
    if options.growth:
        if options.detector or options.dataset or options.samples or options.rounds:
            raise LincBenchError(
                "--growth measures every detector on synthetic features of many sizes; leave --detector, --dataset, "
                "--samples and --rounds out, or leave --growth out."
            )
        results.prepare()
        measure_growth(results, progress)
    else:
        for plain in {"fast": (False,), "plain": (True,), "both": (False, True)}[options.path]:
            options.plain = plain
            grid = overridden(study_named(options.study), options).grids[0]
            if not grid.detectors:
                raise LincBenchError(f"The study {options.study} scores no detectors. Name some with --detector.")
            if options.detector:  # what a whole line-up shares is not to be mixed up with what a part of it shares
                parts = [LineUp(f"{line_up.name}, chosen", line_up.detectors) for line_up in grid.line_ups]
                grid = replace(grid, line_ups=tuple(parts))
            results.prepare()
            profile(grid, Sources(results, options.data_root, options.weights), effort, progress)
    report_overhead(results, console)
    return 0


def _show_plan(plan: Plan, workers: int, console: Console) -> None:
    table = Table(title=f"plan of {plan.study.name}", title_justify="left", title_style="bold")
    for column in ("run", "training", "scoring"):
        table.add_column(column, overflow="fold")
    for unit in plan.units:
        table.add_row(unit.run.run_id, plan.to_train.get(unit, "there"), _scoring_state(unit, unit in plan.to_train))
    console.print(table)
    plan.sources.results.check()
    stores = plan.stores_to_compute()
    if stores and plan.sources.weights_file is not None:
        load_backbone(plan.units[0].run.backbone, 2, plan.sources.weights_file, 0, torch.device("cpu"))
    for argument in plan.study.datasets:
        missing = missing_file(argument, plan.sources.data_root)
        if missing is not None:
            console.print(f"To be downloaded: {missing}", highlight=False, soft_wrap=True)
    expected = estimate(plan, workers)
    console.print(
        f"{len(plan.to_train)} of {len(plan.units)} runs to train, {workers} at a time; feature stores to compute: "
        f"{len(stores)}; about {duration(expected.seconds)} and {decimal(expected.bytes_on_disk)} of disk "
        "(from timing one batch here).", highlight=False, soft_wrap=True,
    )  # fmt: skip


def _scoring_state(unit: Unit, needed: bool) -> str:
    missing = [detector.label for detector in unit.detectors if needed or not unit.score_file(detector).exists()]
    there = len(unit.detectors) - len(missing)
    return ", ".join(missing + ([f"{there} there"] if there else [])) or "none"


def _report(options: argparse.Namespace, console: Console) -> int:
    make_report(ResultsFolder(options.results), options.study, console)
    return 0


def _verify(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    count = within("--sample", options.sample, 1, 10**6) or 1
    seed = within("--seed", options.seed, 0, 2**31)
    draw = int.from_bytes(os.urandom(2)) if seed is None else seed
    studies = [study_named(options.study)] if options.study else STUDIES
    sources = Sources(results, options.data_root, options.weights)
    choices, known, others = choose(results, plans_of(studies, sources, options.dataset or ()), count, draw)
    console.print(
        f"{len(choices)} of {known} rows that can be made again here ({others} cannot: other data, weights, device or "
        f"version); to pick the same ones again: --seed {draw}", highlight=False, soft_wrap=True,
    )  # fmt: skip
    workers = within("--workers", options.workers, 1, 4096) or default_workers(1, "cpu")
    with make_executor(min(workers, len(choices))) as executor:
        found = verify(choices, executor, Progress(console_for(stderr=True)))
    moved = found[found["verdict"] != SAME]
    for table in [for_terminal("Numbers that are not the same", moved)] if len(moved) else []:
        console.print(table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found["verdict"].value_counts().items())
    console.print(
        f"{len(found)} numbers of {len(choices)} rows, made again from nothing: {counts}. On another processor than "
        f"the one that made them AUROCs may move by {TOLERANCE['auroc']:g}, all else by {TOLERANCE['last_test']:g}.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    return 0 if found["verdict"].isin([SAME, WITHIN]).all() else 1


def _tell_failures(outcomes: list[Outcome], results: ResultsFolder, console: Console) -> int:
    failures = []
    for outcome in outcomes:
        log = results.log(outcome.run_id)
        details = f" (details: {log})" if log.exists() else ""
        if outcome.error is not None:
            failures.append(f"{outcome.run_id}: {outcome.error}{details}")
        failures += [f"{what} on {outcome.run_id}: {why}{details}" for what, why in outcome.failures.items()]
    for failure in failures:
        console.print(f"failed: {failure}", highlight=False, markup=False, soft_wrap=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

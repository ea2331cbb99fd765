"""Commands that look after a results folder: `linc-bench features`, `status`, `pack`, `unpack`, `doctor`, `verify`."""

import argparse
import os
from collections import Counter
from pathlib import Path

from rich.filesize import decimal

from benchmark.cli.terminal import print_table, say, terminal
from benchmark.disk import ResultsFolder, locked
from benchmark.errors import LincBenchError, unknown_name
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress
from benchmark.networks.feature_store import remove_store, store_bytes, stores_in
from benchmark.runs import STUDIES, Sources, study_named
from benchmark.upkeep.integrity import DAMAGED, check_integrity
from benchmark.upkeep.status import DONE, FAILED, INTERRUPTED, RUNNING, read_status


def features(options: argparse.Namespace) -> int:
    results: ResultsFolder = options.results
    results.check_exists()
    stores = {store.name: store for store in stores_in(results.all_features)}
    if options.action == "clean":
        return _clean_features(options, results, stores)
    if not stores:
        say(f"No features in {results.all_features}.")
        return 0
    rows = [
        (name, decimal(store_bytes(store)), "complete" if store.exists() else "unfinished")
        for name, store in stores.items()
    ]
    print_table(f"features in {results.all_features}", rows, ["store", "size", "state"])
    return 0


def _clean_features(options: argparse.Namespace, results: ResultsFolder, stores: dict[str, Path]) -> int:
    for name in options.store:
        if name not in stores:
            raise unknown_name("feature store", name, stores)
    if not (options.store or options.all or options.unfinished):
        raise LincBenchError("Choose: names that `linc-bench features list` shows, --unfinished, or --all.")
    for run_id in results.all_running():
        with locked(results.locks, run_id, seconds=0):
            pass  # a run that holds its lock reads features: this is an error
    removed, freed = 0, 0
    for name, store in stores.items():
        if options.all or name in options.store or (options.unfinished and not store.exists()):
            with locked(results.locks, name, seconds=0):
                removed, freed = removed + 1, freed + store_bytes(store)
                remove_store(store)
    say(f"{removed} removed, {decimal(freed)} freed.")
    return 0


def status(options: argparse.Namespace) -> int:
    results: ResultsFolder = options.results
    results.check_exists()
    runs = read_status(results)
    if rows := [run for run in runs if run.state != DONE]:
        print_table(f"runs in {results.root}", rows, ["run", "state", "what is known"])
    counts = Counter(run.state for run in runs)
    say(", ".join(f"{counts[state]:,} {state}" for state in (DONE, RUNNING, FAILED, INTERRUPTED)))
    return 0


def pack(options: argparse.Namespace) -> int:
    from benchmark.upkeep.packs import write_pack  # loads torch

    options.results.check_exists()
    packed, others = write_pack(options.file, options.study, options.results, options.dataset)
    left_out = f" {others} runs have rows in {options.results.root} but no records, and are left out." if others else ""
    say(f"{packed}.{left_out} To score a detector on them: linc-bench run --from-pack {options.file} --detector NAME")
    return 0


def unpack_runs(options: argparse.Namespace) -> int:
    from benchmark.upkeep.packs import read_pack, unpack

    packed = read_pack(options.file)
    unpack(packed, options.results)
    say(f"{packed}. They are in {options.results.root}.")
    return 0


def doctor(options: argparse.Namespace) -> int:
    results: ResultsFolder = options.results
    results.check_exists()
    with Progress(terminal(stderr=True)).counting("checking every byte, files") as report:
        findings = list(check_integrity(results, report))
    if not findings:
        say(f"{results.root}: everything is intact.")
        return 0
    rows = [
        (str(finding.path.relative_to(results.root)), finding.state, finding.why, finding.what_to_do)
        for finding in findings
    ]
    print_table(f"problems in {results.root}", rows, ["file", "state", "why", "what to do"])
    states = [finding.state for finding in findings]
    say(", ".join(f"{states.count(state):,} {state}" for state in dict.fromkeys(states)))
    return int(DAMAGED in states)


def verify_rows(options: argparse.Namespace) -> int:
    from benchmark.upkeep.verify import SAME, TOLERANCE, WITHIN, choose, plans_of, verify  # loads torch

    options.results.check_exists()
    seed = int.from_bytes(os.urandom(2)) if options.seed is None else options.seed
    studies = STUDIES if options.study is None else [study_named(options.study)]
    plans = plans_of(studies, Sources(options.results, options.data_root, options.weights), options.dataset or ())
    choices, known, others = choose(options.results, plans, options.sample, seed)
    say(
        f"{len(choices)} of {known} rows that can be recomputed here ({others} cannot: other data, weights, device or "
        f"version); to choose the same rows again: --seed {seed}"
    )
    with make_executor(min(options.workers or default_workers(1, "cpu"), len(choices))) as executor:
        numbers = verify(choices, executor, Progress(terminal(stderr=True)))
    differing = numbers[numbers["verdict"] != SAME]
    if len(differing):
        print_table("Numbers that differ", differing)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in numbers["verdict"].value_counts().items())
    say(
        f"{len(numbers)} numbers of {len(choices)} rows recomputed: {counts}. On another processor than the one that "
        f"made them, AUROCs may differ by {TOLERANCE['auroc']:g}, other measures by up to {max(TOLERANCE.values()):g}."
    )
    return int(not numbers["verdict"].isin([SAME, WITHIN]).all())

"""Commands that look after a results folder: `linc-bench features`, `status` and `doctor`."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from benchmark.disk.files import locked
from benchmark.disk.results_folder import ResultsFolder
from benchmark.errors import LincBenchError, unknown_name
from benchmark.execution.progress import Progress, console_for, duration
from benchmark.networks.feature_store import remove_store, store_bytes, stores_in
from benchmark.upkeep.doctor import DAMAGED, examine
from benchmark.upkeep.status import read_status


def features(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    stores = {store.name: store for store in stores_in(results.all_features)}
    if options.action == "clean":
        return _clean_features(options, results, stores, console)
    if not stores:
        console.print(f"No features in {results.all_features}.", highlight=False)
        return 0
    table = _table(f"features in {results.all_features}", "store", "size", "state")
    for name, store in stores.items():
        table.add_row(name, decimal(store_bytes(store)), "whole" if store.exists() else "unfinished")
    console.print(table)
    return 0


def _clean_features(
    options: argparse.Namespace, results: ResultsFolder, stores: dict[str, Path], console: Console
) -> int:
    for name in options.store:
        if name not in stores:
            raise unknown_name("feature store", name, stores)
    if not (options.store or options.all or options.unfinished):
        raise LincBenchError("Say which: names that `linc-bench features list` shows, --unfinished, or --all.")
    chosen = [
        store
        for name, store in stores.items()
        if options.all or name in options.store or (options.unfinished and not store.exists())
    ]
    for run_id in results.all_running():
        with locked(results.locks, run_id, seconds=0):
            pass  # whoever holds it is reading features
    freed = 0
    for store in chosen:
        with locked(results.locks, store.name, seconds=0):
            freed += store_bytes(store)
            remove_store(store)
    console.print(f"{len(chosen)} removed, {decimal(freed)} freed.", highlight=False)
    return 0


def status(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    found = read_status(results)
    table = _table(f"runs in {results.root}", "run", "state", "what is known")
    for run_id, one in found.running.items():
        what = f"epoch {one.epoch} of {one.epochs} {duration(one.seconds_ago)} ago, {one.who}"
        table.add_row(run_id, "running", escape(what))
    for run_id, failed in found.failed.items():
        log = results.log(run_id)
        where = f"; details: {log}" if log.exists() else ""
        table.add_row(run_id, "failed", escape(f"{failed.reason} (attempts: {failed.attempts}{where})"))
    for run_id in found.stale:
        table.add_row(run_id, "stale", "begun, and nobody is at it; the same command does it again")
    if table.row_count:
        console.print(table)
    counts = {
        "done": len(found.done),
        "running": len(found.running),
        "failed": len(found.failed),
        "stale": len(found.stale),
    }
    console.print(", ".join(f"{count:,} {state}" for state, count in counts.items()), highlight=False)
    return 0


def doctor(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    if not results.root.is_dir():
        raise LincBenchError(f"There is no results folder {results.root}. Name another with --results DIR.")
    with Progress(console_for(stderr=True)).counting("reading every byte, things") as report:
        findings = list(examine(results, report))
    if not findings:
        console.print(f"{results.root}: everything is whole.", highlight=False)
        return 0
    table = _table(f"not as it should be in {results.root}", "what", "state", "why", "what to do")
    for finding in findings:
        row = str(finding.path.relative_to(results.root)), finding.state, finding.why, finding.what_to_do
        table.add_row(*map(escape, row))
    console.print(table)
    states = [finding.state for finding in findings]
    console.print(", ".join(f"{states.count(state):,} {state}" for state in dict.fromkeys(states)), highlight=False)
    return int(DAMAGED in states)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table

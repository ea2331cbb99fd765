"""`linc-bench verify`: recomputes rows of the results."""

import argparse
import os

from benchmark.cli.terminal import say, terminal
from benchmark.disk import ResultsFolder
from benchmark.display.tables import for_terminal
from benchmark.execution.executors import default_workers, make_executor
from benchmark.execution.progress import Progress
from benchmark.runs import STUDIES, Sources, study_named
from benchmark.upkeep.verify import SAME, TOLERANCE, WITHIN, choose, plans_of, verify


def verify_rows(options: argparse.Namespace) -> int:
    results = ResultsFolder(options.results)
    seed = int.from_bytes(os.urandom(2)) if options.seed is None else options.seed
    studies = [study_named(options.study)] if options.study else STUDIES
    plans = plans_of(studies, Sources(results, options.data_root, options.weights), options.dataset or ())
    choices, known, others = choose(results, plans, options.sample, seed)
    say(
        f"{len(choices)} of {known} rows that can be recomputed here ({others} cannot: other data, weights, device or "
        f"version); to choose the same rows again: --seed {seed}"
    )
    with make_executor(min(options.workers or default_workers(1, "cpu"), len(choices))) as executor:
        numbers = verify(choices, executor, Progress(terminal(stderr=True)))
    differing = numbers[numbers["verdict"] != SAME]
    if len(differing):
        terminal().print(for_terminal("Numbers that differ", differing))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in numbers["verdict"].value_counts().items())
    say(
        f"{len(numbers)} numbers of {len(choices)} rows recomputed: {counts}. On another processor than the one that "
        f"made them, AUROCs may differ by {TOLERANCE['auroc']:g}, everything else by {TOLERANCE['last_test']:g}."
    )
    return int(not numbers["verdict"].isin([SAME, WITHIN]).all())

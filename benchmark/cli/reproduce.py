"""`linc-bench reproduce`: the paper's tables and figures, what each takes here, and what is committed of it."""

import argparse
from functools import partial
from pathlib import Path

from benchmark.cli import studies
from benchmark.cli.command_line import command_line
from benchmark.cli.dry_run import what_it_takes
from benchmark.cli.overrides import Overrides, overridden
from benchmark.cli.terminal import print_table, say
from benchmark.disk import COMMITTED, COMMITTED_FIGURES, ResultsFolder
from benchmark.errors import LincBenchError, unknown_name
from benchmark.paper.targets import (
    IN_ITS_SETTING,
    LEGEND,
    NETWORK,
    TARGETS,
    Target,
    as_in_the_paper,
    difference,
    measured,
    other_setting,
)
from benchmark.paper.verdicts import verdict_table
from benchmark.report.make_report import Rows, read_rows
from benchmark.runs import DEMO, Sources, plan_study, study_named

PASSED_ON = ("workers", "weights", "data_root", "verbose", "results", "dry_run")  # to `run`


def reproduce(options: argparse.Namespace) -> int:
    if options.what is None:
        return _list(options)
    if options.what not in TARGETS:
        raise unknown_name("table or figure of the paper", options.what, TARGETS)
    target = TARGETS[options.what]
    if options.committed or not target.study:
        _show(target, ResultsFolder(COMMITTED))
        return 0
    say(f"{IN_ITS_SETTING}\nThe same as: linc-bench {' '.join(target.words)}")
    wanted = vars(command_line().parse_args(target.words)) | {name: vars(options)[name] for name in PASSED_ON}
    code = studies.run(argparse.Namespace(**wanted))
    if code == 0 and not options.dry_run:
        _show(target, options.results)
    return code


def _list(options: argparse.Namespace) -> int:
    committed = as_in_the_paper(Rows(partial(read_rows, ResultsFolder(COMMITTED))))
    judged = verdict_table(committed["metrics"], committed["accuracy"])
    say("Timing one batch of the paper's network ...", stderr=True)
    for name, target in TARGETS.items():
        lines = [f"{name}: {target.what}", *(_needs(target, options) if target.study else ())]
        if target.place and len(judged):
            lines.append(f"committed: {measured(target, judged, target.rows(committed))}")
        else:
            setting = other_setting(target.rows(committed)) if target.study else ""
            of = f"of other data ({setting}): " if setting else ""
            files = ", ".join(map(str, _figures(target)))
            lines.append(f"committed: {of}{files}" if files else "committed: nothing")
        say("\n    ".join(lines))
    say(
        "`linc-bench reproduce table1` trains it in the paper's setting, and with --committed prints our rows. "
        "--dry-run shows every run."
    )
    return 0


def _needs(target: Target, options: argparse.Namespace) -> list[str]:
    changes = Overrides.from_options(command_line().parse_args(target.words))
    plan = plan_study(
        overridden(study_named(target.study), changes), Sources(options.results, options.data_root, options.weights)
    )
    files, missing = plan.study.datasets, len(plan.downloads())
    data = f"{files[0]}.npz" if len(files) == 1 else f"{len(files)} files of MedMNIST"
    to_come = f" ({missing} to be downloaded)" if missing else ""
    workers = min(studies.workers_for(plan.study, options.workers), len(plan.units))
    return [
        f"needs: {data}{to_come}; {NETWORK} from timm's hub, or --weights FILE",
        f"takes: {what_it_takes(plan, workers)}",
    ]


def _figures(target: Target) -> list[Path]:
    """Committed files; those of the demo are of no medical images."""
    found = sorted(COMMITTED_FIGURES.glob(f"*/{target.figure}*.svg")) if target.figure else []
    return [path for path in found if path.parent.name != DEMO.name]


def _show(target: Target, results: ResultsFolder) -> None:
    rows = target.rows(as_in_the_paper(Rows(partial(read_rows, results))))
    if target.tables is None:
        figures = _figures(target) if results.is_committed else [results.figures(target.study)]
        say(f"The paper's: {target.what}. Ours: {', '.join(map(str, figures)) or 'not drawn'}")
    elif not (tables := target.tables(rows)):
        raise LincBenchError(
            f"{results.root} has no rows of it ({target.what}). To train it in the paper's setting, leave --committed "
            "out; --dry-run shows what that takes."
        )
    else:
        say(f"{target.what}; the paper's and ours")
        for title, table in tables:
            print_table(title, table)
        say(LEGEND)
    if differs := difference(target, rows):
        say(differs)

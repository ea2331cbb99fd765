"""Commands for data of one's own: `linc-bench audit`, `apply-review`, and `try-audit`, which says how good they are."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console

from benchmark.audit.apply_review import apply_review
from benchmark.audit.ranking import Means
from benchmark.audit.run_audit import DEFAULT_BACKBONE, DEFAULT_FOLDER, THUMBNAIL, audit
from benchmark.audit.trials import RATES, try_audit
from benchmark.cli.overrides import within
from benchmark.disk.results_folder import DEFAULT_RESULTS, ResultsFolder
from benchmark.display.tables import for_terminal
from benchmark.execution.executors import default_workers
from benchmark.execution.progress import Progress, console_for
from benchmark.report.report import report_trials

if TYPE_CHECKING:
    from argparse import _SubParsersAction

SHARES = ("suspected", "suggested otherwise", "in the noisy component", "error rate")


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    finding = commands.add_parser("audit", help="rank the labels of your own images, to look at again")
    finding.set_defaults(command=_audit)
    finding.add_argument("path", type=Path, help="an image folder, a CSV of path and label, or an .npz")
    finding.add_argument("--out", type=Path, metavar="DIR", help=f"default: {DEFAULT_FOLDER}/NAME")
    finding.add_argument("--group", metavar="COLUMN", help="a column of the CSV: rates are told by it as well")
    finding.add_argument("--shown", type=int, default=1000, metavar="N", help="samples on the page; default: 1000")
    finding.add_argument(
        "--thumbnail",
        type=int,
        default=THUMBNAIL,
        metavar="PIXELS",
        help=f"longest side on the page; default: {THUMBNAIL}",
    )
    _add_means(finding)

    applying = commands.add_parser("apply-review", help="put the decisions of a review into a file of labels")
    applying.set_defaults(command=_apply)
    applying.add_argument("audit", type=Path, help="audit.csv")
    applying.add_argument("decisions", type=Path, nargs="+", help="decisions.csv, as the page exports it; several join")
    applying.add_argument("--out", type=Path, metavar="FILE", help="default: reviewed_labels.csv beside audit.csv")

    trying = commands.add_parser("try-audit", help="audit labels made wrong on purpose, against cleanlab and chance")
    trying.set_defaults(command=_try)
    trying.add_argument(
        "paths", type=Path, nargs="*", metavar="path", help="as of `audit`, with labels to trust; none: digits"
    )
    trying.add_argument("--rate", action="append", type=float, help="share of labels to make wrong; repeatable")
    trying.add_argument(
        "--trials", type=int, default=3, metavar="N", help="of each rate, each with its seed; default: 3"
    )
    _add_means(trying)
    trying.add_argument("--results", type=Path, default=DEFAULT_RESULTS, metavar="DIR", help="default: results")


def _add_means(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seeds", type=int, default=1, metavar="N", help="trainings to average; default: 1")
    command.add_argument("--backbone", help=f"any timm name; default: {DEFAULT_BACKBONE.name}")
    command.add_argument("--image-size", type=int, metavar="PIXELS", help=f"default: {DEFAULT_BACKBONE.image_size}")
    command.add_argument("--weights", type=Path, metavar="FILE", help="safetensors or pth file for the backbone")
    command.add_argument("--workers", type=int, help="runs at a time; default: as many as there are processors")


def _means(options: argparse.Namespace) -> Means:
    size = within("--image-size", options.image_size, 8, 2048) or DEFAULT_BACKBONE.image_size
    return Means(
        seeds=tuple(range(within("--seeds", options.seeds, 1, 100) or 1)),
        backbone=replace(DEFAULT_BACKBONE, name=options.backbone or DEFAULT_BACKBONE.name, image_size=size),
        weights=options.weights,
        workers=within("--workers", options.workers, 1, 4096) or default_workers(1, "cpu"),
    )


def _audit(options: argparse.Namespace, console: Console) -> int:
    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    means = _means(options)
    found = audit(
        options.path,
        options.out,
        seeds=len(means.seeds),
        backbone=means.backbone,
        weights=means.weights,
        group=options.group,
        shown=within("--shown", options.shown, 1, 100_000) or 1,
        thumbnail_size=within("--thumbnail", options.thumbnail, 16, 4096) or THUMBNAIL,
        workers=means.workers,
        progress=Progress(console_for(stderr=True)),
        say=say,
    )
    _show_rates("Whom suspicion falls on", found.rates, console)
    say(
        "Suspected: the first of the list, as many as are estimated to be wrong (–: no clear evidence of any). "
        "Suggested otherwise: held-out classifiers prefer another class. Noisy component: that of LiNC's mixture."
    )
    for sentence in found.sentences:
        say(sentence)
    say(f"The list: {found.folder / 'audit.csv'}. To review it, open {found.folder / 'audit.html'} in a browser.")
    say(f"{found.folder / 'work'} makes a second call fast, and can be deleted.")
    return 0


def _try(options: argparse.Namespace, console: Console) -> int:
    results = ResultsFolder(options.results)
    results.prepare()
    trials = range(within("--trials", options.trials, 1, 1000) or 1)
    progress = Progress(console_for(stderr=True))
    try_audit(options.paths, options.rate or RATES, trials, _means(options), results, progress)
    report_trials(results, console)
    return 0


def _apply(options: argparse.Namespace, console: Console) -> int:
    out = options.out or options.audit.with_name("reviewed_labels.csv")
    applied = apply_review(options.audit, options.decisions, out)
    _show_rates(
        "What the review found among the images reviewed, which are not like all others", applied.rates, console
    )
    console.print(f"{applied.sentence} Labels: {out}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _percent(share: float) -> str:
    return "–" if pd.isna(share) else f"{share:.1%}"


def _show_rates(title: str, rates: pd.DataFrame, console: Console) -> None:
    if len(rates):
        shares = {column: rates[column].map(_percent) for column in SHARES if column in rates}
        console.print(for_terminal(title, rates.assign(**shares)))

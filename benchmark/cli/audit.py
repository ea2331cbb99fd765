"""Commands for your own data: `linc-bench audit`, `apply-review`, and `try-audit`, which measures how good they are."""

import argparse
from dataclasses import replace

import pandas as pd

from benchmark.audit.apply_review import apply_review
from benchmark.audit.run_audit import audit
from benchmark.audit.settings import DEFAULT_BACKBONE, AuditSettings
from benchmark.cli.terminal import print_table, say, terminal
from benchmark.disk.tables import check_tables
from benchmark.execution.executors import default_workers
from benchmark.execution.progress import Progress
from benchmark.report.make_report import make_report
from benchmark.trials.run_trials import FLIPPED, RATES, try_audit


def audit_labels(options: argparse.Namespace) -> int:
    settings = _settings(options)
    audited = audit(
        options.path,
        options.out,
        seeds=len(settings.seeds),
        backbone=settings.backbone,
        weights=settings.weights,
        group=options.group,
        fold_by=options.fold_by,
        shown=options.shown,
        thumbnail_size=options.thumbnail,
        workers=settings.workers,
        progress=Progress(terminal(stderr=True)),
        say=say,
    )
    _print_rates("Flag rates by class and group", audited.rates)
    say(
        "Flagged: the top of the list, as many as are wrong at least (–: none for certain). "
        "Other label suggested: held-out classifiers prefer another class. Noisy component: of the mixture over trust."
    )
    for sentence in audited.sentences:
        say(sentence)
    folder = audited.folder
    assert folder is not None  # an audit of arrays may write nothing, and this is none
    say(f"The list: {folder / 'audit.csv'}. To review it, open {folder / 'audit.html'} in a browser.")
    say(f"{folder / 'work'} makes a second call fast, and can be deleted.")
    return 0


def apply_decisions(options: argparse.Namespace) -> int:
    out = options.out or options.audit.with_name("reviewed_labels.csv")
    applied = apply_review(options.audit, options.decisions, out, say)
    _print_rates("Errors among the reviewed images, which are not a random sample", applied.rates)
    for sentence in applied.proved:
        say(sentence)
    say(f"{applied.sentence} Labels: {out}")
    return 0


def run_trials(options: argparse.Namespace) -> int:
    check_tables(options.results)
    options.results.prepare()
    about = options.paths, options.noise or FLIPPED, options.rate or RATES, range(options.trials)
    try_audit(*about, _settings(options), options.results, Progress(terminal(stderr=True)))
    make_report(options.results, "audit", terminal(), is_verbose=True)
    return 0


def _settings(options: argparse.Namespace) -> AuditSettings:
    name, size = options.backbone or DEFAULT_BACKBONE.name, options.image_size or DEFAULT_BACKBONE.image_size
    return AuditSettings(
        seeds=tuple(range(options.seeds)),
        backbone=replace(DEFAULT_BACKBONE, name=name, image_size=size),
        weights=options.weights,
        workers=options.workers or default_workers(1, "cpu"),
    )


def _print_rates(title: str, rates: pd.DataFrame) -> None:
    if len(rates):
        shares = rates.select_dtypes(float).map("{:.1%}".format).replace("nan%", "–")
        print_table(title, rates.select_dtypes(exclude=float).join(shares))

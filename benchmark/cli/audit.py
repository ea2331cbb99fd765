"""Commands for your own data: `linc-bench audit`, `apply-review`, and `try-audit`, which measures how good they are."""

import argparse
from dataclasses import replace

from benchmark.audit.apply_review import apply_review
from benchmark.audit.run_audit import PAGE, audit
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
        progress=Progress(terminal(stderr=True), is_brief=True),
        say=say,
    )
    if flagged := audited.errors.at_least:
        shares = audited.rates["flagged"].map("{:.1%}".format)
        rates = audited.rates[["of", "which", "samples"]].assign(flagged=shares)
        print_table("Flag rates by class and group", rates)
        say(f"Flagged: the first {flagged:,} of the list, since so many are wrong at least.")
    for sentence in audited.sentences:
        say(sentence)
    folder = audited.folder
    assert folder is not None  # an audit of arrays may write nothing, and this is none
    say(f"The list: {folder / 'audit.csv'}. To review it, open {folder / PAGE} in a browser.")
    say(f"{folder / 'work'} makes a second call fast, and can be deleted.")
    return 0


def apply_decisions(options: argparse.Namespace) -> int:
    out = options.out or options.audit.with_name("reviewed_labels.csv")
    applied = apply_review(options.audit, options.decisions, out, say)
    for sentence in (f"{applied.sentence} Labels: {out}", *applied.proved):
        say(sentence)
    if len(applied.counts):
        print_table("Kept and changed labels", applied.counts)
        say("These are counts, not error rates: images chosen by suspicion are wrong more often.")
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

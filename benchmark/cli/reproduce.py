"""`linc-bench reproduce`: the paper's tables and figures, what each takes here, and what is committed of it."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from rich.filesize import decimal

from benchmark.cli import studies
from benchmark.cli.command_line import command_line
from benchmark.cli.overrides import Overrides, overridden
from benchmark.cli.terminal import print_table, say
from benchmark.disk import COMMITTED, ResultsFolder
from benchmark.disk.results_folder import COMMITTED_FIGURES
from benchmark.errors import LincBenchError, unknown_name
from benchmark.execution.executors import default_workers
from benchmark.execution.progress import duration
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.tables import clean_table, detection_table, noisy_table
from benchmark.paper.verdicts import NOT_TESTED, TABLE_1, TABLE_2, TABLE_3, verdict_table
from benchmark.report.make_report import Rows, read_rows
from benchmark.runs import Sources, plan_study, study_named
from benchmark.runs.estimate import estimate
from benchmark.wording import dataset_title, network_title

PASSED_ON = ("workers", "weights", "data_root", "verbose", "results", "dry_run")  # to `run`
IN_ITS_SETTING = (
    f"Differs from the paper: its ViT-S/8 is taken to be timm's {select.NETWORK['backbone']}, and three pairs of seeds "
    "are trained; the paper names neither."
)


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper."""

    what: str
    study: str = ""  # in the paper's setting; a drawing without data has none
    part: tuple[str, ...] = ()  # of the study, as options of `run`
    rows: Callable[[select.Tables], pd.DataFrame] = lambda tables: tables["accuracy"][:0]  # what it shows
    table: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    place: str = ""  # of its numbers, in the table of verdicts
    figure: str = ""  # how the names of its files begin

    @property
    def words(self) -> list[str]:
        """The command that trains it; its rows keep the study's name."""
        return ["run", self.study, *self.part, "--name", self.study]


def _detection(tables: select.Tables) -> pd.DataFrame:
    return select.original_line_up(select.at_the_papers_rate(tables["metrics"]))


def _accuracy(tables: select.Tables, is_noisy: bool) -> pd.DataFrame:
    return tables["accuracy"][(tables["accuracy"]["rate"] > 0) == is_noisy]


def _by_detector(metrics: pd.DataFrame) -> pd.DataFrame:
    """Table 1 with a row per detector, which fits a terminal."""
    table = detection_table(metrics)
    return table if table.empty else table.set_index("").T.rename_axis("detector").reset_index()


_noisy, _clean = partial(_accuracy, is_noisy=True), partial(_accuracy, is_noisy=False)
ITS_DETECTORS = (word for name in paper.DETECTION for word in ("--detector", name))
ITS_RATES = (word for rate in paper.RATES for word in ("--rate", str(rate)))
TARGETS = {
    "table1": Target(
        "AUC of eight detectors: OrganSMNIST, 20 % noise",
        "paper-auc",
        ("--rate", str(paper.DETECTION_RATE), "--line-up", "original", *ITS_DETECTORS),
        *(_detection, _by_detector, TABLE_1),
    ),
    "table2": Target(
        "accuracy without noise: ten data sets", "paper-accuracy", ("--rate", "0"), _clean, clean_table, TABLE_2
    ),
    "table3": Target(
        "accuracy with and without LiNC: ten data sets, 10-50 % noise",
        *("paper-accuracy", tuple(ITS_RATES), _noisy, noisy_table, TABLE_3),
    ),
    "figure1": Target("the phases of LiNC, a drawing", figure="overview"),
    "figure2": Target(
        "trust of clean and mislabelled samples: OrganSMNIST, 10-50 % noise",
        *("paper-auc", ("--line-up", "original", "--detector", "LiNC"), _noisy),
        figure="trust_histograms",
    ),
    "figure3": Target(
        "accuracy over epochs: DermaMNIST, 50 % noise",
        *("paper-accuracy", ("--dataset", "dermamnist", "--rate", "0.5"), _noisy),
        figure="accuracy_curves",
    ),
}


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
    committed = _as_in_the_paper(ResultsFolder(COMMITTED))
    judged = verdict_table(committed["metrics"], committed["accuracy"])
    say("Timing one batch of the paper's network ...", stderr=True)
    for name, target in TARGETS.items():
        lines = [f"{name}: {target.what}", *(_what_it_takes(target, options) if target.study else ())]
        if target.place and len(judged):
            verdicts, rows = judged.loc[judged["where"] == target.place, "verdict"], target.rows(committed)
            where = f" (rows: {_setting(rows)})" if len(rows) else ""
            lines.append(f"committed: {(verdicts != NOT_TESTED).sum()} of {len(verdicts)} numbers{where}")
        else:
            lines.append(f"committed: {', '.join(map(str, _figures(target))) or 'nothing'}")
        say("\n    ".join(lines))
    say(
        "`linc-bench reproduce table1` trains it in the paper's setting, and with --committed prints our rows. "
        "--dry-run shows every run."
    )
    return 0


def _what_it_takes(target: Target, options: argparse.Namespace) -> list[str]:
    changes = Overrides.from_options(command_line().parse_args(target.words))
    plan = plan_study(
        overridden(study_named(target.study), changes), Sources(options.results, options.data_root, options.weights)
    )
    training = plan.study.grids[0].training
    workers = min(options.workers or default_workers(training.threads, training.device), len(plan.units))
    seconds, size = estimate(plan, workers)
    files, missing = plan.study.datasets, len(plan.downloads())
    data = f"{files[0]}.npz" if len(files) == 1 else f"{len(files)} files of MedMNIST"
    to_come = f" ({missing} to be downloaded)" if missing else ""
    return [
        f"needs: {data}{to_come}; {select.NETWORK['backbone']} from timm's hub, or --weights FILE",
        f"takes: about {duration(seconds)} and {decimal(size)} of disk here ({len(plan.to_train)} of {len(plan.units)} "
        f"runs to train, {workers} at a time)",
    ]


def _as_in_the_paper(results: ResultsFolder) -> dict[str, pd.DataFrame]:
    """On its data sets, with its hyper-parameters, and its network if that was run."""
    tables = select.of_the_paper(Rows(partial(read_rows, results)))
    return {name: select.as_in_the_paper(rows) for name, rows in tables.items()}


def _setting(rows: pd.DataFrame) -> str:
    network = f"{network_title(rows['backbone'].iloc[0])} at {rows['image_size'].iloc[0]} px"
    datasets = ", ".join(dataset_title(name) for name in rows["dataset"].unique())
    rates = ", ".join(f"{rate:.0%}" for rate in sorted(rows["rate"].unique()))
    return f"{network}; {datasets}; {rates} noise"


def _figures(target: Target) -> list[Path]:
    """Committed files; those of the demo are of no medical images."""
    found = sorted(COMMITTED_FIGURES.glob(f"*/{target.figure}*.svg")) if target.figure else []
    return [path for path in found if path.parent.name != "demo"]


def _show(target: Target, results: ResultsFolder) -> None:
    rows = target.rows(_as_in_the_paper(results))
    if target.table is None:
        figures = _figures(target) if results.is_committed else [results.figures(target.study)]
        say(f"{target.what}: {', '.join(map(str, figures)) or 'not drawn'}")
    elif (table := target.table(rows)).empty:
        raise LincBenchError(
            f"{results.root} has no rows of it ({target.what}). To train it in the paper's setting, leave --committed "
            "out; --dry-run shows what that takes."
        )
    else:
        print_table(f"{target.what}; the paper's and ours", table)
    if len(rows):
        is_its = select.have_its_network(rows)
        say(IN_ITS_SETTING if is_its else f"Differs from the paper: {_setting(rows)}; the paper has ViT-S/8 at 224 px.")

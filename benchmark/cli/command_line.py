"""`linc-bench`: the parser of all commands, and how every command fails.

Each command names the function that runs it as `module:function` of this package, which is imported when the command is
called. Nothing else here is heavy, so `--help` answers at once.
"""

import argparse
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from benchmark.cli.terminal import is_unread, prepare_streams
from benchmark.disk import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.paths import typed_path


def main(arguments: Sequence[str] | None = None) -> int:
    if threading.current_thread() is threading.main_thread():  # other threads cannot set signal handlers
        signal.signal(signal.SIGTERM, _terminate)
    prepare_streams()
    try:
        try:
            options = command_line().parse_args(arguments)
            command = pkgutil.resolve_name(f"benchmark.cli.{options.command}")
            return int(command(options))
        finally:
            sys.stdout.flush()
    except LincBenchError as error:
        message, exit_code = f"error: {error}", 1
    except KeyboardInterrupt as error:
        what, exit_code = ("Terminated", 143) if error.args == (signal.SIGTERM,) else ("Interrupted", 130)
        message = f"{what}. Finished work is kept; rerun the same command to continue."
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_unread():
            return 128 + signal.SIGPIPE
        if error.strerror is None:
            raise
        where = f" ({error.filename})" if error.filename else ""
        message, exit_code = f"error: {error.strerror}{where}. Finished work is kept. Fix the cause, free some space", 1
        message += " or choose another folder (see --help), then rerun the same command."
    from benchmark.cli.terminal import say

    say(message, stderr=True)
    return exit_code


def _terminate(number: int, frame: object) -> None:
    """SIGTERM, which a cluster sends when time is up, ends a command as Ctrl-C does: locks are freed, workers end."""
    raise KeyboardInterrupt(number)


def word_of(option: str) -> Callable[[str], str]:
    """The type of an option that would be ignored if its value were empty."""

    def word(text: str) -> str:
        if not text.strip():
            raise LincBenchError(f"{option} is empty; give it a value, or leave it out.")
        return text

    return word


SHARED: dict[str, dict[str, Any]] = {  # options of several commands
    "--backbone": {"type": word_of("--backbone"), "help": "any timm name"},
    "--image-size": {"least": 8, "most": 2048, "metavar": "PIXELS"},
    "--weights": {"type": typed_path, "metavar": "FILE", "help": "safetensors or pth file for the backbone"},
    "--workers": {"least": 1, "most": 4096, "help": "runs at a time; default: as many as there are processors"},
    "--seeds": {"least": 1, "most": 100, "help": "trainings to average", "default": 1, "metavar": "N"},
    "--data-root": {
        "type": typed_path,
        "metavar": "DIR",
        "help": "folder of MedMNIST files, which are downloaded into it; default: MedMNIST's own, ~/.medmnist",
    },
    "--verbose": {"action": "store_true", "help": "print all tables"},
    "--results": {
        "type": lambda text: ResultsFolder(typed_path(text)),
        "metavar": "DIR",
        "default": ResultsFolder(),
        "help": f"results folder; default: {ResultsFolder().root}",
    },
}


def share(text: str) -> float:
    return float(text) + 0.0  # -0 is 0


WRONG_LABELS = (  # beside --noise
    ("--given-labels", "NAME", "wrong labels as people made them: a key of the .npz, or a column of the CSV"),
    ("--noise-file", "PATH", "wrong labels of a flip file; runs write them into `flips` of their results folder"),
    ("--noise-matrix", "PATH", "a CSV of chances: a row per true class, a column per given one"),
)


class CommandParser(argparse.ArgumentParser):
    def add_number(self, option: str, least: int, most: int, help: str | None = None, **settings: Any) -> None:
        """A whole number from `least` to `most`."""

        def number(text: str) -> int:
            if not least <= int(text) <= most:
                raise LincBenchError(f"{option} is {text}; it must be from {least} to {most:,}.")
            return int(text)

        default = f"; default: {settings['default']}" if "default" in settings else ""
        self.add_argument(option, type=number, help=f"{help}{default}" if help else None, **settings)

    def add_shared(self, *options: str) -> None:
        for option in options:
            add = self.add_number if "least" in SHARED[option] else self.add_argument
            add(option, **SHARED[option])

    def add_study(self) -> None:
        """A study and what can be changed in it; each destination is a field of `Overrides`."""
        dataset = (
            "a name or a path (.npz, .csv, image folder), or NAME=PATH: a file for the study's data set of that name; "
            "default: all data sets of the study; repeatable"
        )
        line_up = "original, hcat or margins; default: all line-ups of the study; repeatable"
        detector = "as tables call it, or path/to/file.py:Class; options in brackets; default: all; repeatable"
        self.add_argument("study", nargs="?", default="demo", help="default: demo")
        self.add_argument("--dataset", dest="datasets", action="append", metavar="DATASET", help=dataset)
        self.add_argument("--detector", dest="detectors", action="append", metavar="DETECTOR", help=detector)
        self.add_argument("--line-up", dest="line_ups", action="append", metavar="NAME", help=line_up)
        self.add_shared("--backbone", "--image-size")
        self.add_argument("--feature-dtype", choices=("float16", "float32"), help="precision of the stored features")
        self.add_number("--epochs", 1, 100_000)
        self.add_number("--batch-size", 1, 10**6)
        self.add_shared("--weights", "--data-root")
        self.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), help="default: auto")


def command_line() -> CommandParser:
    about = "Compare detectors of wrong labels, or audit the labels of your own images."
    parser = CommandParser(prog="linc-bench", description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: str, help: str) -> CommandParser:
        command = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
        command.set_defaults(command=function)
        return command

    listing = add("list", "listing:show", "show the studies, or more of one kind")
    listing.add_argument("what", nargs="?", choices=("studies", "detectors", "datasets", "backbones", "noise"))
    _add_run(add("run", "studies:run", "train and score a study, then report"))
    _add_reproduce(add("reproduce", "reproduce:reproduce", "show the paper's tables and figures, or make one of them"))
    _add_profile(add("profile", "profile:measure", "measure what each detector of a study costs"))
    check = add("check", "listing:check", "check that a detector of yours keeps the contract")
    check.add_argument("detector", help="a name, or path/to/file.py:Class, or 'path/to/file.py:Class(field=value)'")
    report = add("report", "listing:report", "make tables and figures from the results on disk")
    report.add_argument("study", nargs="?", help="default: every study with results")
    report.add_shared("--verbose", "--results")
    _add_audit(add("audit", "audit:audit_labels", "rank the labels of your own images for review"))
    _add_review(add("apply-review", "audit:apply_decisions", "put the decisions of a review into a file of labels"))
    _add_trials(add("try-audit", "audit:run_trials", "audit labels made wrong on purpose; compare with cleanlab"))
    _add_verify(add("verify", "upkeep:verify_rows", "recompute randomly chosen rows of the results and compare"))
    _add_features(add("features", "upkeep:features", "list cached features, or remove them"))
    _add_backbones(add("backbones", "profile:check_backbone", "measure what pretrained weights are worth"))
    status = add("status", "upkeep:status", "show which runs are done, running, failed or interrupted")
    status.add_shared("--results")
    _add_packs(
        add("pack", "upkeep:pack", "put the runs of a study into one file, for others to score detectors on"),
        add("unpack", "upkeep:unpack_runs", "put the runs of a pack into a results folder"),
    )
    doctor = add("doctor", "upkeep:doctor", "look for damaged and orphaned files, and those of other versions")
    doctor.add_shared("--results")
    return parser


def _add_run(run: CommandParser) -> None:
    dask = "run on a Dask cluster: the address of its scheduler, `local` for processes on this machine, or `current` "
    rate, name = "share of wrong labels, 0 to 1; repeatable", "name of a changed study; default: STUDY-modified"
    seeds = {"action": "append", "metavar": "SEED"}
    trainings = "trainings of each pair of seeds; scores are also averaged over them, in rows of their own"
    limit = "a detector that takes longer to score a run fails; default: none"
    run.add_study()
    run.add_argument("--rate", dest="rates", action="append", type=share, metavar="RATE", help=rate)
    run.add_number("--seed", 0, 2**31, "of noise and training; repeatable", dest="training_seeds", **seeds)
    run.add_number("--noise-seed", 0, 2**31, "another one for wrong labels; repeatable", dest="noise_seeds", **seeds)
    run.add_number("--trainings", 1, 100, trainings, metavar="N")
    run.add_argument("--noise", type=word_of("--noise"), metavar="KIND", help="see `linc-bench list noise`")
    for option, metavar, help in WRONG_LABELS:
        run.add_argument(option, type=word_of(option), metavar=metavar, help=help)
    packed = "score the runs of a pack, without data, weights or training; default: all detectors that can"
    run.add_argument("--from-pack", type=typed_path, metavar="FILE.tar", help=packed)
    run.set_defaults(study=None)  # demo, or that of the pack
    run.add_argument("--plain", action="store_true", help="run the whole network in every step: no cached features")
    run.add_argument("--augment", action="store_true", help="random flips and crops in training; implies --plain")
    run.add_shared("--workers")
    run.add_number("--score-limit", 1, 10**7, limit, metavar="SECONDS")
    dask = f"{dask} for the client of a Python program"
    run.add_argument("--dask", type=word_of("--dask"), metavar="ADDRESS", help=dask)
    run.add_argument("--name", type=word_of("--name"), help=name)
    run.add_argument("--force", action="store_true", help="train finished runs again")
    run.add_argument("--dry-run", action="store_true", help="show the plan, with time and disk, and stop")
    run.add_shared("--verbose", "--results")


def _add_packs(pack: CommandParser, unpack: CommandParser) -> None:
    pack.add_argument("study", help="a study with runs in the results folder")
    pack.add_argument("file", type=typed_path, metavar="FILE.tar")
    dataset = "runs on this data set only; repeatable"
    pack.add_argument("--dataset", action="append", metavar="NAME", default=[], help=dataset)
    unpack.add_argument("file", type=typed_path, metavar="FILE.tar", help="as `pack` wrote it")
    for command in (pack, unpack):
        command.add_shared("--results")


def _add_reproduce(reproduce: CommandParser) -> None:
    committed = "print it from the committed rows of this repository; nothing is trained"
    reproduce.add_argument("what", nargs="?", help="table1 or another name; default: list them with what they take")
    reproduce.add_argument("--committed", action="store_true", help=committed)
    reproduce.add_argument("--dry-run", action="store_true", help="show the plan, with time and disk, and stop")
    reproduce.add_shared("--workers", "--weights", "--data-root", "--verbose", "--results")


def _add_profile(profile: CommandParser) -> None:
    growth = "instead: growth with samples, classes and epochs, on synthetic features"
    profile.add_study()
    profile.add_argument("--path", choices=("fast", "plain", "both"), default="both", help="default: both")
    profile.add_number("--rounds", 6, 1000, "how often each run is measured")  # fewer have no 95 % interval
    profile.add_number("--samples", 32, 10**6, "training samples that are measured")
    profile.add_argument("--growth", action="store_true", help=growth)
    profile.add_shared("--results")


def _add_audit(audit: CommandParser) -> None:
    path = (
        "a folder with a sub-folder of images per class; or a CSV with the columns path and label, in or above "
        "the folder of its images, since paths are relative to it; or an .npz in MedMNIST's layout. "
        "DICOM files are read by pydicom"
    )
    audit.add_argument("path", type=typed_path, help=path)
    audit.add_argument("--out", type=typed_path, metavar="DIR", help="default: audits/NAME")
    fold_by = (
        "a column of the CSV, such as the patient; samples with the same value share a fold of held-out classifiers"
    )
    audit.add_argument("--group", metavar="COLUMN", help="a column of the CSV; rates are given by its values too")
    audit.add_argument("--fold-by", type=word_of("--fold-by"), metavar="COLUMN", help=fold_by)
    audit.add_number(
        "--shown",
        1,
        100_000,
        "most suspicious samples on the page, beside the random sample",
        default=1000,
        metavar="N",
    )
    audit.add_number("--thumbnail", 16, 4096, "longest side of an image on the page", default=256, metavar="PIXELS")
    audit.add_shared("--seeds", "--backbone", "--image-size", "--weights", "--workers")


def _add_review(review: CommandParser) -> None:
    review.add_argument("audit", type=typed_path, help="audit.csv")
    review.add_argument(
        "decisions", type=typed_path, nargs="+", help="decisions.csv as the page exports it; or several"
    )
    review.add_argument("--out", type=typed_path, metavar="FILE", help="default: reviewed_labels.csv beside audit.csv")


def _add_trials(trial: CommandParser) -> None:
    paths = "as for `audit`, with correct labels; default: digits"
    trial.add_argument("paths", type=typed_path, nargs="*", metavar="path", help=paths)
    noise = "see `linc-bench list noise`; given:KEY for labels that people gave; repeatable; default: symmetric"
    trial.add_argument("--noise", action="append", type=word_of("--noise"), metavar="KIND", help=noise)
    trial.add_argument("--rate", action="append", type=share, help="share of labels to make wrong; repeatable")
    trial.add_number("--trials", 1, 1000, "trials per rate", default=3, metavar="N")
    trial.add_shared("--results", "--seeds", "--backbone", "--image-size", "--weights", "--workers")


def _add_verify(verify: CommandParser) -> None:
    verify.add_argument("study", nargs="?", help="default: every study whose rows can be recomputed")
    verify.add_number("--sample", 1, 10**6, "rows to recompute", default=5, metavar="N")
    verify.add_number("--seed", 0, 2**31, "which rows; default: other rows every time")
    verify.add_argument("--dataset", action="append", metavar="NAME=PATH", help="the file that was used for a data set")
    verify.add_shared("--workers", "--weights", "--data-root", "--results")


def _add_backbones(backbones: CommandParser) -> None:
    dataset = "a name or a path, beside digits; repeatable"
    backbones.add_argument("action", choices=("check",))
    backbones.add_argument("backbone", metavar="NAME", help=SHARED["--backbone"]["help"])
    backbones.add_argument("--dataset", dest="datasets", action="append", metavar="DATASET", help=dataset)
    backbones.add_shared("--image-size", "--weights", "--data-root")


def _add_features(features: CommandParser) -> None:
    features.add_argument("action", choices=("list", "clean"))
    features.add_argument("store", nargs="*", help="what to remove, by the names that `list` shows")
    features.add_argument("--unfinished", action="store_true", help="remove every unfinished store")
    features.add_argument("--all", action="store_true", help="remove every store; they are computed again when needed")
    features.add_shared("--results")

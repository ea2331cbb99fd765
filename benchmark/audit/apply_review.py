"""Applies the decisions of one or several reviews to the labels: `linc-bench apply-review audit.csv decisions.csv`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from pathlib import Path

import pandas as pd
from sklearn.metrics import cohen_kappa_score

from benchmark.counting.review_sample import proved_by
from benchmark.disk import as_csv, restored, write_text
from benchmark.display.tables import MISSING
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest
from benchmark.paths import regular_file

DECISIONS = ("keep", "relabel", "ambiguous", "skip")
COLUMNS = ("audit", "id", "given", "decision", "label")
WRITTEN = ["id", "label", "given", "decision"]
DISAGREEMENTS = "disagreements.csv"


@dataclass(frozen=True)
class Applied:
    """Labels after a review: the given ones, except those that a reviewer changed."""

    labels: pd.DataFrame  # id, label, given, decision; in the order of the audit
    counts: pd.DataFrame  # of judged and of wrong labels, by given class and group
    proved: Sequence[str] = ()  # how many labels are wrong, in sentences
    earlier: Path | None = None  # where the labels of an earlier review with other decisions went

    @property
    def sentence(self) -> str:
        counts = self.labels["decision"].value_counts()
        by_decision = ", ".join(f"{counts.get(decision, 0):,} {decision}" for decision in DECISIONS)
        reviewed = f"{(self.labels['decision'] != '').sum():,} of {len(self.labels):,} labels reviewed: {by_decision}."
        return f"{reviewed} Those of an earlier review are now in {self.earlier}." if self.earlier else reviewed


@dataclass(frozen=True)
class Agreement:
    """How often two reviewers made the same decision on the samples that both decided."""

    files: tuple[Path, Path]
    samples: int
    same: int
    kappa: float  # nan if both gave one label to every sample

    @property
    def sentence(self) -> str:
        one, two = self.files
        if not self.samples:
            return f"{one} and {two} decide on no sample in common."
        kappa = f"{self.kappa:.2f}" if math.isfinite(self.kappa) else MISSING
        decided = f"{self.same:,} of the {self.samples:,} samples that both decided ({self.same / self.samples:.1%})"
        return f"{one} and {two} agree on {decided}; Cohen's kappa: {kappa}."


def apply_review(audit_csv: Path, decisions: Sequence[Path], out: Path, say: Callable[[str], None] = print) -> Applied:
    """Writes every sample's label after the review to `out`; refuses decisions that belong to another audit.

    Says how often reviewers agree; if they do not on a sample, it writes disagreements.csv beside `out` instead.
    """
    samples = _read(audit_csv, ("id", "given"))
    _refuse(audit_csv, samples, {"has the sample '{id}' a second time": samples["id"].duplicated()})
    by_file = {file: _checked(file, samples, audit_csv).set_index("id") for file in decisions}
    _refuse_to_overwrite(out, ",".join(WRITTEN))
    for pair in combinations(by_file, 2):
        say(agreement(pair, by_file[pair[0]], by_file[pair[1]]).sentence)
    _refuse_disagreements(samples, by_file, out.with_name(DISAGREEMENTS))
    joined = pd.concat(by_file.values())
    decided = joined[~joined.index.duplicated()]
    labels = samples[["id", "given", *(column for column in ("path", "group") if column in samples)]].copy()
    labels["decision"] = labels["id"].map(decided["decision"]).fillna("")
    labels["label"] = labels["id"].map(decided["label"]).where(labels["decision"] == "relabel", labels["given"])
    others = [column for column in labels if column not in WRITTEN]
    text = as_csv(labels[[*WRITTEN, *others]])
    earlier = _set_aside(out) if out.exists() and out.read_text(encoding="utf-8") != text else None
    write_text(out, text)
    judged = labels.assign(is_wrong=labels["decision"] == "relabel")[labels["decision"].isin(["keep", "relabel"])]
    summaries = {"judged": ("is_wrong", "size"), "wrong": ("is_wrong", "sum")}
    return Applied(labels, by_class_and_group(judged, summaries), proved_by(samples, labels["decision"]), earlier)


def _refuse_to_overwrite(file: Path, *starts: str) -> None:
    """Only a file that begins as ours do is replaced."""
    if file.exists() and (not file.is_file() or not file.read_bytes().startswith(tuple(map(str.encode, starts)))):
        raise LincBenchError(f"{file} exists, and no review wrote it. Choose another file with --out FILE.")


def _set_aside(out: Path) -> Path:
    """Gives labels of an earlier review another name, so that no review is lost."""
    names = (out.with_name(f"{out.stem}.{number}{out.suffix}") for number in count(1))
    return out.rename(next(name for name in names if not name.exists()))


def audit_digest(samples: pd.DataFrame) -> str:
    """What decisions name: they hold for any audit of the same samples and labels, and for no other."""
    given = sorted(zip(samples["id"], samples["given"], strict=True))
    return bytes_digest(repr(pair).encode() for pair in given)[:16]


def by_class_and_group(samples: pd.DataFrame, summaries: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """Summaries (a column and how to summarise it) of all samples, of each given class and, if any, of each group."""
    parts = [samples.assign(of="all", which="")]
    for of, column in (("class", "given"), ("group", "group")):
        if column in samples:
            parts.append(samples.assign(of=of, which=samples[column]))
    return pd.concat(parts).groupby(["of", "which"]).agg(**summaries).reset_index()


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Every cell as text, without rows of empty cells; rows are numbered as lines are, from 2."""
    try:
        inside = path / "audit.csv"
        file = regular_file(path, hint=f"Did you mean {inside}?" if inside.is_file() else "Check the path.")
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig", skip_blank_lines=False)
    except (ValueError, OSError) as error:
        raise LincBenchError(f"{path} cannot be read as a CSV file ({error}).") from error
    if missing := [column for column in columns if column not in table]:
        present = ", ".join(map(str, table))
        hint = " Separate columns by commas." if ";" in present or "\t" in present else ""
        raise LincBenchError(f"{path} has no column {', '.join(missing)}; it has {present}.{hint}")
    if not isinstance(table.index, pd.RangeIndex):  # pandas took the first cells for the names of rows
        raise LincBenchError(f"Line 2 of {path} has more cells than its header. Quote cells that have commas in them.")
    table.index += 2
    table = table.map(restored)
    return table[(table.map(str.strip) != "").any(axis=1)].copy()


def _checked(file: Path, samples: pd.DataFrame, audit_csv: Path) -> pd.DataFrame:
    """The decisions of a file, if they belong to the audit and are valid; to relabel to the given label is to keep."""
    decisions, digest = _read(file, COLUMNS), audit_digest(samples)
    if decisions.empty:
        raise LincBenchError(f"{file} has no decisions. Export them from the page beside {audit_csv}.")
    _refuse(file, decisions, {"names no audit; copy it from another line": decisions["audit"] == ""})
    if others := sorted(set(decisions["audit"]) - {digest}):
        raise LincBenchError(
            f"{file} belongs to another audit ({', '.join(others[:3])}; {audit_csv} is {digest}). Decisions "
            "hold for the samples and labels they were made on; audit those again, or export from the page beside it."
        )
    classes = {*samples["given"], *samples.get("suggested", ())}
    class_of = {name.strip(): name for name in classes}  # spreadsheets hide spaces at the ends
    for column in ("given", "label"):
        cells = decisions[column]
        decisions[column] = cells.where(cells.isin(classes), cells.str.strip().replace(class_of))
    decisions["actual"] = decisions["id"].map(samples.set_index("id")["given"])
    decision = decisions["decision"] = decisions["decision"].str.strip().str.lower()
    label, is_relabel = decisions["label"], decision == "relabel"
    problems = {
        "names the sample '{id}', which is not in the audit": decisions["actual"].isna(),
        "decides on '{id}' a second time; keep one of the two lines": decisions["id"].duplicated(),
        "says that the label was '{given}'; it was '{actual}'": decisions["given"] != decisions["actual"],
        f"has the decision '{{decision}}'; expected {', '.join(DECISIONS)}": ~decision.isin(DECISIONS),
        "relabels to '{label}', which is no class of the audit": is_relabel & ~label.isin(classes),
        "has the decision '{decision}' and another label, '{label}'. Relabel, or leave the label empty": (
            ~is_relabel & (label != "") & (label != decisions["given"])
        ),
    }
    _refuse(file, decisions, problems)
    is_kept = is_relabel & (label == decisions["given"])
    return decisions.assign(decision=decision.mask(is_kept, "keep"), label=label.where(is_relabel, decisions["given"]))


def _refuse(file: Path, rows: pd.DataFrame, problems: Mapping[str, pd.Series]) -> None:
    """An error for the first line that has one of the problems."""
    for problem, is_wrong in problems.items():
        if is_wrong.any():
            row = rows[is_wrong].iloc[0]
            raise LincBenchError(f"Line {row.name} of {file} {problem.format_map(row)}.")


def _labels(decided: pd.DataFrame) -> pd.Series:
    """The label that each decision gives; ambiguous and skip are labels of their own, which no class can be."""
    is_label = decided["decision"].isin(["keep", "relabel"])
    return ("label " + decided["label"]).where(is_label, decided["decision"])


def agreement(files: tuple[Path, Path], one: pd.DataFrame, two: pd.DataFrame) -> Agreement:
    """Of the decisions of two files, by id."""
    labels = pd.concat([_labels(one), _labels(two)], axis=1, join="inner", keys=["one", "two"])
    is_one_label = len(pd.unique(labels.to_numpy().ravel())) < 2
    kappa = math.nan if is_one_label else float(cohen_kappa_score(labels["one"], labels["two"]))
    return Agreement(files, len(labels), int((labels["one"] == labels["two"]).sum()), kappa)


def _refuse_disagreements(samples: pd.DataFrame, by_file: Mapping[Path, pd.DataFrame], listed: Path) -> None:
    """Lists the samples with different decisions in a file, for the reviewers to talk about."""
    given = samples.set_index("id")["given"]
    labels = pd.concat([_labels(decided) for decided in by_file.values()]).groupby(level=0).nunique()
    disputed = given[given.index.isin(labels.index[labels > 1])]
    if disputed.empty:
        return
    table = disputed.reset_index()
    for file, decided in by_file.items():
        rows = decided.reindex(disputed.index)
        name = str(file).encode(errors="backslashreplace").decode()
        table[f"decision of {name}"] = rows["decision"].to_numpy()  # no formula, whatever the name is
        table[f"label of {name}"] = rows["label"].where(rows["decision"].isin(["keep", "relabel"])).to_numpy()
    _refuse_to_overwrite(listed, "id,given,decision of ", 'id,given,"decision of ')
    write_text(listed, as_csv(table))
    raise LincBenchError(
        f"Reviewers disagree on {len(disputed)} of the samples, such as '{disputed.index[0]}'; {listed} lists them. No "
        "labels were written. Agree on one decision for each sample, change or remove the other lines in the decision "
        "files, and rerun the command."
    )

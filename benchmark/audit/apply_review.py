"""Applies the decisions of one or several reviews to the labels: `linc-bench apply-review audit.csv decisions.csv`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pandas as pd

from benchmark.disk import as_csv, restored, write_text
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest
from benchmark.paths import regular_file

DECISIONS = ("keep", "relabel", "ambiguous", "skip")
COLUMNS = ("audit", "id", "given", "decision", "label")
WRITTEN = ["id", "label", "given", "decision"]


@dataclass(frozen=True)
class Applied:
    """Labels after a review: the given ones, except those that a reviewer changed."""

    labels: pd.DataFrame  # id, label, given, decision; in the order of the audit
    rates: pd.DataFrame  # error rates among the reviewed samples, by given class and group
    earlier: Path | None = None  # where the labels of an earlier review with other decisions went

    @property
    def sentence(self) -> str:
        counts = self.labels["decision"].value_counts()
        by_decision = ", ".join(f"{counts.get(decision, 0):,} {decision}" for decision in DECISIONS)
        reviewed = f"{(self.labels['decision'] != '').sum():,} of {len(self.labels):,} labels reviewed: {by_decision}."
        return f"{reviewed} Those of an earlier review are now in {self.earlier}." if self.earlier else reviewed


def apply_review(audit_csv: Path, decisions: Sequence[Path], out: Path) -> Applied:
    """Writes every sample's label after the review to `out`; refuses decisions that belong to another audit."""
    samples = _read(audit_csv, ("id", "given"))
    _refuse(audit_csv, samples, {"has the sample '{id}' a second time": samples["id"].duplicated()})
    decided = _joined([_checked(file, samples, audit_csv) for file in decisions]).set_index("id")
    if out.exists() and (not out.is_file() or not out.read_bytes().startswith(",".join(WRITTEN).encode())):
        raise LincBenchError(f"{out} exists, and no review wrote it. Choose another file with --out FILE.")
    labels = samples[["id", "given", *(column for column in ("path", "group") if column in samples)]].copy()
    labels["decision"] = labels["id"].map(decided["decision"]).fillna("")
    labels["label"] = labels["id"].map(decided["label"]).where(labels["decision"] == "relabel", labels["given"])
    others = [column for column in labels if column not in WRITTEN]
    text = as_csv(labels[[*WRITTEN, *others]])
    earlier = _set_aside(out) if out.exists() and out.read_text(encoding="utf-8") != text else None
    write_text(out, text)
    judged = labels.assign(is_wrong=labels["decision"] == "relabel")[labels["decision"].isin(["keep", "relabel"])]
    summaries = {"judged": ("is_wrong", "size"), "wrong": ("is_wrong", "sum"), "error rate": ("is_wrong", "mean")}
    return Applied(labels, by_class_and_group(judged, summaries), earlier)


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
        file = regular_file(path)
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


def _joined(decisions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    joined = pd.concat(decisions).drop_duplicates(["id", "decision", "label"])
    disputed = joined[joined["id"].duplicated()]["id"].unique()
    if len(disputed):
        raise LincBenchError(
            f"Reviewers disagree on {len(disputed)} of the samples, such as '{disputed[0]}'. Agree on one decision for "
            "each, and remove the other lines."
        )
    return joined

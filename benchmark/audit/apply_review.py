"""Applies the decisions of one or several reviews to the labels: `linc-bench apply-review audit.csv decisions.csv`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.disk import write_text
from benchmark.errors import LincBenchError
from benchmark.identity import bytes_digest

DECISIONS = ("keep", "relabel", "ambiguous", "skip")
COLUMNS = ("audit", "id", "given", "decision", "label")
WRITTEN = ["id", "label", "given", "decision"]


@dataclass(frozen=True)
class Applied:
    """Labels after a review: the given ones, except those that a reviewer changed."""

    labels: pd.DataFrame  # id, label, given, decision; in the order of the audit
    rates: pd.DataFrame  # error rates among the reviewed samples, by given class and group

    @property
    def sentence(self) -> str:
        counts = self.labels["decision"].value_counts()
        by_decision = ", ".join(f"{counts.get(decision, 0):,} {decision}" for decision in DECISIONS)
        return f"{(self.labels['decision'] != '').sum():,} of {len(self.labels):,} labels reviewed: {by_decision}."


def apply_review(audit_csv: Path, decisions: Sequence[Path], out: Path) -> Applied:
    """Writes every sample's label after the review to `out`; refuses decisions that belong to another audit."""
    samples = _read(audit_csv, ("id", "given"))
    decided = _joined([_checked(file, samples, audit_csv) for file in decisions]).set_index("id")
    if out.exists() and (out.is_dir() or not out.read_bytes().startswith(",".join(WRITTEN).encode())):
        raise LincBenchError(f"{out} exists, and no review wrote it. Choose another file with --out FILE.")
    labels = samples[["id", "given", *(column for column in ("path", "group") if column in samples)]].copy()
    labels["decision"] = labels["id"].map(decided["decision"]).fillna("")
    labels["label"] = labels["id"].map(decided["label"]).where(labels["decision"] == "relabel", labels["given"])
    others = [column for column in labels if column not in WRITTEN]
    write_text(out, labels[[*WRITTEN, *others]].to_csv(index=False))
    judged = labels.assign(is_wrong=labels["decision"] == "relabel")[labels["decision"].isin(["keep", "relabel"])]
    summaries = {"judged": ("is_wrong", "size"), "wrong": ("is_wrong", "sum"), "error rate": ("is_wrong", "mean")}
    return Applied(labels, by_class_and_group(judged, summaries))


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
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise LincBenchError(f"The file {path} does not exist.") from error
    except (ValueError, OSError) as error:
        raise LincBenchError(f"{path} cannot be read as a CSV file ({error}).") from error
    if missing := [column for column in columns if column not in table]:
        present = ", ".join(map(str, table))
        hint = " Separate columns by commas." if ";" in present or "\t" in present else ""
        raise LincBenchError(f"{path} has no column {', '.join(missing)}; it has {present}.{hint}")
    return table


def _checked(decisions_csv: Path, samples: pd.DataFrame, audit_csv: Path) -> pd.DataFrame:
    """The decisions of a file, if they belong to the audit and are valid."""
    decisions, digest = _read(decisions_csv, COLUMNS), audit_digest(samples)
    if decisions.empty:
        raise LincBenchError(f"{decisions_csv} has no decisions. Export them from the page beside {audit_csv}.")
    if others := sorted(set(decisions["audit"]) - {digest}):
        raise LincBenchError(
            f"{decisions_csv} belongs to another audit ({', '.join(others[:3])}; {audit_csv} is {digest}). Decisions "
            "hold for the samples and labels they were made on; audit those again, or export from the page beside it."
        )
    given = decisions["id"].map(samples.set_index("id")["given"])
    classes = {*samples["given"], *samples.get("suggested", ())}
    for is_wrong, problem in (
        (given.isna(), "names the sample '{id}', which is not in the audit"),
        (decisions["id"].duplicated(), "decides on '{id}' a second time; keep one of the two lines"),
        (decisions["given"] != given, "says that the label was '{given}'; it was '{actual}'"),
        (~decisions["decision"].isin(DECISIONS), f"has the decision '{{decision}}'; expected {', '.join(DECISIONS)}"),
        (
            (decisions["decision"] == "relabel") & ~decisions["label"].isin(classes),
            "relabels to '{label}', which is no class of the audit",
        ),
    ):
        if is_wrong.any():
            first = int(is_wrong.to_numpy().argmax())
            row = decisions.assign(actual=given).iloc[first]
            raise LincBenchError(f"Line {first + 2} of {decisions_csv} {problem.format_map(row)}.")
    return decisions


def _joined(decisions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    joined = pd.concat(decisions).drop_duplicates(["id", "decision", "label"])
    disputed = joined[joined["id"].duplicated()]["id"].unique()
    if len(disputed):
        raise LincBenchError(
            f"Reviewers disagree on {len(disputed)} of the samples, such as '{disputed[0]}'. Agree on one decision for "
            "each, and remove the other lines."
        )
    return joined

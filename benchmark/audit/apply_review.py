"""Puts decisions of a review, or several, into a file of labels: `linc-bench apply-review audit.csv decisions.csv`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmark.audit.run_audit import audit_digest
from benchmark.disk.files import write_text
from benchmark.errors import LincBenchError

DECISIONS = ("keep", "relabel", "ambiguous", "skip")
COLUMNS = ("audit", "id", "given", "decision", "label")
WRITTEN = ["id", "label", "given", "decision"]
HEAD = ",".join(WRITTEN)


@dataclass(frozen=True)
class Applied:
    """Labels after a review: the given ones, but for those that somebody changed."""

    labels: pd.DataFrame  # id, label, given, decision; in the order of the audit
    rates: pd.DataFrame  # what the review found, by given class and group

    @property
    def sentence(self) -> str:
        counts = self.labels["decision"].value_counts()
        told = ", ".join(f"{counts.get(decision, 0):,} {decision}" for decision in DECISIONS)
        return f"{int(counts.drop('', errors='ignore').sum()):,} of {len(self.labels):,} labels reviewed: {told}."


def apply_review(audit_csv: Path, decisions_csv: Path | Sequence[Path], out: Path) -> Applied:
    """Writes every sample's label after the review to `out`; refuses decisions that belong to another audit."""
    samples = _read(audit_csv, ("id", "given"))
    files = [decisions_csv] if isinstance(decisions_csv, Path) else list(decisions_csv)
    parts = [_read(file, COLUMNS) for file in files]
    for file, part in zip(files, parts, strict=True):
        _check(audit_csv, file, samples, part)
    decisions = pd.concat(parts).drop_duplicates(["id", "decision", "label"])
    _check_agreement(decisions)
    _check_out(out)
    decided = decisions.set_index("id")
    labels = pd.DataFrame({"id": samples["id"], "given": samples["given"]})
    labels["decision"] = labels["id"].map(decided["decision"]).fillna("")
    relabelled = labels["decision"] == "relabel"
    labels["label"] = labels["id"].map(decided["label"]).where(relabelled, labels["given"])
    if "group" in samples:
        labels["group"] = samples["group"]
    if "path" in samples:
        labels["path"] = samples["path"]
    columns = [*WRITTEN, *(column for column in ("path", "group") if column in labels)]
    write_text(out, labels[columns].to_csv(index=False))
    return Applied(labels, _rates(labels))


def _check_agreement(decisions: pd.DataFrame) -> None:
    disputed = decisions[decisions["id"].duplicated()]["id"].unique()
    if len(disputed):
        raise LincBenchError(
            f"Reviewers decided otherwise on {len(disputed)} of the samples, such as '{disputed[0]}'. Agree on one "
            "decision for each, and remove the other lines."
        )


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise LincBenchError(f"The file {path} does not exist.") from error
    except (ValueError, OSError) as error:
        raise LincBenchError(f"{path} cannot be read as a CSV file ({error}).") from error
    if missing := [column for column in columns if column not in table]:
        found = ", ".join(map(str, table))
        hint = " Separate columns by commas." if ";" in found or "\t" in found else ""
        raise LincBenchError(f"{path} has no column {', '.join(missing)}; it has {found}.{hint}")
    return table


def _check_out(out: Path) -> None:
    """Labels of an earlier review may be replaced, but nothing else."""
    if out.exists() and (out.is_dir() or not out.read_bytes().startswith(HEAD.encode())):
        raise LincBenchError(f"{out} is there already, and no review wrote it. Choose another file with --out FILE.")


def _check(audit_csv: Path, decisions_csv: Path, samples: pd.DataFrame, decisions: pd.DataFrame) -> None:
    known = audit_digest(samples)
    if decisions.empty:
        raise LincBenchError(f"{decisions_csv} has no decisions. Export them from the page beside {audit_csv}.")
    if others := sorted(set(decisions["audit"]) - {known}):
        raise LincBenchError(
            f"{decisions_csv} belongs to another audit ({', '.join(others[:3])}; {audit_csv} is {known}). Decisions "
            "hold for the samples and labels they were made on; audit those again, or export from the page beside it."
        )
    given = dict(zip(samples["id"], samples["given"], strict=True))
    classes, seen = set(samples["given"]) | set(samples.get("suggested", ())), set()
    for line, row in enumerate(decisions.to_dict("records"), start=2):
        where = f"Line {line} of {decisions_csv}"
        if row["id"] not in given:
            raise LincBenchError(f"{where} names the sample '{row['id']}', which the audit has not.")
        if row["id"] in seen:
            raise LincBenchError(f"{where} decides on '{row['id']}' a second time. Keep one of the two.")
        if row["given"] != given[row["id"]]:
            raise LincBenchError(f"{where} says that the label was '{row['given']}'; it was '{given[row['id']]}'.")
        if row["decision"] not in DECISIONS:
            raise LincBenchError(f"{where} has the decision '{row['decision']}'; expected {', '.join(DECISIONS)}.")
        if row["decision"] == "relabel" and row["label"] not in classes:
            raise LincBenchError(f"{where} relabels to '{row['label']}', which is no class of the audit.")
        seen.add(row["id"])


def _rates(labels: pd.DataFrame) -> pd.DataFrame:
    """Of those that somebody judged, how many were wrong."""
    judged = labels[labels["decision"].isin(["keep", "relabel"])].assign(
        wrong=lambda rows: rows["decision"] == "relabel"
    )
    parts = [("all", "", judged)]
    for column, of in (("given", "class"), ("group", "group")):
        if column in judged:
            parts += [(of, str(name), part) for name, part in judged.groupby(column)]
    rows = [
        {
            "of": of,
            "which": which,
            "judged": len(part),
            "wrong": int(part["wrong"].sum()),
            "error rate": part["wrong"].mean(),
        }
        for of, which, part in parts
        if len(part)
    ]
    return pd.DataFrame(rows, columns=["of", "which", "judged", "wrong", "error rate"])

"""Every number of the paper, and whether our runs reproduce it, approach it, contradict it, or cannot test it here.

A number is *reproduced* if ours is within 0.01 or two standard deviations over seeds, *approached* within 0.05 (a gain:
of the same sign and at least half as large), and otherwise *contradicted in our setting*, which each row describes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark import paper
from benchmark.names import dataset_title, in_words, paper_dataset
from benchmark.tables import mean_and_spread

REPRODUCED, APPROACHED, CONTRADICTED, UNTESTED = "reproduced", "approached", "contradicted", "not testable here"
CLOSE, NEAR = 0.01, 0.05
RECIPES = {"standard": "standard training", "linc": "LiNC"}
RULES = (
    f"Reproduced: within {CLOSE:g} of the paper's number (gains: a point, shares: five), or within two standard "
    f"deviations over our seeds. Approached: within {NEAR:g}; a gain has the same sign and is at least half as large. "
    "Contradicted: neither, in our setting, which differs from the paper's as the last column says. Accuracies beside "
    "the paper's are means of batch accuracies, as the paper's appear to be."
)


@dataclass(frozen=True)
class Verdict:
    where: str
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str


def verdicts(metrics: pd.DataFrame, accuracy: pd.DataFrame) -> list[Verdict]:
    """From rows `of_the_paper`."""
    if metrics.empty and accuracy.empty:
        return []
    return [*_table_1(metrics), *_table_2(accuracy), *_table_3(accuracy), *_text(accuracy)]


def verdict_table(found: list[Verdict]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "where": one.where,
            "claim": one.claim,
            "paper": one.paper,
            "ours": one.ours,
            "verdict": one.verdict,
            "why": one.why,
        }
        for one in found
    )


def count_table(found: list[Verdict]) -> pd.DataFrame:
    """How many numbers of each table, and of the text, met which verdict."""
    rows = []
    for where in dict.fromkeys(one.where for one in found):
        of_it = [one.verdict for one in found if one.where == where]
        counts = {verdict: of_it.count(verdict) for verdict in (REPRODUCED, APPROACHED, CONTRADICTED, UNTESTED)}
        rows.append({"where": where, "numbers": len(of_it)} | counts)
    return pd.DataFrame(rows)


def of_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Those on the paper's data sets, or on files that stand for them."""
    if rows.empty:
        return rows
    rows = rows.assign(stands_for=rows["dataset"].map(paper_dataset))
    return rows[rows["stands_for"].isin(paper.clean_accuracy().index)]


def judge_value(claimed: float, ours: pd.Series) -> str:
    spread = ours.std(ddof=1) if len(ours) > 1 else 0.0
    away = abs(ours.mean() - claimed)
    return REPRODUCED if away <= max(CLOSE, 2 * spread) else APPROACHED if away <= NEAR else CONTRADICTED


def judge_gain(claimed: float, ours: float, close: float) -> str:
    if abs(ours - claimed) <= close:
        return REPRODUCED
    return APPROACHED if ours * claimed > 0 and abs(ours) >= abs(claimed) / 2 else CONTRADICTED


def _setting(rows: pd.DataFrame) -> str:
    seeds = rows["training_seed"].nunique()
    where = in_words(rows.iloc[0], ("dataset", "noise", "backbone", "image_size"))
    return f"{where}, {seeds} seed{'s' if seeds > 1 else ''}"


def _missing(dataset: str) -> str:
    return f"{dataset_title(dataset)} is not at hand"


def _table_1(metrics: pd.DataFrame) -> Iterator[Verdict]:
    where, dataset = "Table 1 (detection)", paper.DETECTION_DATASET
    ours = metrics[(metrics["line_up"] == "original") & (metrics["status"] == "ok")] if len(metrics) else metrics
    ours = ours[np.isclose(ours["rate"], paper.DETECTION_RATE) & (ours["noise"] == "symmetric")] if len(ours) else ours
    for detector, claimed in paper.DETECTION.items():
        own = ours[ours["detector"] == detector] if len(ours) else ours
        there = own[own["stands_for"] == dataset] if len(own) else own
        claim = f"AUC of {detector}, {dataset_title(dataset)}, 20% noise"
        if len(there):
            shown, verdict, why = mean_and_spread(there["auroc"]), judge_value(claimed, there["auroc"]), _setting(there)
        else:
            means = own.groupby("dataset")["auroc"].mean() if len(own) else pd.Series(dtype=float)
            shown = f"{means.min():.4f} to {means.max():.4f}" if len(means) else "–"
            elsewhere = f"; the range is that of {', '.join(map(dataset_title, means.index))}" if len(means) else ""
            verdict, why = UNTESTED, f"{_missing(dataset)}{elsewhere}"
        yield Verdict(where, claim, f"{claimed:.4f}", shown, verdict, why)
    yield from _leads(where, ours)


def _leads(where: str, ours: pd.DataFrame) -> Iterator[Verdict]:
    """LiNC's lead over the strongest of the other seven, where at least four of them were measured."""
    for name, group in ours.groupby("dataset") if len(ours) else ():
        means = group.groupby("detector")["auroc"].mean()
        others = means[means.index.isin(set(paper.DETECTION) - {"LiNC"})]
        if "LiNC" in means and len(others) >= 4:
            lead = means["LiNC"] - others.max()
            claim = f"LiNC's lead in AUC over the best of the others, on {dataset_title(str(name))}"
            shown = f"{lead:+.4f} over {others.idxmax()}"
            yield Verdict(
                where, claim, f"{paper.AUC_LEAD:+.4f}", shown, judge_gain(paper.AUC_LEAD, lead, CLOSE), _setting(group)
            )


def _table_2(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    where = "Table 2 (no noise)"
    clean = accuracy[(accuracy["rate"] == 0) & (accuracy["recipe"] == "standard")] if len(accuracy) else accuracy
    for dataset, claimed in paper.clean_accuracy()[paper.OWN_MODEL].items():
        runs = _usual(clean, str(dataset))
        claim = f"{dataset_title(str(dataset))}, best epoch"
        yield _cell(where, claim, claimed, runs, "best_batch_mean", str(dataset), 3)


def _table_3(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    where = "Table 3 (noise)"
    for cell in paper.noisy_accuracy().itertuples():
        runs = _usual(accuracy, str(cell.dataset))
        if len(runs):
            runs = runs[np.isclose(runs["rate"], float(str(cell.rate))) & (runs["recipe"] == cell.recipe)]
        for epoch in ("best", "last"):
            claim = (
                f"{dataset_title(str(cell.dataset))}, {cell.rate:.0%} noise, {RECIPES[str(cell.recipe)]}, {epoch} epoch"
            )
            yield _cell(where, claim, getattr(cell, epoch), runs, f"{epoch}_batch_mean", str(cell.dataset), 4)


def _usual(accuracy: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """The runs that stand for a data set: with the paper's hyper-parameters; of two classes those with noise that may
    draw the true class, since the paper's numbers at 50 % are impossible otherwise."""
    runs = accuracy[accuracy["stands_for"] == dataset] if len(accuracy) else accuracy
    if runs.empty:
        return runs
    runs = runs[(runs["learning_rate"] == 5e-4) & (runs["weight_decay"] == 1e-4) & (runs["batch_size"] == 128)]
    runs = runs[runs["image_size"] == runs["image_size"].max()]
    inclusive = runs[(runs["noise"] == "symmetric-inclusive") & (runs["classes"] == 2)]
    return inclusive if len(inclusive) else runs[runs["noise"] == "symmetric"]


def _cell(
    where: str, claim: str, claimed: float, runs: pd.DataFrame, column: str, dataset: str, digits: int
) -> Verdict:
    if runs.empty:
        return Verdict(where, claim, f"{claimed:.{digits}f}", "–", UNTESTED, _missing(dataset))
    runs = runs.drop_duplicates("run")  # two studies may share it
    return Verdict(
        where,
        claim,
        f"{claimed:.{digits}f}",
        mean_and_spread(runs[column], digits),
        judge_value(claimed, runs[column]),
        _setting(runs),
    )


def _text(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    """Averages of the text: over our data sets as the paper takes them over its ten."""
    where = "Text (averages)"
    runs = pd.concat([_usual(accuracy, name) for name in paper.clean_accuracy().index]) if len(accuracy) else accuracy
    ours: dict[str, paper.Aggregate] = {}
    over = "no data set"
    if len(runs):
        runs = runs[(runs["rate"] > 0)].drop_duplicates("run").assign(rate=lambda rows: rows["rate"].round(6))
        cells = runs.groupby(["stands_for", "rate", "recipe"], as_index=False)[
            ["best_batch_mean", "last_batch_mean"]
        ].mean()
        columns = {"stands_for": "dataset", "best_batch_mean": "best", "last_batch_mean": "last"}
        ours = {_general(one.claim): one for one in paper.aggregates(cells.rename(columns=columns))}
        over = ", ".join(dataset_title(name) for name in sorted(runs["dataset"].unique()))
    for theirs in paper.aggregates(paper.noisy_accuracy()):
        mine = ours.get(_general(theirs.claim))
        claim = f"{_general(theirs.claim)} ({theirs.unit})"
        if mine is None:
            yield Verdict(where, claim, f"{theirs.paper:.4g}", "–", UNTESTED, "not all of its cells were run")
            continue
        if theirs.unit == "accuracy":
            verdict = judge_value(theirs.paper, pd.Series([mine.value]))
        else:
            verdict = judge_gain(theirs.paper, mine.value, {"points": 1.0, "%": 5.0}[theirs.unit])
        yield Verdict(where, claim, f"{theirs.paper:.4g}", f"{mine.value:.4g}", verdict, f"over {over}")


def _general(claim: str) -> str:
    """Without the number of cells that it was computed from."""
    return claim.partition(", of ")[0]

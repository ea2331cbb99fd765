"""Every number of the paper, and whether our runs reproduce it, approach it, contradict it, or cannot test it here."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from benchmark import paper
from benchmark.claims import PAPER_SETTING
from benchmark.names import dataset_title, in_words, paper_dataset
from benchmark.tables import mean_and_spread

REPRODUCED, APPROACHED, LARGER = "reproduced", "approached", "larger gain"
CONTRADICTED, UNTESTED = "contradicted", "not testable here"
VERDICTS = (REPRODUCED, APPROACHED, LARGER, CONTRADICTED, UNTESTED)
RECIPES = {"standard": "standard training", "linc": "LiNC"}
# How far a number may be from the paper's to be reproduced, and to be approached, by its unit.
BANDS = {"accuracy": (0.01, 0.05), "points": (1.0, 5.0), "%": (5.0, 20.0)}
RULES = (
    "Reproduced: within 0.01 of the paper's number (1 point, 5 %), or within two standard deviations over our seeds if "
    "that is not beyond what counts as approached. Approached: within 0.05 (5 points, 20 %); a gain has the same sign "
    "and is half to twice as large. Larger gain: more than twice as large. Contradicted: none of these, in our "
    "setting, which differs from the paper's as the last column says. Accuracies beside the paper's are means of batch "
    "accuracies, as the paper's appear to be. Two-class data sets are judged under noise that may draw the true class "
    "again, where that was run, since the paper's numbers at 50 % are impossible otherwise."
)
TEXT = "Text (averages)"
KEYS = ("run", "line_up", "detector", "epochs_read", "class", "epoch", "component")


@dataclass(frozen=True)
class Verdict:
    where: str
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str


def of_the_paper(rows: pd.DataFrame, studies: list[str]) -> pd.DataFrame:
    """Of these studies' rows those on the paper's data sets, or on files that stand for them; what two studies share,
    once."""
    if rows.empty:
        return rows
    rows = rows.assign(stands_for=rows["dataset"].map(paper_dataset))
    rows = rows[rows["stands_for"].isin(paper.clean_accuracy().index) & rows["study"].isin(studies)]
    order = rows["study"].map({name: number for number, name in enumerate(studies)})
    return rows.iloc[np.argsort(order, kind="stable")].drop_duplicates([column for column in KEYS if column in rows])


def as_in_the_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Those with the paper's hyper-parameters, of the largest images; so that nothing is averaged that differs."""
    for column in ("epochs", "batch_size", "learning_rate", "weight_decay") if len(rows) else ():
        rows = rows[rows[column] == PAPER_SETTING[column]]
    rows = rows[rows["images"] == "cached"] if len(rows) else rows
    return rows[rows["image_size"] == rows["image_size"].max()] if len(rows) else rows


def verdicts(metrics: pd.DataFrame, accuracy: pd.DataFrame) -> list[Verdict]:
    """From rows `of_the_paper` and `as_in_the_paper`."""
    if metrics.empty and accuracy.empty:
        return []
    return [*_table_1(metrics), *_table_2(accuracy), *_table_3(accuracy), *_text(accuracy)]


def verdict_table(found: list[Verdict]) -> pd.DataFrame:
    return pd.DataFrame(asdict(one) for one in found)


def count_table(found: list[Verdict]) -> pd.DataFrame:
    """How many numbers of each table, and of the text, met which verdict."""
    rows = []
    for where in dict.fromkeys(one.where for one in found):
        of_it = [one.verdict for one in found if one.where == where]
        counts = {verdict: of_it.count(verdict) for verdict in VERDICTS}
        rows.append({"where": where, "numbers": len(of_it)} | counts)
    return pd.DataFrame(rows)


def in_a_sentence(found: list[Verdict]) -> str:
    """How much of the paper was tested, and what came out; levels of accuracy apart from averages of differences."""

    def counted(some: list[Verdict]) -> str:
        verdicts = [one.verdict for one in some if one.verdict != UNTESTED]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts]
        return f"{len(verdicts)} of {len(some)} could be tested ({', '.join(counts) or 'none'})"

    averages = [one for one in found if one.where == TEXT]
    levels = [one for one in found if one.where != TEXT]
    return (
        f"Is the paper reproduced? Of the numbers in its tables, {counted(levels)}; of the averages and gains in its "
        f"text, {counted(averages)}. What differs in the setting stands beside each."
    )


def judge_value(claimed: float, ours: float, unit: str = "accuracy", spread: float = 0.0) -> str:
    (close, near), away = BANDS[unit], abs(ours - claimed)
    if away <= max(close, min(2 * spread, near)):
        return REPRODUCED
    return APPROACHED if away <= near else CONTRADICTED


def judge_gain(claimed: float, ours: float) -> str:
    """In points; where the paper has no gain, a value like others."""
    if claimed <= 0 or abs(ours - claimed) <= BANDS["points"][0]:
        return judge_value(claimed, ours, "points")
    return CONTRADICTED if ours < claimed / 2 else APPROACHED if ours <= 2 * claimed else LARGER


def _table_1(metrics: pd.DataFrame) -> Iterator[Verdict]:
    where, dataset = "Table 1 (detection)", paper.DETECTION_DATASET
    ours = metrics[(metrics["line_up"] == "original") & (metrics["status"] == "ok")] if len(metrics) else metrics
    ours = ours[np.isclose(ours["rate"], paper.DETECTION_RATE) & (ours["noise"] == "symmetric")] if len(ours) else ours
    there = ours[ours["stands_for"] == dataset] if len(ours) else ours
    for detector, claimed in paper.DETECTION.items():
        claim = f"AUC of {detector}, {dataset_title(dataset)}, 20% noise"
        own = there[there["detector"] == detector] if len(there) else there
        if len(own):
            yield _judged(where, claim, claimed, own, "auroc")
        else:
            elsewhere = _elsewhere(ours[ours["detector"] == detector] if len(ours) else ours)
            yield Verdict(where, claim, f"{claimed:.4f}", *elsewhere)
    claim, means = (
        "LiNC's lead over the best of the others",
        there.groupby("detector")["auroc"].mean() if len(there) else None,
    )
    if means is not None and set(paper.DETECTION) <= set(means.index):
        lead = means["LiNC"] - means[[name for name in paper.DETECTION if name != "LiNC"]].max()
        yield Verdict(
            where,
            claim,
            f"{paper.AUC_LEAD:.4f}",
            f"{lead:.4f}",
            judge_gain(100 * paper.AUC_LEAD, 100 * lead),
            "in points",
        )
    else:
        yield Verdict(where, claim, f"{paper.AUC_LEAD:.4f}", "–", UNTESTED, f"{dataset_title(dataset)} was not run")


def _elsewhere(ours: pd.DataFrame) -> tuple[str, str, str]:
    """A detector's numbers on other data sets than the paper's, for orientation."""
    missing = f"{dataset_title(paper.DETECTION_DATASET)} was not run"
    if ours.empty:
        return "–", UNTESTED, missing
    means = ours.groupby("dataset")["auroc"].mean()
    shown = f"{means.min():.4f} to {means.max():.4f}"
    return shown, UNTESTED, f"{missing}; the range is that of {', '.join(map(dataset_title, means.index))}"


def _table_2(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    where, clean = "Table 2 (no noise)", paper.clean_accuracy()
    ours = accuracy[(accuracy["rate"] == 0) & (accuracy["recipe"] == "standard")] if len(accuracy) else accuracy
    for dataset, claimed in clean[paper.OWN_MODEL].items():
        runs = ours[ours["stands_for"] == dataset] if len(ours) else ours
        claim, missing = f"{dataset_title(str(dataset))}, best epoch", _why_missing(accuracy, str(dataset))
        yield _judged(where, claim, claimed, runs, "best_batch_mean", missing)
    run = clean.loc[clean.index.isin(ours["stands_for"])] if len(ours) else clean[:0]
    mine = run.assign(**{paper.OWN_MODEL: ours.groupby("stands_for")["best_batch_mean"].mean()}) if len(run) else run
    counts = [paper.best_on_clean(table) for table in (clean, mine)]
    verdict = UNTESTED if len(run) < len(clean) else REPRODUCED if counts[0] == counts[1] else CONTRADICTED
    claim, why = "data sets on which it is the most accurate of all models", f"{len(run)} of the ten data sets were run"
    yield Verdict(where, claim, f"{counts[0]} of {len(clean)}", f"{counts[1]} of {len(run)}", verdict, why)


def _table_3(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    where = "Table 3 (noise)"
    for cell in paper.noisy_accuracy().to_dict("records"):
        dataset, rate, recipe = str(cell["dataset"]), float(cell["rate"]), str(cell["recipe"])
        runs = _possible_noise(accuracy[accuracy["stands_for"] == dataset]) if len(accuracy) else accuracy
        runs = runs[np.isclose(runs["rate"], rate) & (runs["recipe"] == recipe)] if len(runs) else runs
        for epoch in ("best", "last"):
            claim = f"{dataset_title(dataset)}, {rate:.0%} noise, {RECIPES[recipe]}, {epoch} epoch"
            yield _judged(where, claim, cell[epoch], runs, f"{epoch}_batch_mean", _why_missing(accuracy, dataset))


def _possible_noise(runs: pd.DataFrame) -> pd.DataFrame:
    """Of a data set's runs at each rate those with the noise that the paper's can have had; see the rules."""
    inclusive = (runs["noise"] == "symmetric-inclusive") & (runs["classes"] == 2)
    others = (runs["noise"] == "symmetric") & ~runs["rate"].isin(runs.loc[inclusive, "rate"])
    return runs[inclusive | others]


def _why_missing(accuracy: pd.DataFrame, dataset: str) -> str:
    known = len(accuracy) and dataset in set(accuracy["stands_for"])
    return "this rate was not run" if known else f"{dataset_title(dataset)} was not run"


def _judged(where: str, claim: str, claimed: float, runs: pd.DataFrame, column: str, missing: str = "") -> Verdict:
    shown = f"{claimed:.4f}"
    if runs.empty:
        return Verdict(where, claim, shown, "–", UNTESTED, missing)
    values, seeds = runs[column], runs["training_seed"].nunique()
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    setting = in_words(runs.iloc[0], ("dataset", "noise", "backbone", "image_size"))
    why = f"{setting}, {seeds} seed{'s' if seeds > 1 else ''}"
    return Verdict(
        where, claim, shown, mean_and_spread(values), judge_value(claimed, values.mean(), spread=spread), why
    )


def _text(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    """Averages of the text: ours over the cells that were run, judged against the paper's over the very same cells."""
    where, theirs = TEXT, paper.noisy_accuracy()
    noisy = accuracy[accuracy["rate"] > 0] if len(accuracy) else accuracy
    ours, same, names = pd.DataFrame(columns=theirs.columns), theirs[:0], ""
    if len(noisy):
        runs = pd.concat([_possible_noise(part) for _, part in noisy.groupby("stands_for")])
        cells = runs.assign(rate=runs["rate"].round(6)).groupby(["stands_for", "rate", "recipe"], as_index=False)
        renamed = {"stands_for": "dataset", "best_batch_mean": "best", "last_batch_mean": "last"}
        ours = cells[["best_batch_mean", "last_batch_mean"]].mean().rename(columns=renamed)
        same = theirs.merge(ours[["dataset", "rate", "recipe"]], on=["dataset", "rate", "recipe"])
        names = ", ".join(dataset_title(name) for name in sorted(runs["dataset"].unique()))
    mine, alike = ({_general(one.claim): one for one in paper.aggregates(table)} for table in (ours, same))
    for claimed in paper.aggregates(theirs):
        name = _general(claimed.claim)
        claim = f"{name} ({claimed.unit})"
        if name not in mine or name not in alike:
            yield Verdict(where, claim, f"{claimed.paper:.4g}", "–", UNTESTED, "none of its cells was run")
            continue
        is_gain, theirs_here, value = "gain" in name, alike[name].value, mine[name].value
        verdict = judge_gain(theirs_here, value) if is_gain else judge_value(theirs_here, value, claimed.unit)
        over = f"{alike[name].cells} of the paper's {claimed.cells} cells ({names})"
        why = f"judged against the paper's own {theirs_here:.4g} over {over}"
        yield Verdict(where, claim, f"{claimed.paper:.4g}", f"{value:.4g}", verdict, why)


def _general(claim: str) -> str:
    """Without the number of cells that it was computed from."""
    return claim.partition(", of ")[0]

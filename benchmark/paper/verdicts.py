"""Every number of the paper, and whether our runs reproduce it, approach it, contradict it, or cannot test it here."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from benchmark.display.tables import mean_and_spread
from benchmark.paper import numbers as paper
from benchmark.paper.claims import PAPER_SETTING
from benchmark.wording import dataset_title, describe_setting, paper_dataset

REPRODUCED, APPROACHED, LARGER = "reproduced", "approached", "larger gain"
FARTHER, CONTRADICTED, UNTESTED = "farther away", "contradicted", "not testable here"
VERDICTS = (REPRODUCED, APPROACHED, LARGER, FARTHER, CONTRADICTED, UNTESTED)
RECIPES = {"standard": "standard training", "linc": "LiNC"}
# How far a number may be from the paper's to be reproduced, and to be approached, by its unit.
BANDS = {"accuracy": (0.01, 0.05), "points": (1.0, 5.0), "%": (5.0, 20.0)}
RULES = (
    "Reproduced: within 0.01 of the paper's accuracy or AUC, 1 point of a difference, 5 percentage points of a share; "
    "or within two standard deviations over our seeds, if that counts as approached. Approached: within 0.05, 5 "
    "points, 20 percentage points; a gain is half to twice the paper's. Larger gain: more than twice. Contradicted: a "
    "difference, share or gain that is none of these. Farther away: a level (an accuracy, an AUC) that is none of "
    "these, which a network and images that are not the paper's may explain. Not testable: it was not run. Accuracies "
    "are means of batch accuracies, as the paper's appear to be. Two-class data sets are judged under noise that may "
    "draw the true class again, where that was run, since the paper's numbers at 50 % are impossible otherwise; "
    "nominal 20 % are then 10 % wrong labels."
)
TABLE_1, TABLE_2, TABLE_3 = "Table 1 (detection)", "Table 2 (no noise)", "Table 3 (noise)"
GAINS = "Table 3 (LiNC's gain)"
TEXT = "Text (averages)"
SEEDS = ["noise_seed", "training_seed"]
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
    return [*_table_1(metrics), *_table_2(accuracy), *_table_3(accuracy), *_gains(accuracy), *_text(accuracy)]


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
    """How much of the paper was tested, and what came out; levels apart from gains, and gains from averages."""

    def counted(*places: str) -> str:
        verdicts = [one.verdict for one in found if one.where in places]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS[:-1] if verdict in verdicts]
        tested = len(verdicts) - verdicts.count(UNTESTED)
        return f"{tested} of {len(verdicts)} were measured{f' ({_list(counts)})' if counts else ''}"

    claimed = paper.DETECTION["LiNC"]
    of_linc = next(one for one in found if one.where == TABLE_1 and one.claim.startswith("AUC of LiNC"))
    missing = f" Its AUC of {claimed} is neither confirmed nor refuted: {of_linc.why.partition(';')[0]}."
    return (
        f"Is the paper reproduced?{missing if of_linc.verdict == UNTESTED else ''} Of LiNC's gains in accuracy, cell "
        f"by cell, {counted(GAINS)}; of the averages in the paper's text, over the cells that were run, "
        f"{counted(TEXT)}; of the levels in its tables, {counted(TABLE_1, TABLE_2, TABLE_3)}."
    )


def _list(words: list[str]) -> str:
    return ", ".join(words)


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
    where, dataset = TABLE_1, paper.DETECTION_DATASET
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
    where, clean = TABLE_2, paper.clean_accuracy()
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
    for cell in paper.noisy_accuracy().to_dict("records"):
        dataset, rate, recipe = str(cell["dataset"]), float(cell["rate"]), str(cell["recipe"])
        runs = _cell(accuracy, dataset, rate)
        runs = runs[runs["recipe"] == recipe] if len(runs) else runs
        for epoch in ("best", "last"):
            claim = f"{dataset_title(dataset)}, {rate:.0%} noise, {RECIPES[recipe]}, {epoch} epoch"
            missing = _why_missing(accuracy, dataset)
            yield _judged(TABLE_3, claim, cell[epoch], runs, f"{epoch}_batch_mean", missing)


def _cell(accuracy: pd.DataFrame, dataset: str, rate: float) -> pd.DataFrame:
    runs = _possible_noise(accuracy[accuracy["stands_for"] == dataset]) if len(accuracy) else accuracy
    return runs[np.isclose(runs["rate"], rate)] if len(runs) else runs


def _gains(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    """What LiNC adds in each cell of table 3: the pattern, which another network should show as well."""
    claimed = paper.noisy_accuracy().pivot(index=["dataset", "rate"], columns="recipe", values=["best", "last"])
    for (dataset, rate), epoch in product(claimed.index, ("best", "last")):
        theirs = 100 * float(claimed[epoch]["linc"][dataset, rate] - claimed[epoch]["standard"][dataset, rate])
        claim, shown = (
            f"{dataset_title(dataset)}, {rate:.0%} noise, gain at the {epoch} epoch (points)",
            f"{theirs:+.2f}",
        )
        runs = _cell(accuracy, dataset, rate)
        table = runs.pivot_table(f"{epoch}_batch_mean", SEEDS, "recipe") if len(runs) else pd.DataFrame()
        if not set(RECIPES) <= set(table) or table[list(RECIPES)].dropna().empty:
            yield Verdict(GAINS, claim, shown, "–", UNTESTED, _why_missing(accuracy, dataset))
            continue
        ours = 100 * (table["linc"] - table["standard"]).dropna()
        spread = f" ± {ours.std(ddof=1):.2f}" if len(ours) > 1 else ""
        verdict = judge_gain(theirs, float(ours.mean()))
        yield Verdict(GAINS, claim, shown, f"{ours.mean():+.2f}{spread}", verdict, _setting(runs))


def _setting(runs: pd.DataFrame) -> str:
    seeds = runs["training_seed"].nunique()
    setting = describe_setting(runs.iloc[0], ("dataset", "noise", "backbone", "image_size"))
    return f"{setting}, {seeds} seed{'s' if seeds > 1 else ''}"


def _possible_noise(runs: pd.DataFrame) -> pd.DataFrame:
    """Of a data set's runs at each rate those with the noise that the paper's can have had; see the rules."""
    inclusive = (runs["noise"] == "symmetric-inclusive") & (runs["classes"] == 2)
    others = (runs["noise"] == "symmetric") & ~runs["rate"].isin(runs.loc[inclusive, "rate"])
    return runs[inclusive | others]


def _why_missing(accuracy: pd.DataFrame, dataset: str) -> str:
    known = len(accuracy) and dataset in set(accuracy["stands_for"])
    return "this rate was not run" if known else f"{dataset_title(dataset)} was not run"


def _judged(where: str, claim: str, claimed: float, runs: pd.DataFrame, column: str, missing: str = "") -> Verdict:
    """A level: one that is far away says something of the paper only if network and images are the paper's."""
    shown = f"{claimed:.4f}"
    if runs.empty:
        return Verdict(where, claim, shown, "–", UNTESTED, missing)
    values = runs[column]
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    verdict, why = judge_value(claimed, values.mean(), spread=spread), _setting(runs)
    if verdict == CONTRADICTED and not _is_the_papers(runs):
        verdict, why = FARTHER, f"{abs(values.mean() - claimed):.3f} away, in another setting: {why}"
    return Verdict(where, claim, shown, mean_and_spread(values), verdict, why)


def _is_the_papers(runs: pd.DataFrame) -> bool:
    return all((runs[name] == PAPER_SETTING[name]).all() for name in ("backbone", "image_size"))


def _text(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    """Averages of the text: ours over the cells that were run, judged against the paper's over the very same cells."""
    theirs = paper.noisy_accuracy()
    noisy = accuracy[accuracy["rate"] > 0] if len(accuracy) else accuracy
    ours, same = pd.DataFrame(columns=theirs.columns), theirs[:0]
    if len(noisy):
        runs = pd.concat([_possible_noise(part) for _, part in noisy.groupby("stands_for")])
        cells = runs.assign(rate=runs["rate"].round(6)).groupby(["stands_for", "rate", "recipe"], as_index=False)
        renamed = {"stands_for": "dataset", "best_batch_mean": "best", "last_batch_mean": "last"}
        ours = cells[["best_batch_mean", "last_batch_mean"]].mean().rename(columns=renamed)
        same = theirs.merge(ours[["dataset", "rate", "recipe"]], on=["dataset", "rate", "recipe"])
    mine, alike = ({_general(one.claim): one for one in paper.aggregates(table)} for table in (ours, same))
    for claimed in paper.aggregates(theirs):
        name = _general(claimed.claim)
        claim = f"{name} ({claimed.unit})"
        if name not in mine or name not in alike:
            yield Verdict(TEXT, claim, f"{claimed.paper:.4g}", "–", UNTESTED, "none of its cells was run")
            continue
        same_cells, value = alike[name], mine[name].value
        judge = judge_gain if "gain" in name else partial(judge_value, unit=claimed.unit)
        shown = f"{same_cells.value:.4g} (over all cells {claimed.paper:.4g})"
        names = _list([dataset_title(name) for name in sorted({dataset for dataset, _ in same_cells.cells})])
        why = f"over {len(same_cells.cells)} of the paper's {len(claimed.cells)} cells ({names})"
        verdict = judge(same_cells.value, value)
        if verdict == CONTRADICTED and claimed.unit == "accuracy" and not _is_the_papers(noisy):
            verdict = FARTHER
        yield Verdict(TEXT, claim, shown, f"{value:.4g}", verdict, why)


def _general(claim: str) -> str:
    """Without the number of cells that it was computed from."""
    return claim.partition(", of ")[0]

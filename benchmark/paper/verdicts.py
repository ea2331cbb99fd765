"""A verdict on every number in the paper's tables and text: reproduced, close, contradicted, or not tested."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from scipy.special import stdtrit

from benchmark.display.tables import MISSING, mean_and_spread
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE, RECIPE_TITLES
from benchmark.wording import dataset_title, describe_setting

TABLE_1, TABLE_2, TABLE_3 = "Table 1 (detection)", "Table 2 (no noise)", "Table 3 (noise)"
GAINS, TEXT = f"Table 3 ({DETECTOR}'s gain)", "Text (averages)"
PLACES = (TABLE_1, TABLE_2, TABLE_3, GAINS, TEXT)
REPRODUCED, CLOSE, LARGER, SMALLER = "reproduced", "close", "larger gain", "smaller gain, not for certain"
FAR, CONTRADICTED, NOT_TESTED = "differs by more than 0.05", "contradicted", "not tested"
VERDICTS = (REPRODUCED, CLOSE, LARGER, SMALLER, FAR, CONTRADICTED, NOT_TESTED)
# After a count.
WORDS = {LARGER: "a larger gain", SMALLER: "smaller gains, not for certain", FAR: "differ by more than 0.05"}
# How far a number may be from the paper's to be reproduced, and to be close, by its unit.
BANDS = {"accuracy": (0.01, 0.05), "points": (1.0, 5.0), "%": (5.0, 20.0)}
RULES = (
    "Reproduced: within 0.01 of the paper's accuracy or AUC, 1 point of a difference or 5 percentage points of a "
    "share, or within two standard deviations over our seeds if that is still close. Close: within 0.05, 5 points "
    "or 20 percentage points; a gain also from half to twice the paper's.",
    "Larger gain: more than twice the paper's. Smaller gain, not for certain: less than half, with a 95 % "
    "interval over seeds that reaches half. Differs by more than 0.05: an accuracy or AUC that is not close, with "
    "another network or image size, which may be why. Contradicted: any other number that is not close. Not "
    "tested: it was not run.",
    "Accuracies are means of batch accuracies, as the paper's appear to be. Its numbers on two classes at 50 % "
    "noise are possible only if a wrong label may be the true one; where we ran such noise, data sets of two "
    "classes are judged by it, and a nominal 20 % is then 10 % wrong labels.",
)

Cells = dict[Any, pd.DataFrame]  # runs by data set, rate and method


class Claim(NamedTuple):
    """A number in one of the paper's tables, and the cell and column that measure it."""

    where: str
    title: str
    cell: tuple[str, float, str]
    column: str
    number: float


class Verdict(NamedTuple):
    where: str
    claim: str
    paper: str
    ours: str
    verdict: str
    why: str


def judge_value(claimed: float, ours: float, unit: str = "accuracy", spread: float = 0.0) -> str:
    (reproduced, close), distance = BANDS[unit], abs(ours - claimed)
    if distance <= max(reproduced, min(2 * spread, close)):
        return REPRODUCED
    return CLOSE if distance <= close else CONTRADICTED


def judge_gain(claimed: float, ours: float, reach: float = 0.0) -> str:
    """In points; where the paper has no gain, it is judged like any other difference.

    `reach` is half the interval of ours over seeds: a gain is contradicted if all of it is below half the paper's.
    """
    if claimed <= 0 or abs(ours - claimed) <= BANDS["points"][0]:
        return judge_value(claimed, ours, "points")
    if ours < claimed / 2:
        return CONTRADICTED if ours + reach < claimed / 2 else SMALLER
    return CLOSE if ours <= 2 * claimed else LARGER


def verdict_table(metrics: pd.DataFrame, accuracy: pd.DataFrame) -> pd.DataFrame:
    """Every number of the paper judged once, from rows on its data sets that were trained as in the paper."""
    if metrics.empty and accuracy.empty:
        return pd.DataFrame()
    detection = select.at_the_papers_rate(select.original_line_up(metrics))
    detection = detection[detection["noise"] == "symmetric"]
    accuracy = _possible_noise(select.with_default_recipe(accuracy, *RECIPE_TITLES))
    cells: Cells = {
        key: runs
        for rows, method in ((detection, "detector_name"), (accuracy, "recipe_name"))
        for key, runs in rows.groupby(["stands_for", "rate", method])
    }
    found = [
        *(_judge_level(claim, cells, detection) for claim in _claims()),
        _judge_lead(detection[detection["stands_for"] == paper.DETECTION_DATASET]),
        _judge_most_accurate(accuracy),
        *_judge_gains(cells),
        *_judge_averages(accuracy),
    ]
    found.sort(key=lambda verdict: PLACES.index(verdict.where))
    return pd.DataFrame(found)


def _possible_noise(rows: pd.DataFrame) -> pd.DataFrame:
    """With the kind of noise that the paper's runs can have had at each data set and rate; see the rules."""
    inclusive = (rows["noise"] == "symmetric-inclusive") & (rows["classes"] == 2)
    replaced = inclusive.groupby([rows["stands_for"], rows["rate"]]).transform("any").astype(bool)
    return rows[inclusive | ((rows["noise"] == "symmetric") & ~replaced) | (rows["rate"] == 0)]


def _claims() -> Iterator[Claim]:
    dataset, rate = paper.DETECTION_DATASET, paper.DETECTION_RATE
    for detector, auc in paper.DETECTION.items():
        title = f"AUC of {detector}, {dataset_title(dataset)}, {rate:.0%} noise"
        yield Claim(TABLE_1, title, (dataset, rate, detector), "auroc", auc)
    for dataset, best in paper.clean_accuracy().reset_index()[["dataset", paper.OWN_MODEL]].itertuples(index=False):
        title = f"{dataset_title(dataset)}, no noise, {RECIPE_TITLES[BASELINE_RECIPE]}, best epoch"
        yield Claim(TABLE_2, title, (dataset, 0.0, BASELINE_RECIPE), "best_batch_mean", best)
    for dataset, rate, recipe, *numbers in paper.noisy_accuracy().itertuples(index=False):
        for epoch, number in zip(("best", "last"), numbers, strict=True):
            title = f"{dataset_title(dataset)}, {rate:.0%} noise, {RECIPE_TITLES[recipe]}, {epoch} epoch"
            yield Claim(TABLE_3, title, (dataset, rate, recipe), f"{epoch}_batch_mean", number)


def _judge_level(claim: Claim, cells: Cells, detection: pd.DataFrame) -> Verdict:
    """An accuracy or AUC; only one that was measured with the paper's network and image size can contradict it."""
    (dataset, _, method), shown, runs = claim.cell, f"{claim.number:.4f}", cells.get(claim.cell)
    if runs is None:
        ours, why = MISSING, _why_missing(dataset, cells)
        elsewhere = detection[detection["detector_name"] == method].groupby("dataset")["auroc"].mean()
        if len(elsewhere):
            ours = f"{elsewhere.min():.4f} to {elsewhere.max():.4f}"
            why += f"; the range is over {', '.join(map(dataset_title, elsewhere.index))}"
        return Verdict(claim.where, claim.title, shown, ours, NOT_TESTED, why)
    values = runs[claim.column]
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    verdict, why = judge_value(claim.number, values.mean(), spread=spread), _setting(runs)
    if verdict == CONTRADICTED and not select.have_its_network(runs):
        verdict, why = FAR, f"differs by {abs(values.mean() - claim.number):.3f} in another setting: {why}"
    return Verdict(claim.where, claim.title, shown, mean_and_spread(values), verdict, why)


def _judge_lead(detection: pd.DataFrame) -> Verdict:
    claim, shown = f"{DETECTOR}'s lead in AUC over the best of the seven others", f"{paper.AUC_LEAD:.4f}"
    means = detection.groupby("detector_name")["auroc"].mean()
    if not set(paper.DETECTION) <= set(means.index):
        why = f"{dataset_title(paper.DETECTION_DATASET)} was not run with all of them"
        return Verdict(TABLE_1, claim, shown, MISSING, NOT_TESTED, why)
    others = means[paper.OTHERS]
    lead = means[DETECTOR] - others.max()
    verdict = judge_gain(100 * paper.AUC_LEAD, 100 * lead)
    return Verdict(TABLE_1, claim, shown, f"{lead:.4f}", verdict, f"over {others.idxmax()}")


def _judge_most_accurate(accuracy: pd.DataFrame) -> Verdict:
    claim = "data sets on which it is the most accurate of all models without noise"
    clean = accuracy[(accuracy["rate"] == 0) & (accuracy["recipe_name"] == BASELINE_RECIPE)]
    theirs, best = paper.clean_accuracy(), clean.groupby("stands_for")["best_batch_mean"].mean()
    ours = theirs.assign(**{paper.OWN_MODEL: best}).dropna()
    count, own_count = paper.best_on_clean(theirs), paper.best_on_clean(ours)
    verdict = NOT_TESTED if len(ours) < len(theirs) else REPRODUCED if own_count == count else CONTRADICTED
    why = f"{len(ours)} of the ten data sets were run"
    return Verdict(TABLE_2, claim, f"{count} of {len(theirs)}", f"{own_count} of {len(ours)}", verdict, why)


def _judge_gains(cells: Cells) -> Iterator[Verdict]:
    """What LiNC adds in each cell of Table 3: a pattern that another network should show as well."""
    for (dataset, rate, epoch), gain in paper.gains().items():
        title = f"{dataset_title(dataset)}, {rate:.0%} noise, gain at the {epoch} epoch (points)"
        keys = [(dataset, rate, recipe) for recipe in (BASELINE_RECIPE, RECIPE)]
        runs = [cells[key] for key in keys if key in cells]
        by_seed = [part.groupby(select.SEEDS)[f"{epoch}_batch_mean"].mean() for part in runs]
        ours = 100 * (by_seed[1] - by_seed[0]).dropna() if len(runs) == 2 else pd.Series()
        if ours.empty:
            yield Verdict(GAINS, title, f"{gain:+.2f}", MISSING, NOT_TESTED, _why_missing(dataset, cells))
            continue
        deviation = float(ours.std(ddof=1)) if len(ours) > 1 else 0.0
        spread = f" ± {deviation:.2f}" if len(ours) > 1 else ""
        reach = float(stdtrit(len(ours) - 1, 0.975)) * deviation / len(ours) ** 0.5 if len(ours) > 1 else 0.0
        verdict, why = judge_gain(gain, float(ours.mean()), reach), _setting(pd.concat(runs))
        yield Verdict(GAINS, title, f"{gain:+.2f}", f"{ours.mean():+.2f}{spread}", verdict, why)


def _judge_averages(accuracy: pd.DataFrame) -> Iterator[Verdict]:
    """Averages in the text: ours over the cells that were run, judged against the paper's over the same cells."""
    names = {"stands_for": "dataset", "recipe_name": "recipe", "best_batch_mean": "best", "last_batch_mean": "last"}
    cells = accuracy.loc[accuracy["rate"].isin(paper.RATES), ["rate", *names]].rename(columns=names)
    theirs, ours = paper.noisy_accuracy(), cells.groupby(["dataset", "rate", "recipe"], as_index=False).mean()
    same_cells = theirs.merge(ours[["dataset", "rate", "recipe"]])
    measured, expected = ({average.claim: average for average in paper.averages(rows)} for rows in (ours, same_cells))
    for claimed in paper.averages(theirs):
        claim = f"{claimed.claim} ({claimed.unit})"
        if claimed.claim not in measured:
            yield Verdict(TEXT, claim, f"{claimed.paper:.4g}", MISSING, NOT_TESTED, "none of its cells was run")
            continue
        value, same = measured[claimed.claim].value, expected[claimed.claim]
        verdict = judge_gain(same.value, value) if same.is_gain else judge_value(same.value, value, same.unit)
        if verdict == CONTRADICTED and claimed.unit == "accuracy" and not select.have_its_network(accuracy):
            verdict = FAR
        shown = f"{same.value:.4g} (over all cells {claimed.paper:.4g})"
        datasets = ", ".join(dataset_title(name) for name in sorted({dataset for dataset, _ in same.cells}))
        why = f"over {len(same.cells)} of the paper's {len(claimed.cells)} cells ({datasets})"
        yield Verdict(TEXT, claim, shown, f"{value:.4g}", verdict, why)


def _setting(runs: pd.DataFrame) -> str:
    seeds = runs["training_seed"].nunique()
    setting = describe_setting(runs.iloc[0], ("dataset", "noise", "backbone", "image_size"))
    return f"{setting}, {seeds} seed{'s' if seeds > 1 else ''}"


def _why_missing(dataset: str, cells: Cells) -> str:
    is_run = any(cell[0] == dataset for cell in cells)
    return "this rate was not run" if is_run else f"{dataset_title(dataset)} was not run"


def count_table(judged: pd.DataFrame) -> pd.DataFrame:
    """How many numbers of each table, and of the text, have which verdict."""
    counts = pd.crosstab(judged["where"], judged["verdict"]).reindex(index=PLACES, columns=VERDICTS, fill_value=0)
    counts.insert(0, "numbers", counts.sum(axis=1))
    return counts.reset_index().rename_axis(columns=None)


def in_a_sentence(judged: pd.DataFrame) -> str:
    """How much of the paper was measured, and what came out; gains, averages and levels apart."""

    def counted(*places: str) -> str:
        counts = judged.loc[judged["where"].isin(places), "verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        words = [f"{count} {WORDS.get(str(verdict), verdict)}" for verdict, count in counts[:-1].items() if count]
        tested = f"{counts[:-1].sum()} of {counts.sum()} were measured"
        return f"{tested} ({', '.join(words)})" if words else tested

    is_auc = judged["claim"].str.startswith(f"AUC of {DETECTOR},")
    auc, dataset = paper.DETECTION[DETECTOR], dataset_title(paper.DETECTION_DATASET)
    missing = f" Its AUC of {auc} was not tested, since {dataset} was not run."
    is_tested = (judged.loc[is_auc, "verdict"] != NOT_TESTED).any()
    return (
        f"Is the paper reproduced?{'' if is_tested else missing} Of {DETECTOR}'s gains in "
        f"accuracy, cell by cell, {counted(GAINS)}. Of the averages in the text, over the cells that were run, "
        f"{counted(TEXT)}. Of the accuracies and AUCs in the tables, {counted(TABLE_1, TABLE_2, TABLE_3)}."
    )

"""The claims of the paper as values, and a table of those that a study measures, with its measurements beside."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pandas as pd

from benchmark.display.tables import mean_and_spread
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.select import Tables
from benchmark.paper.sentences import sentence_rows
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE_TITLES
from benchmark.wording import dataset_title

TABLE_1, TABLE_2, TABLE_3 = "Table 1 (detection)", "Table 2 (no noise)", "Table 3 (noise)"
GAINS, TEXT = f"Table 3 ({DETECTOR}'s gain)", "Text (averages)"
LEAD = f"{DETECTOR}'s lead in AUC over the best of the seven others"
MOST_ACCURATE = "data sets on which it is the most accurate of all models without noise"
PLACES = (TABLE_1, TABLE_2, TABLE_3, GAINS, TEXT)


@dataclass(frozen=True)
class Claim:
    """A number in one of the paper's tables, and the rows that measure it."""

    where: str
    dataset: str
    rate: float
    method: str  # a detector or a recipe
    measure: str  # "auroc", or "best" or "last" for the accuracy at that epoch
    number: float

    @property
    def cell(self) -> tuple[str, float, str]:
        return self.dataset, self.rate, self.method

    def __str__(self) -> str:
        setting = f"{dataset_title(self.dataset)}, {f'{self.rate:.0%}' if self.rate else 'no'} noise"
        if self.where == TABLE_1:
            return f"AUC of {self.method}, {setting}"
        return f"{setting}, {RECIPE_TITLES[self.method]}, {self.measure} epoch"


@cache
def table_claims() -> tuple[Claim, ...]:
    at = paper.DETECTION_DATASET, paper.DETECTION_RATE
    clean = paper.clean_accuracy()[paper.OWN_MODEL]
    return (
        *(Claim(TABLE_1, *at, detector, "auroc", number) for detector, number in paper.DETECTION.items()),
        *(Claim(TABLE_2, str(dataset), 0.0, BASELINE_RECIPE, "best", number) for dataset, number in clean.items()),
        *(
            Claim(TABLE_3, cell["dataset"], cell["rate"], cell["recipe"], epoch, cell[epoch])
            for cell in paper.noisy_accuracy().to_dict("records")
            for epoch in ("best", "last")
        ),
    )


def claims_table(tables: Tables) -> pd.DataFrame:
    """Every claim that the rows of one study measure, once for each of its settings."""
    metrics, accuracy = (select.with_paper_dataset(tables[name]) for name in ("metrics", "accuracy"))
    metrics = select.at_the_papers_rate(select.original_line_up(metrics))
    accuracy = select.with_default_recipe(accuracy, *RECIPE_TITLES)
    rows = [*_study_levels(metrics, accuracy), *_study_averages(accuracy), *sentence_rows(tables)]
    return pd.DataFrame(rows, columns=["claim", "paper", "ours", "difference", "seeds", "what differs"])


def _study_levels(metrics: pd.DataFrame, accuracy: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Numbers of the paper's tables; an AUC beside ours on any data set."""

    def row(claim: Claim, runs: pd.DataFrame, column: str, seeds: int, note: str = "") -> dict[str, object]:
        differs, ours = select.what_differs(runs, claim.dataset), mean_and_spread(runs[column])
        return _row(f"{claim}{note}", claim.number, runs[column].mean(), ours, seeds, differs)

    for _, setting in metrics.groupby("setting"):
        for claim in (claim for claim in table_claims() if claim.where == TABLE_1):
            runs = setting[setting["detector_name"] == claim.method]
            if len(runs):
                yield row(claim, runs, "auroc", int(runs["runs_averaged"].sum()))
        lead, rival = lead_over_others(setting)
        if rival:
            seeds, differs = setting["training_seed"].nunique(), select.what_differs(setting, paper.DETECTION_DATASET)
            yield _row(LEAD, paper.AUC_LEAD, lead, f"{lead:+.4f} over {rival}", seeds, differs)
    for key, runs in accuracy.groupby(["stands_for", "rate", "recipe_name", "setting"]):
        for claim in (claim for claim in table_claims() if claim.cell == key[:3]):
            yield row(claim, runs, f"{claim.measure}_test", len(runs))
            yield row(claim, runs, f"{claim.measure}_batch_mean", len(runs), ", mean of batches")


def _study_averages(accuracy: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Averages over data sets, computed from our cells as the paper computes them from its own, for each protocol."""
    for _, runs in accuracy.groupby("protocol"):
        seeds, differs = runs["training_seed"].nunique(), select.what_differs(runs)
        best, tested = count_most_accurate(runs, "best_test")
        if tested:
            count = {"paper": f"{paper.best_on_clean(paper.clean_accuracy())} of 10", "ours": f"{best} of {tested}"}
            yield {"claim": MOST_ACCURATE, **count, "difference": "–", "seeds": seeds, "what differs": differs}
        for average in paper.averages(select.mean_cells(runs, "test")):
            datasets = runs.loc[runs["stands_for"].isin([name for name, _ in average.cells]), "dataset"].unique()
            over = f"over {len(average.cells)} cells of {', '.join(map(dataset_title, sorted(datasets)))}; {differs}"
            claim, ours = f"{average.claim} ({average.unit})", f"{average.value:.4g}"
            yield _row(claim, average.paper, average.value, ours, seeds, over, ".4g")


def _row(
    claim: str, number: float, value: float, ours: str, seeds: int, differs: str, digits: str = ".4f"
) -> dict[str, object]:
    numbers = {"paper": f"{number:{digits}}", "ours": ours, "difference": f"{value - number:+{digits}}"}
    return {"claim": claim, **numbers, "seeds": seeds, "what differs": differs}


def lead_over_others(detection: pd.DataFrame) -> tuple[float, str]:
    """LiNC's mean AUC minus that of the best of the paper's other detectors, and which that is."""
    means = detection.groupby("detector_name")["auroc"].mean()
    others = means[means.index.isin(paper.OTHERS)]
    if DETECTOR not in means or others.empty:
        return 0.0, ""
    return float(means[DETECTOR] - others.max()), str(others.idxmax())


def count_most_accurate(accuracy: pd.DataFrame, measure: str) -> tuple[int, int]:
    """On how many data sets without noise our model is the most accurate in the paper's table, and of how many."""
    clean = accuracy[(accuracy["rate"] == 0) & (accuracy["recipe_name"] == BASELINE_RECIPE)]
    ours = clean.groupby("stands_for")[measure].mean()
    table = paper.clean_accuracy().assign(**{paper.OWN_MODEL: ours}).dropna()
    return (paper.best_on_clean(table), len(table)) if len(table) else (0, 0)

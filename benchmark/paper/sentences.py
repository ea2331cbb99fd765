"""What the paper says in sentences, each as a measurement on the rows of one study."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.wording import dataset_title, describe_setting

KNOBS = ("learning_rate", "weight_decay")


@dataclass(frozen=True)
class Sentence:
    """Checked on every group of a table's rows; the check says nothing where the rows cannot decide."""

    says: str
    table: str
    by: tuple[str, ...]
    check: Callable[[pd.DataFrame], str]


def sentence_rows(tables: select.Tables) -> Iterator[dict[str, object]]:
    """A row for each sentence and group that has an answer."""
    for sentence in SENTENCES:
        rows = select.with_paper_dataset(tables[sentence.table])
        for _, group in rows[rows["recipe_name"].isin([BASELINE_RECIPE, RECIPE])].groupby(list(sentence.by)):
            runs = select.with_default_recipe(group, RECIPE)
            if len(runs) and (answer := sentence.check(group)):
                first = runs.iloc[0]
                about = {"dataset": dataset_title(first["dataset"]), "rate": f"{first['rate']:.0%} noise"}
                where = ", ".join(text for column, text in about.items() if column in sentence.by)
                claim = f"{where}: {sentence.says}" if where else sentence.says
                row = {"claim": claim, "paper": "says so", "ours": answer, "difference": "–"}
                yield row | {"seeds": runs["training_seed"].nunique(), "what differs": select.what_differs(runs)}


def _gain_grows(accuracy: pd.DataFrame) -> str:
    by_rate = {paper.gain_at(rate) for rate in paper.RATES}
    averages = paper.averages(select.mean_cells(accuracy, "test"))
    return _grows([average.value for average in averages if average.claim in by_rate])


def _trust_grows(measure: Callable[[pd.DataFrame], float], histograms: pd.DataFrame) -> str:
    """Whether a measure of LiNC's trust, as a mean over runs, grows with the noise rate."""
    rows = select.with_default_recipe(histograms, RECIPE)
    values = {key: measure(run) for key, run in rows[rows["rate"] > 0].groupby(["rate", "run"])}
    return _grows(pd.Series(values, dtype=float).groupby(level=0).mean().to_list())


def _grows(values: list[float]) -> str:
    holds = "holds" if (np.diff(values) > 0).all() else "does not hold"
    return f"{holds}: {', '.join(f'{value:.3g}' for value in values)}" if len(values) > 1 else ""


def _spread(histogram: pd.DataFrame) -> float:
    """The standard deviation of the mislabelled samples' trust."""
    wrong = histogram[(histogram["subset"] == "mislabelled") & (histogram["count"] > 0)]
    centres = wrong[["from", "to"]].mean(axis=1).repeat(wrong["count"].to_list())
    return float(centres.std(ddof=0))


def _overlap(histogram: pd.DataFrame) -> float:
    """The area that the densities of clean and mislabelled samples share."""
    counts = histogram.pivot_table(index="from", columns="subset", values="count")
    return float((counts / counts.sum()).min(axis=1, skipna=False).sum(skipna=False))


def _means_stay_apart(mixtures: pd.DataFrame) -> str:
    rows = select.with_default_recipe(mixtures, RECIPE).sort_values(["run", "component"])
    by_run = rows.groupby("run")
    deviation = (rows["standard_deviation"] + by_run["standard_deviation"].shift()) / 2
    gaps = (by_run["mean"].diff() / deviation).groupby(rows["run"]).min().fillna(0.0)
    apart = f"{gaps.min():.2g} to {gaps.max():.2g} ({len(gaps)} runs)"
    return f"smallest gap between neighbouring means, in their standard deviations: {apart}"


def _lengths_matter_little(accuracy: pd.DataFrame) -> str:
    own = accuracy[accuracy["recipe_name"] == RECIPE]
    own = own[select.options(own["recipe_options"]).map(lambda changed: {*changed} <= {"warm_up", "soft_epochs"})]
    means = own.groupby("recipe_options")["last_test"].mean()
    text = f"accuracy at the last epoch from {means.min():.4f} to {means.max():.4f} over {len(means)} choices"
    return text if len(means) > 1 else ""


def _same_knobs_are_best(accuracy: pd.DataFrame) -> str:
    rows = select.with_default_recipe(accuracy, BASELINE_RECIPE, RECIPE)
    means = rows.pivot_table(index=list(KNOBS), columns="recipe_name", values="best_test")
    both = means.reindex(columns=[BASELINE_RECIPE, RECIPE]).dropna()
    if len(both) < 2:
        return ""
    tried = both.index.to_frame()
    without, with_it = (describe_setting(tried.iloc[int(both[recipe].argmax())], KNOBS) for recipe in both)
    return f"{'holds' if without == with_it else 'does not hold'}: best without {without}; with {with_it} (best epoch)"


def _two_components_over_correct(corrections: pd.DataFrame) -> str:
    of_all = corrections[(corrections["class"] == "all") & (corrections["recipe_name"] == RECIPE)]
    changed = select.options(of_all["recipe_options"])
    two, three = (of_all[changed.map(lambda given, like=like: given == like)] for like in ({"components": 2}, {}))
    if two.empty or three.empty:
        return ""
    touched = [(part["noisy_share"] * (1 - part["noisy_precision"])).mean() for part in (two, three)]
    after = [part["label_accuracy_after"].mean() for part in (two, three)]
    return (
        f"{'holds' if touched[0] > touched[1] else 'does not hold'}: correctly labelled and in the noisy component "
        f"{touched[0]:.1%} of the samples with two, {touched[1]:.1%} with three; labels right after the correction "
        f"{after[0]:.1%} and {after[1]:.1%}"
    )


TRUST = "with more noise the trust of mislabelled samples"
SAME_KNOBS = f"the learning rate and weight decay that are best without {DETECTOR} are best with it"
DATASET, SETTING = ("protocol", "dataset"), ("dataset", "rate", "setting")
ALIKE = ("dataset", "rate", "noise", "backbone", "image_size", "epochs", "batch_size")  # settings alike but for KNOBS
SENTENCES = (
    Sentence("the gain at the last epoch grows with the noise rate", "accuracy", ("protocol",), _gain_grows),
    Sentence(f"{TRUST} is broader", "trust_histograms", DATASET, partial(_trust_grows, _spread)),
    Sentence(
        f"{TRUST} overlaps more with that of the others", "trust_histograms", DATASET, partial(_trust_grows, _overlap)
    ),
    Sentence("the mixture's three means stay apart", "mixtures", ("study",), _means_stay_apart),
    Sentence("the lengths of the soft phases matter little", "accuracy", SETTING, _lengths_matter_little),
    Sentence(SAME_KNOBS, "accuracy", ALIKE, _same_knobs_are_best),
    Sentence("two components over-correct, three do not", "corrections", SETTING, _two_components_over_correct),
)

"""What the paper says in sentences, each as a measurement on the rows of one study."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.paper.select import Tables
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.wording import dataset_title, describe_setting

KNOBS = ("learning_rate", "weight_decay")


@dataclass(frozen=True)
class Sentence:
    """Checked on every group of a table's rows; the check answers nothing where the rows cannot decide."""

    says: str
    table: str
    by: tuple[str, ...]
    check: Callable[[pd.DataFrame], str]


def sentence_rows(tables: Tables) -> Iterator[dict[str, object]]:
    """A row for each sentence and group that has an answer."""
    for sentence in SENTENCES:
        rows = select.with_paper_dataset(tables[sentence.table])
        for _, group in rows[rows["recipe_name"].isin([BASELINE_RECIPE, RECIPE])].groupby(list(sentence.by)):
            runs = select.with_default_recipe(group, RECIPE)
            answer = sentence.check(group) if len(runs) else ""
            if answer:
                first = runs.iloc[0]
                about = [dataset_title(first["dataset"])] if "dataset" in sentence.by else []
                about += [f"{first['rate']:.0%} noise"] if "rate" in sentence.by else []
                yield {
                    "claim": f"{', '.join(about)}: {sentence.says}" if about else sentence.says,
                    "paper": "says so",
                    "ours": answer,
                    "difference": "–",
                    "seeds": runs["training_seed"].nunique(),
                    "what differs": select.what_differs(runs),
                }


def _gain_grows(accuracy: pd.DataFrame) -> str:
    by_rate = {paper.gain_at(rate) for rate in paper.RATES}
    averages = paper.averages(select.mean_cells(accuracy, "test"))
    return _grows(average.value for average in averages if average.claim in by_rate)


def _trust_is_broader(histograms: pd.DataFrame) -> str:
    return _grows(_by_rate(histograms, _spread))


def _trust_overlaps_more(histograms: pd.DataFrame) -> str:
    return _grows(_by_rate(histograms, _overlap))


def _grows(values: Iterable[float]) -> str:
    """Whether values grow from one noise rate to the next."""
    numbers = list(values)
    holds = "holds" if (np.diff(numbers) > 0).all() else "does not hold"
    return f"{holds}: {', '.join(f'{number:.3g}' for number in numbers)}" if len(numbers) > 1 else ""


def _by_rate(histograms: pd.DataFrame, measure: Callable[[pd.DataFrame], float]) -> pd.Series:
    """A measure of LiNC's trust, as a mean over runs at each noise rate."""
    rows = select.with_default_recipe(histograms, RECIPE)
    noisy = rows[rows["rate"] > 0]
    values = {key: measure(run) for key, run in noisy.groupby(["rate", "run"])}
    return pd.Series(values, dtype=float).groupby(level=0).mean()


def _spread(histogram: pd.DataFrame) -> float:
    """The standard deviation of the mislabelled samples' trust."""
    wrong = histogram[histogram["subset"] == "mislabelled"]
    if not wrong["count"].sum():
        return np.nan
    centres = wrong[["from", "to"]].mean(axis=1)
    mean = np.average(centres, weights=wrong["count"])
    return float(np.sqrt(np.average((centres - mean) ** 2, weights=wrong["count"])))


def _overlap(histogram: pd.DataFrame) -> float:
    """The area that the densities of clean and mislabelled samples share."""
    counts = histogram.pivot_table(index="from", columns="subset", values="count")
    return float((counts / counts.sum()).min(axis=1, skipna=False).sum(skipna=False))


def _means_stay_apart(mixtures: pd.DataFrame) -> str:
    rows = select.with_default_recipe(mixtures, RECIPE).sort_values("component")
    gaps = [
        _smallest_gap(run["mean"].to_numpy(), run["standard_deviation"].to_numpy()) for _, run in rows.groupby("run")
    ]
    apart = f"{min(gaps):.2g} to {max(gaps):.2g} ({len(gaps)} runs)"
    return f"smallest gap between neighbouring means, in their standard deviations: {apart}"


def _smallest_gap(means: np.ndarray, deviations: np.ndarray) -> float:
    return float((np.diff(means) / ((deviations[1:] + deviations[:-1]) / 2)).min()) if len(means) > 1 else 0.0


def _lengths_matter_little(accuracy: pd.DataFrame) -> str:
    are_lengths = select.options(accuracy["recipe_options"]).map(
        lambda changed: set(changed) <= {"warm_up", "soft_epochs"}
    )
    means = accuracy[(accuracy["recipe_name"] == RECIPE) & are_lengths].groupby("recipe_options")["last_test"].mean()
    text = f"accuracy at the last epoch from {means.min():.4f} to {means.max():.4f} over {len(means)} choices"
    return text if len(means) > 1 else ""


def _same_knobs_are_best(accuracy: pd.DataFrame) -> str:
    means = (
        select.with_default_recipe(accuracy, BASELINE_RECIPE, RECIPE)
        .groupby([*KNOBS, "recipe_name"])["best_test"]
        .mean()
    )
    both = means.unstack().reindex(columns=[BASELINE_RECIPE, RECIPE]).dropna()
    if len(both) < 2:
        return ""
    tried = both.index.to_frame()
    without, with_it = (describe_setting(tried.iloc[int(both[recipe].argmax())], KNOBS) for recipe in both)
    return f"{'holds' if without == with_it else 'does not hold'}: best without {without}; with {with_it} (best epoch)"


def _two_components_over_correct(corrections: pd.DataFrame) -> str:
    of_all = corrections[corrections["class"] == "all"]
    components = select.options(of_all["recipe_options"]).map(lambda changed: changed if changed else {"components": 3})
    two, three = (
        of_all[components.map(lambda changed, count=count: changed == {"components": count})] for count in (2, 3)
    )
    if two.empty or three.empty:
        return ""
    touched = [(part["noisy_share"] * (1 - part["noisy_precision"])).mean() for part in (two, three)]
    after = [part["label_accuracy_after"].mean() for part in (two, three)]
    return (
        f"{'holds' if touched[0] > touched[1] else 'does not hold'}: correctly labelled and in the noisy component "
        f"{touched[0]:.1%} of the samples with two, {touched[1]:.1%} with three; labels right after the correction "
        f"{after[0]:.1%} and {after[1]:.1%}"
    )


ALIKE = ("dataset", "rate", "noise", "backbone", "image_size", "epochs", "batch_size")  # settings alike but for KNOBS
SETTING = ("dataset", "rate", "setting")
DATASET = ("protocol", "dataset")
BROADER = "with more noise the trust of mislabelled samples is broader"
OVERLAPS = "with more noise the trust of mislabelled samples overlaps more with that of the others"
SAME_KNOBS = f"the learning rate and weight decay that are best without {DETECTOR} are best with it"
SENTENCES = (
    Sentence("the gain at the last epoch grows with the noise rate", "accuracy", ("protocol",), _gain_grows),
    Sentence(BROADER, "trust_histograms", DATASET, _trust_is_broader),
    Sentence(OVERLAPS, "trust_histograms", DATASET, _trust_overlaps_more),
    Sentence("the mixture's three means stay apart", "mixtures", ("study",), _means_stay_apart),
    Sentence("the lengths of the soft phases matter little", "accuracy", SETTING, _lengths_matter_little),
    Sentence(SAME_KNOBS, "accuracy", ALIKE, _same_knobs_are_best),
    Sentence("two components over-correct, three do not", "corrections", SETTING, _two_components_over_correct),
)

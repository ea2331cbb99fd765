"""The tables of a study with several kinds of noise: detection, accuracy, and what each kind is."""

from collections.abc import Iterator, Mapping

import pandas as pd

from benchmark import reference
from benchmark.display.tables import MISSING, Group, mean_and_spread, titled
from benchmark.statistics.comparisons import SCALE, main_line_up
from benchmark.statistics.noise_kinds import KindRow, compare_kinds, in_order, settings_to_compare
from benchmark.wording import dataset_title, list_of, ordinal

KINDS = (
    "Runs that were trained alike, at the rate nearest to 20 %. Mean AUROC over pairs of seeds, then over data sets, "
    "of detectors that were measured under every kind. Rank correlation: Spearman's, of these means with those under "
    f"{reference.NOISE} noise; the median and the middle 95 % of a bootstrap over data sets, pairs of seeds and "
    "samples, on the same data sets; of labels of people, which are on other data, with all. With two classes there is "
    "one wrong one, so asymmetric noise and annotators, which choose between wrong classes, were run where there are "
    "more."
)
ACCURACY = (
    f"{reference.DETECTOR} minus standard training on the same wrong labels, in points: accuracy and balanced accuracy "
    "(the mean recall of the classes) at the last epoch, recall of the class with the fewest training samples; means "
    "over pairs of seeds, then over data sets, with the lowest and the highest run. Labels right: before and after the "
    "correction."
)
WRONG = (
    "Nominal: the share of wrong labels that was asked for; true: that came out. Chance: mean and standard deviation "
    "over samples of the chance to be wrong, of kinds that draw one for each. In the hardest tenth: the share of the "
    "wrong labels that is in the tenth of the training samples for which held-out classifiers of pretrained features, "
    "trained on correct labels, find the correct label least likely; 10 % if hardness does not matter. Most confused: "
    "the pair of classes with the largest share of the wrong labels. Means over noise seeds."
)
QUESTIONS = {
    "last_test": f"Is {reference.DETECTOR}'s correction still a gain? Points of accuracy at the last epoch",
    "last_rarest": "And for the rarest class? Points of its recall",
}
Tables = Mapping[str, pd.DataFrame]


def noise_groups(tables: Tables) -> dict[str, Group]:
    """Of a study that has several kinds of noise; nothing of another."""
    metrics = main_line_up(tables["metrics"])
    if metrics["noise"].nunique() < 2:
        return {}
    kinds = compare_kinds(metrics, main_line_up(tables["auroc_draws"]), SCALE)
    gains = gain_rows(tables["accuracy"], tables["corrections"])
    return {
        "noise-kinds": Group(
            "Detection by kind of noise",
            titled(f"AUROC by kind of noise: {_over(kinds)}", kinds_table(kinds)),
            [KINDS, *findings(kinds, gains)],
            for_print=True,
        ),
        "noise-accuracy": Group(
            "Accuracy by kind of noise", titled(f"What {reference.DETECTOR} adds", gains_table(gains)), [ACCURACY]
        ),
        "wrong-labels": Group(
            "Which labels are wrong", titled("What each kind of noise is", wrong_table(tables)), [WRONG]
        ),
    }


def _over(kinds: list[KindRow]) -> str:
    """Which data sets each kind is over, where they differ."""
    by_data: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        by_data.setdefault(kind.datasets, []).append(kind.noise)
    said = [f"{', '.join(noises)} on {', '.join(map(dataset_title, datasets))}" for datasets, noises in by_data.items()]
    return "; ".join(said)


def kinds_table(kinds: list[KindRow]) -> pd.DataFrame:
    """A row per detector, the best under the first kind first; the correlation of ranks below."""
    order = kinds[0].means.sort_values(ascending=False, kind="stable").index
    heads = {kind.noise: _head(kind) for kind in kinds}
    table = pd.DataFrame({heads[kind.noise]: kind.means.reindex(order).map("{:.3f}".format) for kind in kinds})
    table.insert(0, "detector", order)
    ends = {heads[kind.noise]: _correlation(kind.correlation) if kind.correlation else MISSING for kind in kinds}
    return pd.concat([table, pd.DataFrame([{"detector": "rank correlation"} | ends])], ignore_index=True)


def _head(kind: KindRow) -> str:
    """With the rate where it is not the usual one."""
    return kind.noise if abs(kind.rate - reference.RATE) < 0.005 else f"{kind.noise} ({kind.rate:.0%})"


def _correlation(found: tuple[float, float, float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*found)


def gain_rows(accuracy: pd.DataFrame, corrections: pd.DataFrame) -> pd.DataFrame:
    """A row per run of the reference recipe: its measures minus the baseline's in the same setting, in points."""
    measures = ["last_test", "last_balanced", "last_rarest"]
    key = ["noise", "dataset", "setting", "noise_seed", "training_seed"]
    chosen = accuracy[accuracy["setting"].isin(settings_to_compare(accuracy))]
    plain = chosen[chosen["recipe_options"] == ""].drop_duplicates([*key, "recipe_name"]).set_index(key)
    own, baseline = (
        plain.loc[plain["recipe_name"] == name, measures] for name in (reference.RECIPE, reference.BASELINE_RECIPE)
    )
    gains = 100 * (own - baseline.reindex(own.index))
    of_all = corrections[(corrections["class"] == "all") & (corrections["recipe_options"] == "")]
    labels = of_all.drop_duplicates(key).set_index(key)[["label_accuracy_before", "label_accuracy_after"]]
    return gains.join(labels).dropna(subset=["last_test"]).reset_index()


def gains_table(gains: pd.DataFrame) -> pd.DataFrame:
    heads = {"last_test": "accuracy", "last_balanced": "balanced accuracy", "last_rarest": "recall, rarest class"}
    labels = {"label_accuracy_before": "labels right before", "label_accuracy_after": "labels right after"}
    rows = []
    for noise in in_order(gains["noise"]):
        part = gains[gains["noise"] == noise]
        over = part.groupby("dataset").mean(numeric_only=True).mean()
        cells = {
            head: f"{over[column]:+.1f} [{part[column].min():+.1f}, {part[column].max():+.1f}]"
            if part[column].notna().any()
            else MISSING
            for column, head in heads.items()
        }
        shares = {head: f"{over[column]:.1%}" if over[column] == over[column] else MISSING
                  for column, head in labels.items()}  # fmt: skip
        rows.append({"noise": noise, "runs": len(part)} | cells | shares)
    return pd.DataFrame(rows)


def wrong_table(tables: Tables) -> pd.DataFrame:
    """A row per kind and data set, of the rates that the study has."""
    wrong, rows = tables["wrong_labels"], []
    ran = tables["runs"][["dataset", "noise", "rate", "noise_seed"]].drop_duplicates()
    for (dataset, noise, rate), part in wrong.merge(ran).groupby(["dataset", "noise", "rate"], sort=True):
        by_seed = part.drop_duplicates("noise_seed")
        errors = part[part["correct"] != part["given"]].groupby(["correct", "given"])["count"].sum()
        most = MISSING
        if len(errors):
            correct, given = errors.index[int(errors.to_numpy().argmax())]
            most = f"{correct if correct >= 0 else 'no class'} → {given}, {errors.max() / errors.sum():.0%}"
        spread = by_seed["chance_spread"].mean()
        rows.append(
            {
                "data set": dataset_title(str(dataset)),
                "noise": noise,
                "nominal": f"{rate:.1%}",
                "true": mean_and_spread(by_seed["true_rate"], 3),
                "chance": f"{by_seed['chance_mean'].mean():.3f} ± {spread:.3f}" if spread == spread else MISSING,
                "in the hardest tenth": _percent(by_seed["in_hardest_tenth"]),
                "most confused": most,
            }
        )
    return pd.DataFrame(rows)


def _percent(values: pd.Series) -> str:
    return f"{values.mean():.0%}" if values.notna().any() else MISSING


def findings(kinds: list[KindRow], gains: pd.DataFrame) -> Iterator[str]:
    """What the tables say, in sentences."""
    first, *others = kinds
    if first.noise != reference.NOISE or not others or first.means.empty:
        return
    correlated = [(kind.noise, kind.correlation) for kind in others if kind.correlation]
    if correlated:
        said = list_of(
            [f"{middle:.2f} [{low:.2f}, {high:.2f}] for {noise}" for noise, (middle, low, high) in correlated]
        )
        yield f"Does the ranking survive? Its rank correlation with that under {reference.NOISE} noise is {said}."
    changes = [(kind.noise, (kind.means - kind.usual).dropna()) for kind in others if kind.usual is not None]
    if falls := [(noise, change) for noise, change in changes if len(change) and change.min() < 0]:
        said = list_of([f"{change.idxmin()} ({change.min():+.3f}) for {noise}" for noise, change in falls])
        yield f"Who falls most from {reference.NOISE} noise on the same data? {said}."
    places = [(kind, int(kind.means.rank(ascending=False, method="min").get(reference.DETECTOR, 0))) for kind in kinds]
    if all(place for _, place in places):
        said = list_of([f"{ordinal(place)} for {kind.noise} (best: {kind.means.idxmax()})" for kind, place in places])
        yield f"How is {reference.DETECTOR} ranked among {len(first.means)}? {said}."
    means = gains.groupby(["noise", "dataset"]).mean(numeric_only=True).groupby("noise").mean()
    for measure, question in QUESTIONS.items():
        known = means[measure].dropna()
        if len(known):
            said = list_of([f"{known[noise]:+.1f} for {noise}" for noise in in_order(pd.Series(known.index))])
            yield f"{question} over standard training: {said}."

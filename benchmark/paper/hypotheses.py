"""Why do our numbers differ from the paper's pattern? One hypothesis a row, each with its measurement.

The pattern is that LiNC finds more than every other detector of the paper, and that it makes the last epoch more
accurate. A hypothesis names something that may be to blame; what was measured with it changed stands beside what was
measured without, seed by seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from benchmark.paper import numbers as paper
from benchmark.paper.findings import EARLY, USUAL, at_the_papers_rate
from benchmark.paper.verdicts import as_in_the_paper
from benchmark.wording import dataset_title, paper_dataset

NOTE = (
    "At 20 % noise; means over the seeds that both sides have; as it is → with the change, from the lowest to the "
    "highest where several values were tried. The lead is LiNC's AUROC minus that of the best of the paper's other "
    "detectors in the same setting and seed, of those whose scores of single runs are known for every seed; or over "
    "AUM or EL2N alone, where it says so. The gain is LiNC's accuracy at the last epoch minus standard training's, in "
    "points. A change explains LiNC's place, which is behind another, if it puts LiNC ahead in every seed, in part if "
    "it takes away half of what LiNC is behind by; it explains a gain of less than half of the paper's if it makes it "
    "at least that in every seed, and the mixture's cut does if the noisy component holds less than half of the "
    "mislabelled that it could. A dash: there is nothing to explain, or it cannot have changed. Of several values the "
    "best is judged, which was chosen knowing which labels are wrong: a yes is an upper limit. What the epochs that "
    "AUM reads explain is a lead: yes, if LiNC is ahead as it is and behind with the change."
)
EXPLAINS, IN_PART, NOT, SAYS_NOTHING = "yes", "in part", "no", "–"
PLACE, GAIN = "explains LiNC's place", "explains LiNC's gain"
FEWEST_SETTINGS = 4  # that a correlation is worth saying for
SEEDS = ["noise_seed", "training_seed"]
OTHERS = [name for name in paper.DETECTION if name != "LiNC"]
Row = dict[str, str]

# What an ablation changed, by the names of fields; a row of the table has all values that were tried.
KNOBS = {
    ("warm_up", "soft_epochs"): "the phases are too long or too short",
    ("components",): "the mixture has a component too many",
    ("trust_rate",): "trust moves too slowly or too fast",
    ("trust_decay",): "decay of trust decides the ranking",
    ("trust_gradient",): "the trust gradient is that of each sample, not of the batch mean",
    ("soft_correction",): "soft correction is entropy minimisation, without stopgrad",
    ("batch_size",): "there are too few steps in the warm-up: smaller batches",
    ("learning_rate",): "the learning rate is too high or too low",
    ("weight_decay",): "weight decay is too strong or too weak",
    ("image_size",): "image size decides it: smaller ones",
    ("noise",): "the paper's noise may draw the true class again",
}
TRAINED = ("backbone", "epochs", "images", "batch_size", "learning_rate", "weight_decay", "image_size", "noise")
# Post-hoc trust that looks elsewhere, by what its label says.
LOOKS = {"warm_up": "trust looks at too few and too early epochs", "moment": "trust looks too early within an epoch"}
AVERAGED = "EL2N's scores are averaged over runs, LiNC's are not"
WINDOW = "LiNC's lead over AUM is one of the epochs that AUM reads"
LINE_UP = "the other detectors were computed as H-CAT does"
CUT = "the ranking is there, but the mixture cuts it in the wrong place"
SPEED = "the network has learned too little by the end of the warm-up"


@dataclass(frozen=True)
class Measured:
    """What came out of LiNC as it is, or with a change: a row per seed, columns auroc, lead and gain."""

    by_seed: pd.DataFrame
    changed: str = ""

    @classmethod
    def of(cls, changed: str = "", **columns: pd.Series) -> "Measured":
        return cls(pd.DataFrame(columns).dropna(how="all"), changed)

    def over(self, seeds: pd.Index) -> pd.DataFrame:
        return self.by_seed.reindex(seeds).reindex(columns=["auroc", "lead", "gain"])


def hypothesis_table(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """From the rows of all studies on real data, by table name."""
    metrics, accuracy, epochs = (at_the_papers_rate(tables[name]) for name in ("metrics", "accuracy", "auc_by_epochs"))
    if metrics.empty or accuracy.empty:
        return pd.DataFrame()
    metrics, usual = metrics[metrics["status"] == "ok"], as_in_the_paper(accuracy)
    usual = usual[usual["noise"] == "symmetric"]
    found: list[Row] = []
    for dataset in sorted(set(metrics["dataset"]) & set(usual["dataset"])):
        read = (metrics, accuracy, epochs, tables["curves"], tables["corrections"], usual)
        rows = [_of(dataset, table) for table in read]
        found += Evidence(dataset, rows[0], rows[1], rows[2], rows[3], rows[4], rows[5].iloc[0]).rows()
    order = [WINDOW, LINE_UP, AVERAGED, *LOOKS.values(), *KNOBS.values(), CUT, SPEED]
    found.sort(key=lambda row: order.index(row["hypothesis"]))
    return pd.DataFrame(found)


def _of(dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["dataset"] == dataset] if len(rows) else rows


@dataclass(frozen=True)
class Evidence:
    """The rows of one data set, and one of those in which nothing is changed."""

    dataset: str
    metrics: pd.DataFrame
    accuracy: pd.DataFrame
    epochs: pd.DataFrame
    curves: pd.DataFrame
    corrections: pd.DataFrame
    unchanged: pd.Series

    def rows(self) -> Iterator[Row]:
        here = str(self.unchanged["setting"])
        usual = self._linc(here)
        yield from self._window(here)
        yield from self._row(LINE_UP, usual, self._line_up(here))
        yield from self._averaged(here)
        for field, says in LOOKS.items():
            post_hoc = self._look(here, "post-hoc trust")
            yield from self._row(says, post_hoc, self._looks(here, field), who="post-hoc trust: ")
        for knobs, says in KNOBS.items():
            yield from self._row(says, usual, [*self._recipes(here, knobs), *self._trainings(knobs)])
        yield from self._cut(here)
        yield from self._speed()

    def _aurocs(self, setting: str, line_up: str = "original") -> pd.DataFrame:
        """Seeds × detectors, of single runs; who is not averaged over runs goes by the plain name."""
        rows = self.metrics[(self.metrics["setting"] == setting) & (self.metrics["line_up"] == line_up)]
        rows = rows[(rows["runs_averaged"] == 1) & ~rows["detector"].str.contains("average_runs=True")]
        table = _by_seed(rows, "detector", "auroc")
        return table.drop(columns="EL2N", errors="ignore").rename(columns={"EL2N (average_runs=False)": "EL2N"})

    def _best_other(self, setting: str) -> pd.Series:
        """Of those that are known for every seed where nothing is changed; unknown if one of them was not measured."""
        as_it_is = self._aurocs(str(self.unchanged["setting"])).reindex(columns=OTHERS)
        everywhere = [name for name in OTHERS if as_it_is[name].notna().all()]
        return self._aurocs(setting).reindex(columns=everywhere).max(axis=1, skipna=False)

    def _linc(self, setting: str, changed: str = "", recipe: str = USUAL) -> Measured:
        """LiNC, or a variant of it, in a setting."""
        last = _by_seed(self.accuracy[self.accuracy["setting"] == setting], "recipe", "last_test")
        last = last.reindex(columns=["standard", recipe])
        found = self._look(setting, recipe.replace(USUAL, "LiNC", 1)).by_seed
        gain = 100 * (last[recipe] - last["standard"])
        return Measured.of(changed, auroc=found["auroc"], lead=found["lead"], gain=gain)

    def _look(self, setting: str, label: str, changed: str = "") -> Measured:
        """A detector, in LiNC's place."""
        auroc = self._aurocs(setting).reindex(columns=[label])[label]
        return Measured.of(changed, auroc=auroc, lead=auroc - self._best_other(setting))

    def _looks(self, setting: str, field: str) -> list[Measured]:
        labels = [str(label) for label in self._aurocs(setting)]
        wanted = [label for label in labels if label.startswith(f"post-hoc trust ({field}=")]
        return [self._look(setting, label, _inside(label)) for label in wanted]

    def _recipes(self, setting: str, knobs: Sequence[str]) -> list[Measured]:
        """LiNC with nothing but these changed."""
        recipes = self.accuracy.loc[self.accuracy["setting"] == setting, "recipe"].unique()
        changed = {recipe: _inside(recipe) for recipe in recipes if "(" in recipe}
        names = {recipe: {part.partition("=")[0] for part in text.split(", ")} for recipe, text in changed.items()}
        return [self._linc(setting, text, recipe) for recipe, text in changed.items() if names[recipe] <= {*knobs}]

    def _trainings(self, knobs: Sequence[str]) -> list[Measured]:
        """Both recipes with nothing but these changed."""
        found = []
        for first in self.accuracy.drop_duplicates("setting").to_dict("records"):
            changes = {name: first[name] for name in TRAINED if first[name] != self.unchanged[name]}
            if changes and set(changes) <= {*knobs}:
                text = ", ".join(f"{name}={value}" for name, value in changes.items())
                text += f", {first['true_rate']:.0%} wrong" if "noise" in changes else ""
                found.append(self._linc(first["setting"], text))
        return found

    def _line_up(self, setting: str) -> list[Measured]:
        others = self._aurocs(setting, "hcat").rename(columns=lambda label: label.partition(" (")[0])
        if others.empty:
            return []
        lead = self._aurocs(setting)["LiNC"] - others.reindex(columns=OTHERS).max(axis=1)
        return [Measured.of("hcat", lead=lead)]

    def _window(self, setting: str) -> Iterator[Row]:
        rows = self.epochs
        rows = rows[(rows["setting"] == setting) & (rows["line_up"] == "original")] if len(rows) else rows
        if rows.empty or not {"LiNC", "AUM"} <= set(rows["detector"]):
            return
        aurocs = _by_seed(rows, ["detector", "epochs_read"], "auroc")
        lead = aurocs["LiNC"] - aurocs["AUM"]
        usual, *earlier = (
            Measured.of(f"first {epochs} epochs", lead=lead[epochs])
            for epochs in (lead.columns.max(), *EARLY)
            if epochs in lead
        )
        for row in self._row(WINDOW, usual, earlier, over="over AUM: "):
            vanishes = usual.by_seed["lead"] > 0
            for one in earlier:
                vanishes &= one.by_seed["lead"] < 0
            yield row | {PLACE: _in_seeds(vanishes)}

    def _averaged(self, setting: str) -> Iterator[Row]:
        """LiNC's scores averaged over the runs that EL2N's are averaged over."""
        rows = self.metrics[(self.metrics["setting"] == setting) & (self.metrics["runs_averaged"] > 1)]
        known = rows[rows["line_up"] == "original"].groupby("detector")["auroc"].first().to_dict()
        if not {"EL2N", "LiNC (average_runs=True)"} <= set(known):
            return
        single, averaged, rival = self._aurocs(setting)["LiNC"], known["LiNC (average_runs=True)"], known["EL2N"]
        usual = Measured.of(auroc=single, lead=single - rival)
        same = Measured.of("averaged", auroc=0 * single + averaged, lead=0 * single + averaged - rival)
        yield from self._row(AVERAGED, usual, [same], over="over EL2N: ")

    def _cut(self, setting: str) -> Iterator[Row]:
        """What LiNC's noisy component holds, and what as many of the lowest trust as are mislabelled would hold."""
        rows = self.corrections
        rows = rows[(rows["setting"] == setting) & (rows["class"] == "all")] if len(rows) else rows
        own = self.metrics[(self.metrics["setting"] == setting) & (self.metrics["detector"] == "LiNC")]
        rows = rows[rows["run"].isin(own["run"])] if len(rows) else rows
        if rows.empty:
            return
        held = rows.set_index("run")["noisy_recall"]
        could = own.drop_duplicates("run").set_index("run")["precision_at_rate"].reindex(held.index)
        gain = self._linc(setting).by_seed["gain"].mean()
        yield {
            "hypothesis": CUT,
            "data set": dataset_title(self.dataset),
            PLACE: SAYS_NOTHING,
            GAIN: _in_seeds(held < could / 2) if gain < self._enough_gain() else SAYS_NOTHING,
            "seeds": f"{len(rows)}",
            "AUROC": SAYS_NOTHING,
            "lead": SAYS_NOTHING,
            "gain": f"{gain:+.1f}; the noisy component holds {held.mean():.0%} of the mislabelled, as many samples of "
            f"the lowest trust as are mislabelled would hold {could.mean():.0%}",
        }

    def _speed(self) -> Iterator[Row]:
        """Over all settings: is LiNC's lead larger where the network has learned more by the end of the warm-up?"""
        parts = []
        for setting, rows in self.accuracy[self.accuracy["recipe"] == USUAL].groupby("setting"):
            curves = self.curves[self.curves["run"].isin(rows["run"])] if len(self.curves) else self.curves
            if len(curves) and (curves["epoch"] == EARLY[0]).any():
                by_seed = _by_seed(curves, "epoch", "test_accuracy")
                learned = by_seed[EARLY[0]] / by_seed.max(axis=1)
                lead = self._linc(str(setting)).by_seed["lead"]
                parts.append(pd.DataFrame({"lead": lead, "learned": learned, "setting": setting}).dropna())
        points = pd.concat(parts) if parts else pd.DataFrame(columns=["lead", "learned", "setting"])
        if points["setting"].nunique() < FEWEST_SETTINGS or points["learned"].nunique() < 2:
            return
        correlation, chance = spearmanr(points["learned"], points["lead"])
        count = f"{len(points)} runs of {points['setting'].nunique()} settings"
        is_clear = correlation > 0 and chance < 0.05
        yield {
            "hypothesis": SPEED,
            "data set": dataset_title(self.dataset),
            PLACE: EXPLAINS if is_clear else NOT,
            GAIN: SAYS_NOTHING,
            "seeds": f"{points.index.nunique()}",
            "AUROC": SAYS_NOTHING,
            "lead": f"rank correlation with the share of the best test accuracy that is there after {EARLY[0]} epochs, "
            f"over {count}: {correlation:+.2f} (p = {chance:.2g})",
            "gain": SAYS_NOTHING,
        }

    def _row(self, says: str, usual: Measured, changed: list[Measured], who: str = "", over: str = "") -> Iterator[Row]:
        seeds = usual.by_seed.index
        for one in changed:
            seeds = seeds.intersection(one.by_seed.index)
        if not changed or seeds.empty:
            return
        before, after = usual.over(seeds), {one.changed: one.over(seeds) for one in changed}
        yield {
            "hypothesis": says,
            "data set": dataset_title(self.dataset),
            PLACE: _explains_place(before["lead"], [one["lead"] for one in after.values()]),
            GAIN: self._explains_gain(before["gain"], [one["gain"] for one in after.values()]),
            "seeds": f"{len(seeds)}",
            "AUROC": _moved(before, after, "auroc", "{:.3f}", who),
            "lead": _moved(before, after, "lead", "{:+.3f}", over),
            "gain": _moved(before, after, "gain", "{:+.1f}"),
        }

    def _explains_gain(self, before: pd.Series, after: list[pd.Series]) -> str:
        enough, best = self._enough_gain(), _best(after)
        if best.isna().any() or before.isna().any() or before.mean() >= enough:
            return SAYS_NOTHING
        return _in_seeds(best >= enough)

    def _enough_gain(self) -> float:
        """Half of the paper's, in points."""
        cells = paper.noisy_accuracy().set_index(["dataset", "rate", "recipe"])["last"].to_dict()
        claimed = [cells[paper_dataset(self.dataset), paper.DETECTION_RATE, recipe] for recipe in ("standard", USUAL)]
        return float(100 * (claimed[1] - claimed[0]) / 2)


def _by_seed(rows: pd.DataFrame, columns: str | list[str], values: str) -> pd.DataFrame:
    """Seeds × columns, of no rows as well."""
    if rows.empty:
        return pd.DataFrame(index=pd.MultiIndex.from_arrays([[], []], names=SEEDS))
    return rows.pivot_table(index=SEEDS, columns=columns, values=values)


def _inside(label: str) -> str:
    """What a label has in brackets: the fields that were changed."""
    return label.partition(" (")[2].removesuffix(")")


def _best(changed: list[pd.Series]) -> pd.Series:
    return max(changed, key=lambda values: -np.inf if values.isna().any() else values.mean())


def _moved(before: pd.DataFrame, after: dict[str, pd.DataFrame], column: str, shape: str, who: str = "") -> str:
    """`0.769 → 0.713 (warm_up=2) to 0.842 (warm_up=10)`."""
    means = {changed: rows[column].mean() for changed, rows in after.items() if rows[column].notna().all()}
    if not means or before[column].isna().any():
        return SAYS_NOTHING
    ends = dict.fromkeys((min(means, key=means.__getitem__), max(means, key=means.__getitem__)))
    moved = " to ".join(f"{shape.format(means[changed])} ({changed})" for changed in ends)
    return f"{who}{shape.format(before[column].mean())} → {moved}"


def _explains_place(before: pd.Series, after: list[pd.Series]) -> str:
    """Whether LiNC, behind as it is, is ahead with the change in every seed, or half of the way there on average."""
    best = _best(after)
    if best.isna().any() or before.isna().any() or before.mean() >= 0 or all(one.equals(before) for one in after):
        return SAYS_NOTHING  # nothing to explain, or it cannot have changed
    return IN_PART if best.mean() >= before.mean() / 2 and not (best >= 0).any() else _in_seeds(best >= 0)


def _in_seeds(is_so: pd.Series) -> str:
    return EXPLAINS if is_so.all() else f"in {is_so.sum()} of {len(is_so)} seeds" if is_so.any() else NOT

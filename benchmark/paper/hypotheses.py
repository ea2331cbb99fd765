"""Why do our numbers differ from the paper's? One hypothesis a row, each with its measurement.

In the paper LiNC finds more than every other detector, and it makes the last epoch more accurate. A hypothesis names
something that may be to blame; what was measured with it changed stands beside what was measured without, by seed.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from benchmark.display.tables import MISSING
from benchmark.paper import numbers as paper
from benchmark.paper import select
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.wording import IN_TITLES, dataset_title, paper_dataset

NOTES = (
    "Lead: LiNC's AUROC minus that of the best of the paper's other detectors (or of AUM, where it says so) in "
    "the same setting and seed. Gain: LiNC's accuracy at the last epoch minus that of standard training, in "
    "points. The arrow: unchanged → changed; of several values that were tried, from the lowest to the highest. "
    "All at 20 % noise, as means over the seeds that both sides have.",
    "A change explains LiNC's rank if LiNC is ahead with it in every seed, and explains it in part if it halves "
    "the distance. For the epochs that AUM reads it is the other way round: LiNC is ahead without the change, and "
    "not with it. A change explains a gain that is less than half of the paper's if it raises it to half in every "
    "seed; the mixture's cut explains it if the noisy component holds less than half of the mislabelled samples "
    "that it could.",
    "A dash: there is nothing to explain, or the change cannot matter. Of several values the best is judged, "
    "chosen knowing which labels are wrong, so a yes is an upper limit. H-CAT: the benchmark whose definitions of "
    "detectors differ from their authors'.",
)
EXPLAINS, IN_PART, NOT = "yes", "in part", "no"
PLACE, GAIN = f"explains {DETECTOR}'s rank", f"explains {DETECTOR}'s gain"
FEWEST_SETTINGS = 4  # for a correlation over settings
TRAINING = tuple(column for column in IN_TITLES if column not in ("dataset", "rate"))
FIRST_STEPS = ("warm_up_steps", "clip_norm")
SHAPES = {"AUROC": "{:.3f}", "lead": "{:+.3f}", "gain": "{:+.1f}"}  # how each measure is written
Row = dict[str, str]


@dataclass(frozen=True)
class Evidence:
    """The rows of one data set at the paper's noise rate, and the setting in which nothing is changed."""

    dataset: str
    tables: select.Tables
    unchanged: pd.Series

    @property
    def here(self) -> str:
        return str(self.unchanged["setting"])

    @cached_property
    def aurocs(self) -> pd.DataFrame:
        """Settings and seeds × detectors and their changed options, in the original line-up."""
        rows = self.tables["metrics"]
        return _pivot(rows[rows["line_up"] == "original"], ["detector_name", "changed"], "auroc")

    @cached_property
    def best_other(self) -> pd.Series:
        """The best AUROC of the paper's other detectors that are known for every seed where nothing is changed."""
        others = self.aurocs.reindex(columns=[(name, "") for name in paper.OTHERS])
        everywhere = _at(others, self.here).notna().all()
        return others.loc[:, everywhere].max(axis=1, skipna=False)

    @cached_property
    def gains(self) -> pd.DataFrame:
        """Settings and seeds × recipes and their changed options; in points."""
        last = _pivot(self.tables["accuracy"], ["recipe_name", "changed"], "last_test")
        return 100 * last.sub(_column(last, BASELINE_RECIPE, ""), axis=0).rename(columns={RECIPE: DETECTOR}, level=0)

    def measured(self, detector: str = DETECTOR, changed: str = "") -> pd.DataFrame:
        """LiNC, or another detector in its place, in every setting and seed; only LiNC has a gain."""
        auroc, gain = (_column(frame, detector, changed) for frame in (self.aurocs, self.gains))
        return pd.DataFrame({"AUROC": auroc, "lead": auroc - self.best_other, "gain": gain}).dropna(how="all")

    @property
    def usual(self) -> pd.DataFrame:
        """LiNC where nothing is changed: a row per seed."""
        return _at(self.measured(), self.here)

    @property
    def enough_gain(self) -> float:
        """Half of the paper's, in points."""
        return paper.gains()[paper_dataset(self.dataset), paper.DETECTION_RATE, "last"] / 2


def _pivot(rows: pd.DataFrame, columns: str | list[str], values: str) -> pd.DataFrame:
    return rows.pivot_table(index=["setting", *select.SEEDS], columns=columns, values=values)


def _column(frame: pd.DataFrame, name: str, changed: str) -> pd.Series:
    return frame.reindex(columns=[(name, changed)]).iloc[:, 0]


def _at(frame: Any, setting: str) -> Any:
    return frame[frame.index.get_level_values("setting") == setting].droplevel("setting")


def _changed(evidence: Evidence, detector: str, *fields: str) -> Row:
    """Nothing but these fields changed: the detector's own, or for LiNC those of its recipe or of both trainings."""
    is_linc, variants = detector == DETECTOR, {}
    rows = evidence.tables["accuracy" if is_linc else "metrics"]
    tried = rows[rows["recipe_name"] == RECIPE] if is_linc else rows[rows["detector_name"] == detector]
    for row in tried.drop_duplicates(["setting", "changed"]).to_dict("records"):
        changed = row["options"] | {name: row[name] for name in TRAINING if row[name] != evidence.unchanged[name]}
        if changed and set(changed) <= set(fields):
            wrong = f", {row['true_rate']:.0%} wrong" if "noise" in changed else ""
            variants[_as_text(changed) + wrong] = _at(evidence.measured(detector, row["changed"]), row["setting"])
    usual = _at(evidence.measured(detector), evidence.here)
    return _compare(evidence, usual, variants, AUROC="" if is_linc else f"{detector}: ")


def _line_up(evidence: Evidence, name: str) -> Row:
    rows = evidence.tables["metrics"]
    others = _at(_pivot(rows[rows["line_up"] == name], "detector_name", "auroc"), evidence.here)
    lead = evidence.usual["AUROC"] - others.reindex(columns=paper.OTHERS).max(axis=1)
    return _compare(evidence, evidence.usual, {name: lead.dropna().to_frame("lead")})


def _epochs_read(evidence: Evidence, rival: str) -> Row:
    """The lead if the other detector reads fewer epochs; it explains a lead that is then gone."""
    rows = select.original_line_up(evidence.tables["auc_by_epochs"])
    aurocs = _at(_pivot(rows, ["detector_name", "epochs_read"], "auroc"), evidence.here)
    if aurocs.empty or not {DETECTOR, rival} <= set(aurocs.columns.unique(0)):
        return {}
    leads = aurocs[DETECTOR] - aurocs[rival]
    usual, early = leads.columns.max(), [epochs for epochs in select.EARLY if epochs in leads]
    variants = {f"first {epochs} epochs": leads[epochs].to_frame("lead") for epochs in early}
    is_gone = (leads[usual] > 0) & (leads[early] < 0).all(axis=1)
    row = _compare(evidence, leads[usual].to_frame("lead"), variants, lead=f"over {rival}: ")
    return row and row | {PLACE: _in_seeds(is_gone)}


def _mixture_cut(evidence: Evidence) -> Row:
    """What the noisy component holds, and what as many samples of the lowest trust as are mislabelled would hold."""
    metrics, corrections = evidence.tables["metrics"], evidence.tables["corrections"]
    own = metrics[(metrics["detector_name"] == DETECTOR) & (metrics["detector_options"] == "")].drop_duplicates("run")
    of_all = corrections[(corrections["setting"] == evidence.here) & (corrections["class"] == "all")]
    shares = of_all[["run", "noisy_recall"]].merge(own[["run", "precision_at_rate"]], on="run")
    if shares.empty:
        return {}
    held, could = shares["noisy_recall"], shares["precision_at_rate"]
    gain = evidence.usual["gain"].mean()
    return {
        GAIN: _in_seeds(held < could / 2) if gain < evidence.enough_gain else MISSING,
        "seeds": f"{len(held)}",
        "gain": f"{gain:+.1f}; the noisy component holds {held.mean():.0%} of the mislabelled samples; as many samples "
        f"of the lowest trust as are mislabelled would hold {could.mean():.0%}",
    }


def _learning_speed(evidence: Evidence) -> Row:
    """Over all settings: is LiNC's lead larger where the network has learned more by the end of the warm-up?"""
    curves = _pivot(select.with_default_recipe(evidence.tables["curves"], RECIPE), "epoch", "test_accuracy")
    if select.EARLY[0] not in curves:
        return {}
    learned = curves[select.EARLY[0]] / curves.max(axis=1)
    points = pd.DataFrame({"learned": learned, "lead": evidence.measured()["lead"]}).dropna().reset_index()
    if points["setting"].nunique() < FEWEST_SETTINGS or points["learned"].nunique() < 2:
        return {}
    correlation, chance = spearmanr(points["learned"], points["lead"])
    return {
        PLACE: EXPLAINS if correlation > 0 and chance < 0.05 else NOT,
        "seeds": f"{len(points[select.SEEDS].drop_duplicates())}",
        "lead": "rank correlation with the share of the best test accuracy that is reached after "
        f"{select.EARLY[0]} epochs, over {len(points)} runs of {points['setting'].nunique()} settings: "
        f"{correlation:+.2f} (p = {chance:.2g})",
    }


HYPOTHESES: tuple[tuple[str, Callable[..., Row], tuple[str, ...]], ...] = (
    ("LiNC's lead over AUM depends on the epochs that AUM reads", _epochs_read, ("AUM",)),
    ("the other detectors were computed as in H-CAT", _line_up, ("hcat",)),
    ("trust is read from too few and too early epochs", _changed, ("post-hoc trust", "warm_up")),
    ("trust is read too early within an epoch", _changed, ("post-hoc trust", "moment")),
    ("the phases are too long or too short", _changed, (DETECTOR, "warm_up", "soft_epochs")),
    ("the mixture has one component too many", _changed, (DETECTOR, "components")),
    ("trust changes too slowly or too fast", _changed, (DETECTOR, "trust_rate")),
    ("the decay of trust decides the ranking", _changed, (DETECTOR, "trust_decay")),
    ("the trust gradient is per sample, not of the batch mean", _changed, (DETECTOR, "trust_gradient")),
    ("soft correction is entropy minimisation, without stopgrad", _changed, (DETECTOR, "soft_correction")),
    ("the warm-up has too few steps: smaller batches", _changed, (DETECTOR, "batch_size")),
    ("the learning rate is too high or too low", _changed, (DETECTOR, "learning_rate")),
    ("weight decay is too strong or too weak", _changed, (DETECTOR, "weight_decay")),
    ("the head starts with weights of the wrong size", _changed, (DETECTOR, "head_init")),
    ("the first steps are too long: a warm-up of the learning rate, or clipping", _changed, (DETECTOR, *FIRST_STEPS)),
    ("trust follows the first epoch, in which the head has learned nothing", _changed, (DETECTOR, "trust_from_epoch")),
    ("the image size decides: larger images", _changed, (DETECTOR, "image_size")),
    ("the paper's noise may draw the true class again", _changed, (DETECTOR, "noise")),
    ("the ranking is right, but the mixture cuts it in the wrong place", _mixture_cut, ()),
    ("the network has learned too little by the end of the warm-up", _learning_speed, ()),
)


def hypothesis_table(tables: select.Tables) -> pd.DataFrame:
    """From rows on the paper's data sets, whatever was changed in their training."""
    at_rate = {name: select.at_the_papers_rate(rows) for name, rows in tables.items()}
    usual = select.as_in_the_paper(at_rate["accuracy"])
    usual = usual[usual["noise"] == "symmetric"].drop_duplicates("dataset").set_index("dataset", drop=False)
    at_rate["accuracy"] = _with_options(at_rate["accuracy"], "recipe_options")
    scored = at_rate["metrics"]["status"] == "ok"
    at_rate["metrics"] = _with_options(at_rate["metrics"][scored], "detector_options")
    evidence = [
        Evidence(name, {table: rows[rows["dataset"] == name] for table, rows in at_rate.items()}, usual.loc[name])
        for name in sorted(set(at_rate["metrics"]["dataset"]) & set(usual.index))
    ]
    empty = dict.fromkeys((PLACE, GAIN, "seeds", "AUROC", "lead", "gain"), MISSING)
    return pd.DataFrame(
        {"hypothesis": says, "data set": dataset_title(of.dataset)} | empty | row
        for says, measure, about in HYPOTHESES
        for of in evidence
        if (row := measure(of, *about))
    )


def _with_options(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """With the options that differ from their defaults, as dictionaries and as text."""
    options = rows[column].map(lambda text: json.loads(text or "{}"))
    return rows.assign(options=options, changed=options.map(_as_text))


def _as_text(changed: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in changed.items())


def _compare(evidence: Evidence, usual: pd.DataFrame, variants: dict[str, pd.DataFrame], **prefixes: str) -> Row:
    """Unchanged beside changed, over the seeds that all of them have; each measure where all of these seeds have it."""
    frames = {name: rows.reindex(columns=list(SHAPES)) for name, rows in ({"": usual} | variants).items()}
    both: Any = pd.concat(frames, axis=1, join="inner")
    if not variants or both.empty:
        return {}
    row = {"seeds": f"{len(both)}"}
    for measure, shape in SHAPES.items():
        known = both.xs(measure, axis=1, level=1).dropna(axis=1)
        if "" in known and known.shape[1] > 1:
            before, after = known[""], known.drop(columns="")
            row[measure] = prefixes.get(measure, "") + _moved(before.mean(), after.mean(), shape)
            row |= _explained(measure, before, after, evidence.enough_gain)
    return row


def _moved(before: float, after: Any, shape: str) -> str:
    """`0.769 → 0.713 (warm_up=2) to 0.842 (warm_up=10)`."""
    ends = dict.fromkeys((after.idxmin(), after.idxmax()))
    moved = " to ".join(f"{shape.format(after[changed])} ({changed})" for changed in ends)
    return f"{shape.format(before)} → {moved}"


def _explained(measure: str, before: pd.Series, after: pd.DataFrame, enough_gain: float) -> Row:
    """Whether the best change puts LiNC ahead, or half of the distance closer, or gives it enough gain; by seed."""
    best = after[after.mean().idxmax()]
    has_moved = after.ne(before, axis=0).any(axis=None)  # not the lead, if only what follows the scores was changed
    if measure == "lead" and before.mean() < 0 and has_moved:
        is_closer = best.mean() >= before.mean() / 2 and not (best >= 0).any()
        return {PLACE: IN_PART if is_closer else _in_seeds(best >= 0)}
    if measure == "gain" and before.mean() < enough_gain:
        return {GAIN: _in_seeds(best >= enough_gain)}
    return {}


def _in_seeds(holds: pd.Series) -> str:
    return EXPLAINS if holds.all() else f"in {holds.sum()} of {len(holds)} seeds" if holds.any() else NOT

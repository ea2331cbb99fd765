"""Tables of what detectors cost, from overhead.csv, overhead_terms.csv and overhead_growth.csv."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from rich.filesize import decimal
from scipy.optimize import curve_fit
from scipy.stats import linregress

from benchmark.display.tables import Group
from benchmark.wording import dataset_title, describe_setting, list_of, varying_columns

OWN_STATE = "LiNC's own state"  # in the place of a detector: the reference method's objective alone
IMAGENET = "ImageNet"  # in the place of an axis: a data set of its size
SETTING = ["dataset", "path", "backbone", "image_size", "epochs", "batch_size", "device"]
AS_PROFILED = ["backbone", "image_size", "epochs", "batch_size"]
SAMPLES_FITTED, EPOCHS_FITTED = 32_000, 20  # from here on; below, constant costs hide what grows
COST_NOTES = (
    "In % of standard training, relative to the same run's training time: medians over rounds with the 95 % interval "
    "of the median. Every round is a process of its own, with a baseline run without any detector before and after "
    "every four runs. Alone: as if no other detector were used. In the line-up: detectors that read the same signal "
    "share its cost. Trainings: what one score costs in units of standard training, that training included; scores "
    "averaged over three trainings cost three times as much. On a CPU, time is processor time of the training thread "
    "and of the threads that read ahead for it, so other programs hardly change it; waiting for a disk is not counted.",
    "Objective is what a method's own loss adds, with its mixture and its passes. Recording is the cost of its signals "
    "(writing logits, passes over the training set, gradients, training in folds) as this suite records them: at "
    "the epochs that a method reads. Memory is the peak of "
    "a separate process above that of the baseline process in the same round, for the measured samples and without "
    "pages of mapped files; if it does not exceed the difference between two baseline processes, the table says so. "
    "Disk is for the whole training set.",
)
CHECKS = (
    "Two checks for hidden costs. Slower steps: by how much the network's own steps are slower than in the baseline "
    "runs, by a fast epoch of each. It compares runs minutes apart and is as uncertain as the machine's speed (see "
    "random, which records nothing), so it shows effects of 10 % and more; smaller costs rest on the clocks alone. "
    "Outside: time outside the clocks of the loop, charged to nobody. While scoring: the peak of memory during scoring "
    "above what was in use before."
)
TERMS_NOTE = (
    "The paper counts three operations: forming q in every step of the warm-up (here with the trust update, and in "
    "the soft phase as well), a mixture over trust, and a pass that relabels. In % of standard training, each read "
    "from the epochs in which it happens. The fit of a mixture hardly grows with the data: the larger the data set, "
    "the smaller its share."
)
GROWTH_NOTE = (
    "Exponents of the added cost, fitted to logarithms, with their standard error: seconds over samples from 32,000 on "
    "(from 64,000 for LiNC's own state), over epochs from 20 on (before, not all phases have started), over classes "
    "throughout; a dash if fewer than three sizes added anything. Memory is fitted with a constant beside the power "
    "law, for what does not grow (for LiNC the fit of the mixture, to at most 16,384 values). Bytes per sample: the "
    "slope of peak memory beyond what is kept for the record, and the size of the record. LiNC's own state is its "
    "objective alone, for three epochs with one of warm-up and one of soft correction."
)


def overhead_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Every table there is data for; `read` returns the rows of a CSV table by name."""
    costs, terms, growth = (read(name) for name in ("overhead", "overhead_terms", "overhead_growth"))
    groups = {}
    if not costs.empty:
        groups["cost"] = Group("What each detector costs", cost_tables(costs), [*COST_NOTES, CHECKS], for_print=True)
    if not terms.empty:
        groups["terms"] = Group("What LiNC adds", [("LiNC's cost, term by term", terms_table(terms))], [TERMS_NOTE])
    if not growth.empty:
        by_size, imagenet = growth_table(growth), imagenet_table(growth)
        groups["growth"] = Group("How costs grow", [("Growth of the cost of each detector", by_size)], [GROWTH_NOTE])
        title, note = "Records of a data set as large as ImageNet", imagenet_note(growth)
        groups["imagenet"] = Group("At the size of ImageNet", [(title, imagenet)], [note])
    return groups


def cost_tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """One per setting and line-up."""
    tables = []
    for _, group in rows.groupby(SETTING):
        for line_up, part in group.groupby("line_up", sort=False):
            setting = describe_setting(part.iloc[0], SETTING[:-1])
            title = f"Cost, {line_up} line-up: {setting}, measured on {_samples(part)} samples"
            tables.append((title, _cost_table(part.sort_values("alone", kind="stable"))))
    return tables


def _samples(rows: pd.DataFrame) -> str:
    """How many were measured, and which detectors were measured on more."""
    usual, whole = rows["measured_samples"].min(), rows["training_samples"].iloc[0]
    more = rows[rows["measured_samples"] > usual].groupby("measured_samples")["detector"].agg(", ".join)
    others = "".join(f" ({names} on {count:,})" for count, names in more.items())
    return f"{usual:,} of {whole:,}{others}"


def _cost_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per detector, the cheapest first."""
    return pd.DataFrame(
        {
            "detector": rows["detector"],
            "alone": _with_interval(rows, "alone"),
            "trainings": (1 + rows["alone"]).map("{:.2f}".format),
            "objective": rows["objective"].map(percent),
            "recording": rows["recording"].map(percent),
            "scoring": rows["scoring"].map(percent),
            "in the line-up": rows["shared"].map(percent),
            "memory": rows.apply(_memory, axis=1),
            "while scoring": rows["scoring_memory_bytes"].map(_bytes),
            "disk": rows["disk_bytes"].map(_bytes),
            "slower steps": _with_interval(rows, "slower_steps"),
            "outside": _with_interval(rows, "outside_clocks"),
        }
    )


def _memory(row: pd.Series) -> str:
    """Added memory, or that it is less than two baseline processes differ by."""
    added, floor = row["memory_bytes"], row["memory_floor_bytes"]
    return f"< {_bytes(floor)}" if added <= floor else _bytes(added)


def terms_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per operation that LiNC adds, a column per setting."""
    table = pd.DataFrame({"what LiNC adds": rows["term"].unique()})
    for title, own in rows.groupby(short_titles(rows), sort=False):
        shares = _with_interval(own.drop_duplicates("term").set_index("term"), "share")
        table[title] = table["what LiNC adds"].map(shares).fillna("–")
    return table


def short_titles(rows: pd.DataFrame) -> pd.Series:
    """Data set and path of each row's setting, and the other columns in which the rows differ."""
    columns = varying_columns(rows, SETTING, always=("dataset", "path"))
    return rows.apply(describe_setting, axis=1, columns=columns)


def growth_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per detector: exponents of what it adds in seconds, and bytes per sample."""
    table = []
    for detector, own in rows[rows["axis"] != IMAGENET].groupby("detector", sort=False):
        quantities = ("seconds", "bytes", "bytes beyond the record")
        seconds, size, beyond = (own[own["quantity"] == quantity] for quantity in quantities)
        table.append(
            {
                "detector": detector,
                "by samples": exponent(seconds, "samples", SAMPLES_FITTED),
                "by classes": exponent(seconds, "classes"),
                "by epochs": exponent(seconds, "epochs", EPOCHS_FITTED),
                "memory by samples": exponent_above_constant(size, "samples"),
                "bytes per sample": _slope(beyond, "added"),
                "recorded per sample": _slope(size, "recorded_bytes"),
            }
        )
    return pd.DataFrame(table).sort_values("detector", key=lambda names: names.str.lower(), kind="stable")


def imagenet_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What every record of a data set of ImageNet's size would take, the smallest first."""
    disk = rows[rows["quantity"] == "disk"].sort_values("added", kind="stable")
    return pd.DataFrame({"detector": disk["detector"], "record on disk": disk["added"].map(_bytes)})


def imagenet_note(rows: pd.DataFrame) -> str:
    measured = rows[rows["axis"] == IMAGENET].drop_duplicates("quantity").set_index("quantity")
    if not {"seconds", "bytes", "disk"} <= set(measured.index):
        return ""
    seconds, memory, disk = (dict(measured.loc[quantity]) for quantity in ("seconds", "bytes", "disk"))
    return (
        f"Computed for {seconds['samples']:,.0f} samples, {seconds['classes']:,.0f} classes and {disk['epochs']:.0f} "
        f"epochs. LiNC's own state was measured at that size: {seconds['added']:.0f} s more than cross-entropy in "
        f"{seconds['epochs']:.0f} epochs, with a mixture and relabelling, and {_bytes(memory['added'])} of memory."
    )


def exponent(rows: pd.DataFrame, axis: str, least: int = 0) -> str:
    """Of a power law through what is added from the size `least` on, with its standard error; a dash if fewer than
    three sizes are left, or one of them added nothing."""
    rows = rows[(rows["axis"] == axis) & (rows[axis] >= least)]
    if len(rows) < 3 or (rows["added"] <= 0).any():
        return "–"
    fit = linregress(np.log(rows[axis]), np.log(rows["added"]))
    return f"{fit.slope:.2f} ± {fit.stderr:.2f}"


def exponent_above_constant(rows: pd.DataFrame, axis: str) -> str:
    """Of constant + scale · size^exponent, with its standard error; a dash if there are fewer than four sizes, or one
    of them added nothing."""
    rows = rows[rows["axis"] == axis]
    if len(rows) < 4 or (rows["added"] <= 0).any():
        return "–"
    size = (rows[axis] / rows[axis].max()).to_numpy()
    added = np.log((rows["added"] / rows["added"].max()).to_numpy())

    def log_law(size: np.ndarray, constant: float, scale: float, power: float) -> np.ndarray:
        return np.log(constant + scale * size**power)

    start = np.exp(added.min()) / 2, 1.0, 1.0
    (_, _, power), covariance = curve_fit(log_law, size, added, start, bounds=([0, 1e-9, 0], [1, 10, 5]))
    return f"{power:.2f} ± {covariance[2, 2] ** 0.5:.2f}"


def _slope(rows: pd.DataFrame, column: str) -> str:
    return f"{np.polyfit(rows['samples'], rows[column], 1)[0]:.1f}" if len(rows) > 1 else "–"


def _with_interval(rows: pd.DataFrame, column: str) -> pd.Series:
    def cell(row: pd.Series) -> str:
        return f"{percent(row[column])} [{_number(row[f'{column}_low'])}, {_number(row[f'{column}_high'])}]"

    return rows.apply(cell, axis=1)


def added_costs(costs: pd.DataFrame, like: pd.Series) -> pd.Series:
    """What each detector adds to a training like this one on cached features if it is used alone, in trainings.

    Means over the data sets that were profiled with the same network, in the same setting if that was profiled.
    """
    return _profiled_like(costs, like).groupby("detector")["alone"].mean()


def profiled_on(costs: pd.DataFrame, like: pd.Series) -> str:
    """The data sets of these means, for the end of a sentence."""
    datasets = _profiled_like(costs, like)["dataset"].unique()
    return f", measured on {list_of([dataset_title(name) for name in datasets])}" if len(datasets) else ""


def _profiled_like(costs: pd.DataFrame, like: pd.Series) -> pd.DataFrame:
    paid = costs[(costs["path"] == "fast") & (costs["backbone"] == like["backbone"])]
    is_same = (paid[AS_PROFILED] == like[AS_PROFILED]).all(axis=1)
    return paid[is_same] if is_same.any() else paid


def percent(share: float) -> str:
    return f"{_number(share)} %"


def _number(share: float) -> str:
    """In %, with two significant digits and at most two decimals."""
    value = 100 * share
    decimals = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0
    return f"{value:.{decimals}f}".replace("-0.00", "0.00")


def _bytes(count: float) -> str:
    if np.isnan(count):
        return "–"
    return f"−{decimal(round(-count))}" if count < 0 else decimal(round(count))

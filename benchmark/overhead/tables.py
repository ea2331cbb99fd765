"""Tables of what detectors cost, from overhead.csv, overhead_terms.csv and overhead_growth.csv."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from rich.filesize import decimal
from scipy.optimize import curve_fit
from scipy.stats import linregress

from benchmark.display.tables import Group
from benchmark.errors import LincBenchError
from benchmark.wording import dataset_title, describe_setting, network_title, varying_columns

QUANTITIES = ("seconds", "bytes", "bytes beyond the record")
FILES = ("overhead", "overhead_terms", "overhead_growth")

SETTING = ["dataset", "path", "backbone", "image_size", "epochs", "batch_size", "device"]
COST_NOTES = (
    "In per cent of standard training, at the pace of the same run: medians over rounds with the 95 % interval of "
    "the median, every round in a process of its own, with a twin without any detector before and after every four "
    "runs. Alone is as if nobody else were measured; in the line-up, those who read the same signal share its cost. On "
    "a processor, time is that of the thread that trains and of those that read ahead for it, so that others on the "
    "machine hardly change it; waiting for a disk is not counted.",
    "Objective is what a method's own loss adds, with its mixture and its passes; recording is what its signals take "
    "(writing logits, passes over the training set, gradients, training in folds), as this suite records them: after "
    "every epoch, also where a method reads one (EL2N, last loss) or five (loss mixture), and for one run, also where "
    "a method averages several. Memory is the peak of a process of its own above that of its twin in the same round, "
    "for the samples that were measured and without pages of mapped files; where that is not above what two twins "
    "differ by, it says so. Disk is for the whole training set.",
)
CHECKS = (
    "Two checks that nothing is hidden: by how much the network's own steps are slower than in the twins, by a fast "
    "epoch of each, which compares runs minutes apart and is as uncertain as the machine's pace (see random, which "
    "records nothing), so that it sees effects of ten per cent and more, and smaller costs rest on the clocks alone; "
    "and time that is outside the clocks of the loop and charged to nobody. While scoring: the peak of memory of a "
    "score above what was there before."
)
TERMS_NOTE = (
    "The paper counts three operations: forming q in every step of the warm-up (here with the trust update, and in "
    "the soft phase as well), a mixture over trust, and a pass that relabels. In per cent of standard training, each "
    "read from the epochs in which it happens. The fit of a mixture hardly grows with the data: the larger the data "
    "set, the smaller its share."
)
GROWTH_NOTE = (
    "Exponents of what is added, fitted to logarithms, with their standard error: seconds over samples from 32,000 "
    "on (from 64,000 for LiNC's own state), over epochs from 20 on (before, not all methods have begun), over "
    "classes all along; a dash where fewer than three sizes added anything. Memory is fitted with a constant beside "
    "the power law, for what does not grow (for LiNC the fit of the mixture, to 16,384 values at most). Bytes per "
    "sample: the slope of peak memory beyond what is kept for the record, and what the record takes. "
    "LiNC's own state is its objective without any network, for three epochs with one of warm-up and one of soft "
    "correction."
)
SAMPLES_FITTED, EPOCHS_FITTED = 32_000, 20  # from here on; below, what does not grow hides what does


def overhead_groups(read: Callable[[str], pd.DataFrame]) -> dict[str, Group]:
    """Every table there is data for; `read` gives a committed file's rows by name."""
    costs, terms, growth = (read(name) for name in FILES)
    found = {}
    if len(costs) and "objective" not in costs:
        raise LincBenchError(
            "overhead.csv was written by an older version of LiNC-Bench. Delete it, or measure again with: "
            "linc-bench profile"
        )
    if len(costs):
        found["cost"] = Group("What each detector costs", cost_tables(costs), [*COST_NOTES, CHECKS])
    if len(terms):
        found["terms"] = Group("What LiNC adds", [("LiNC's cost, term by term", terms_table(terms))], [TERMS_NOTE])
    if len(growth):
        found["growth"] = Group(
            "How costs grow", [("Growth of what each detector adds", growth_table(growth))], [GROWTH_NOTE]
        )
        found["imagenet"] = Group(
            "At the size of ImageNet",
            [("Records of a data set as large as ImageNet", imagenet_table(growth))],
            [imagenet_note(growth)],
        )
    return found


def setting_title(row: pd.Series) -> str:
    dataset, network = dataset_title(row["dataset"]), network_title(row["backbone"])
    return (
        f"{dataset}, {row['path']} path, {network} at {row['image_size']} px, {row['epochs']} epochs, batch "
        f"{row['batch_size']}"
    )


def cost_tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """One per setting and line-up."""
    tables = []
    for _, group in rows.groupby(SETTING, sort=True):
        for line_up in dict.fromkeys(group["line_up"]):
            part = group[group["line_up"] == line_up]
            title = f"Cost, {line_up} line-up: {setting_title(part.iloc[0])}, measured on {_samples(part)} samples"
            tables.append((title, _cost_table(part.sort_values("alone", kind="stable"))))
    return tables


def _samples(rows: pd.DataFrame) -> str:
    """How many were measured, and who was measured on more."""
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
            "objective": rows["objective"].map(percent),
            "recording": rows["recording"].map(percent),
            "scoring": rows["scoring"].map(percent),
            "in the line-up": rows["shared"].map(percent),
            "memory": _above_floor(rows),
            "while scoring": rows.get("scoring_memory_bytes", pd.Series(np.nan, index=rows.index)).map(_bytes),
            "disk": rows["disk_bytes"].map(_bytes),
            "slower steps": _with_interval(rows, "slower_steps"),
            "outside": _with_interval(rows, "outside_clocks"),
        }
    )


def _above_floor(rows: pd.DataFrame) -> pd.Series:
    """Memory, or that it cannot be told from none."""
    if "memory_bytes" not in rows:
        return pd.Series("–", index=rows.index, dtype=str)
    cells = [
        _bytes(added) if not added <= floor else f"< {_bytes(floor)}"
        for added, floor in zip(rows["memory_bytes"], rows["memory_floor_bytes"], strict=True)
    ]
    return pd.Series(cells, index=rows.index, dtype=str)


def terms_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per operation that LiNC adds, a column per setting."""
    cells = rows.assign(title=short_titles(rows), cell=_with_interval(rows, "share"))
    table = cells.pivot(index="term", columns="title", values="cell")
    table = table.loc[list(dict.fromkeys(rows["term"])), list(dict.fromkeys(cells["title"]))]
    return table.fillna("–").reset_index().rename(columns={"term": "what LiNC adds"}).rename_axis(columns=None)


def short_titles(rows: pd.DataFrame) -> pd.Series:
    """Data set and path of each row's setting, and whatever else tells it from the others."""
    told = varying_columns(rows, SETTING, always=("dataset", "path"))
    return pd.Series([describe_setting(row, told) for _, row in rows.iterrows()], index=rows.index, dtype=str)


def growth_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per detector: exponents of what it adds in seconds, and bytes per sample."""
    table = []
    for detector, own in rows[rows["axis"] != "ImageNet"].groupby("detector", sort=False):
        seconds, size, beyond = (own[own["quantity"] == quantity] for quantity in QUANTITIES)
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
    order = pd.DataFrame(table)
    return order.sort_values("detector", key=lambda names: names.str.lower(), kind="stable")


def imagenet_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What every record of a data set of ImageNet's size would take, the smallest first."""
    disk = rows[rows["quantity"] == "disk"].sort_values("added", kind="stable")
    return pd.DataFrame({"detector": disk["detector"], "record on disk": disk["added"].map(_bytes)})


def imagenet_note(rows: pd.DataFrame) -> str:
    found = rows[rows["axis"] == "ImageNet"].set_index("quantity")
    if not {"seconds", "bytes", "disk"} <= set(found.index):
        return ""
    own, memory, disk = (found.loc[[quantity]].iloc[0] for quantity in ("seconds", "bytes", "disk"))
    return (
        f"Computed for {own['samples']:,.0f} samples, {own['classes']:,.0f} classes and {disk['epochs']:.0f} epochs. "
        f"LiNC's own state was measured at that size, without a network: {own['added']:.0f} s beyond what cross-entropy"
        f" takes for {own['epochs']:.0f} epochs, with a mixture and relabelling, and {_bytes(memory['added'])} of "
        "memory."
    )


def exponent(rows: pd.DataFrame, axis: str, least: int = 0) -> str:
    """Of a power law through what is added from some size on, with its standard error; a dash where fewer than three
    sizes are left, or one of them added nothing."""
    rows = rows[(rows["axis"] == axis) & (rows[axis] >= least)]
    if len(rows) < 3 or (rows["added"] <= 0).any():
        return "–"
    fit = linregress(np.log(rows[axis]), np.log(rows["added"]))
    return f"{fit.slope:.2f} ± {fit.stderr:.2f}"


def exponent_above_constant(rows: pd.DataFrame, axis: str) -> str:
    """Of constant + scale · size^exponent, with its standard error: where something that does not grow is always there.
    A dash where there are fewer than four sizes, or one of them added nothing."""
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
    if len(rows) < 2:
        return "–"
    return f"{np.polyfit(rows['samples'], rows[column], 1)[0]:.1f}"


def _with_interval(rows: pd.DataFrame, column: str) -> pd.Series:
    cells = [
        f"{percent(row[column])} [{_number(row[f'{column}_low'])}, {_number(row[f'{column}_high'])}]"
        for _, row in rows.iterrows()
    ]
    return pd.Series(cells, index=rows.index, dtype=str)


def percent(share: float) -> str:
    return f"{_number(share)} %"


def _number(share: float) -> str:
    """Two digits that count, at least a hundredth of a per cent."""
    value = 100 * share
    decimals = 2 if abs(value) < 1 else 1 if abs(value) < 10 else 0
    return f"{value:.{decimals}f}".replace("-0.00", "0.00")


def _bytes(count: float) -> str:
    if np.isnan(count):
        return "–"
    return f"−{decimal(round(-count))}" if count < 0 else decimal(round(count))

"""Tables from the committed files: for the terminal, as Markdown, and for the README."""

from dataclasses import dataclass, field

import pandas as pd
from rich.markup import escape
from rich.table import Table
from scipy.stats import t

from benchmark.evaluation.comparisons import IN_TITLES, against_reference, mean_ranks, short_titles
from benchmark.wording import dataset_title, describe_setting, varying_columns

WORDS = (
    "method",
    "what LiNC adds",
    "detector",
    "recipe",
    "claim",
    "what differs",
    "line-up",
    "true class",
    "per image",
    "data set",
    "where",
    "verdict",
    "why",
    "question",
    "answer",
    "hypothesis",
    "lead",
    "gain",
    "what its score is",
    "in the LiNC paper",
    "explains LiNC's place",
    "explains LiNC's gain",
)  # not numbers


@dataclass(frozen=True)
class Group:
    """Tables of one kind: a file each for Markdown and LaTeX, a section of the page."""

    title: str
    tables: list[tuple[str, pd.DataFrame]]
    notes: list[str] = field(default_factory=list)


def spread_note(rows: pd.DataFrame) -> str:
    """What ± stands for in tables of these rows."""
    counts = {what: rows[column].nunique() for what, column in (("training", "training_seed"), ("noise", "noise_seed"))}
    if max(counts.values()) == 1:
        return "One run each: no spread is known."
    seeds = " and ".join(f"{count} {what} {'seed' if count == 1 else 'seeds'}" for what, count in counts.items())
    averaged = "; where it is missing, there is one run, or scores were averaged over the runs first"
    return f"± is the standard deviation over {seeds}{averaged if 'runs_averaged' in rows else ''}."


def mean_and_spread(values: pd.Series, digits: int = 4) -> str:
    known = values.dropna()
    if known.empty:
        return "–"
    spread = f" ± {known.std(ddof=1):.{digits}f}" if len(known) > 1 else ""
    return f"{known.mean():.{digits}f}{spread}{_interval(known, digits)}"


def _cells(rows: pd.DataFrame, titles: dict[str, str], digits: int = 4) -> dict[str, str]:
    """Mean and spread of some columns, each under its title."""
    return {title: mean_and_spread(rows[column], digits) for column, title in titles.items()}


def _interval(values: pd.Series, digits: int) -> str:
    """The 95 % interval of the mean over seeds, which needs five of them or more."""
    if len(values) < 5:
        return ""
    reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f" [{values.mean() - reach:.{digits}f}, {values.mean() + reach:.{digits}f}]"


def auc_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per detector, the best first, for the rows of one setting."""
    order = rows.groupby("detector")["auroc"].mean().sort_values(ascending=False, na_position="last").index
    return pd.DataFrame(
        {
            "detector": detector,
            "AUROC": mean_and_spread(group["auroc"]),
            "against LiNC": against_reference(group),
            "AUPRC": mean_and_spread(group["auprc"]),
            "its chance level": mean_and_spread(group["auprc_chance"].head(1), 3),
            "precision at the true rate": mean_and_spread(group["precision_at_rate"], 3),
            "found in the first 5 %": mean_and_spread(group["recall_5"], 3),
            "in 20 %": mean_and_spread(group["recall_20"], 3),
            "ties": f"{group['ties'].mean():.0%}" if group["ties"].notna().any() else "–",
            "runs": int(group.loc[group["status"] != "failed", "runs_averaged"].sum()),
            "epochs used": int(group["epochs_used"].max()),
            "scoring seconds": f"{group['seconds'].mean():.3f}" if group["seconds"].notna().any() else "–",
        }
        for detector, group in ((name, rows[rows["detector"] == name]) for name in order)
    )


def epochs_table(rows: pd.DataFrame) -> pd.DataFrame:
    """AUROC by the number of epochs read, for the rows of one setting: mean over runs, and the best number."""
    means = rows.groupby(["detector", "epochs_read"])["auroc"].mean().unstack()
    last = int(means.columns.max())
    shown = [count for count in (1, 2, 3, 5, 10, 20, 30, 50, 70) if count < last] + [last]
    table = means[shown].map(lambda value: f"{value:.4f}").rename(columns=lambda count: f"{count}")
    table["best"] = [f"{row.max():.4f} after {row.idxmax()}" for _, row in means.iterrows()]
    return table.loc[means.max(axis=1).sort_values(ascending=False).index].reset_index()


def corrections_table(rows: pd.DataFrame) -> pd.DataFrame:
    """LiNC as a corrector, for the rows of one setting: over all samples, then by true class; variants in one row."""
    columns = {
        "noisy_share": "in the noisy component",
        "noisy_precision": "of these mislabelled",
        "noisy_recall": "of the mislabelled found",
        "ambiguous_share": "ambiguous",
        "corrected_right": "corrected labels that are right",
        "label_accuracy_before": "labels right before",
        "label_accuracy_after": "after",
    }
    several = rows["recipe"].nunique() > 1
    return pd.DataFrame(
        ({"recipe": recipe} if several else {}) | {"true class": name} | _cells(group, columns, 3)
        for (recipe, name), group in rows.groupby(["recipe", "class"], sort=False)
        if name == "all" or "(" not in str(recipe)
    )


def rank_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Each detector's mean rank by AUROC over settings, best first; empty for a single setting."""
    measured = _in_every_setting(metrics[metrics["status"] == "ok"])
    if measured["setting"].nunique() < 2:
        return pd.DataFrame()
    means = measured.groupby(["line_up", "setting", "detector"])["auroc"].mean().reset_index()
    means["rank"] = means.groupby(["line_up", "setting"])["auroc"].rank(ascending=False)
    ranks = means.groupby(["line_up", "detector"])["rank"].agg(["mean", "min", "max", "count"]).reset_index()
    ranks = ranks.sort_values(["line_up", "mean"], ascending=[False, True])
    return pd.DataFrame(
        {
            "line-up": ranks["line_up"],
            "detector": ranks["detector"],
            "mean rank": ranks["mean"].map("{:.2f}".format),
            "best": ranks["min"].map("{:.0f}".format),
            "worst": ranks["max"].map("{:.0f}".format),
            "settings": ranks["count"],
        }
    )


def detection_summary(metrics: pd.DataFrame) -> pd.DataFrame:
    """AUROC of each detector in every setting, for the rows of one line-up; the best mean rank first."""
    measured = metrics[metrics["status"] == "ok"]
    columns = short_titles(measured)
    means = measured.groupby(["detector", "setting"])["auroc"].mean().unstack()
    ranks = mean_ranks(measured)
    order = [*ranks.index, *means.drop(ranks.index).mean(axis=1).sort_values(ascending=False).index]
    rows = []
    for detector in order:
        own = measured[measured["detector"] == detector]
        cells = {title: _with_runs(own[own["setting"] == setting]) for setting, title in columns.items()}
        rank = f"{ranks[detector]:.1f}" if detector in ranks else "–"
        rows.append({"detector": detector} | cells | {"mean rank": rank})
    return pd.DataFrame(rows)


def _with_runs(rows: pd.DataFrame) -> str:
    """AUROC over seeds; where there is no spread, why."""
    text, averaged = mean_and_spread(rows["auroc"], 3), rows["runs_averaged"].max() if len(rows) else 0
    if averaged > 1:
        return f"{text} (of {averaged} averaged)"
    return f"{text} (1 run)" if len(rows) == 1 else text


def accuracy_summary(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracy at the last epoch, and at the best one in brackets: a row per data set and recipe, a column per rate."""
    rows = []
    told = varying_columns(accuracy, [column for column in IN_TITLES if column != "rate"], always=("dataset",))
    for _, group in accuracy.groupby(["dataset", "noise", "protocol", "recipe"], sort=False):
        cells = {
            f"{rate:.0%} noise": f"{mean_and_spread(runs['last_test'], 3)} ({runs['best_test'].mean():.3f})"
            for rate, runs in group.groupby("rate")
        }
        rows.append({"data set": describe_setting(group.iloc[0], told), "recipe": group["recipe"].iloc[0]} | cells)
    table = pd.DataFrame(rows).fillna("–")
    return table[["data set", "recipe", *sorted(table.columns.drop(["data set", "recipe"]), key=_leading_number)]]


def _leading_number(text: str) -> float:
    return float(text.partition("%")[0])


def _in_every_setting(measured: pd.DataFrame) -> pd.DataFrame:
    """Ranks compare only detectors that were measured everywhere."""
    counts = measured.groupby(["line_up", "detector"])["setting"].transform("nunique")
    return measured[counts == measured.groupby("line_up")["setting"].transform("nunique")]


def rank_note(metrics: pd.DataFrame) -> str:
    metrics = metrics[metrics["status"] == "ok"]
    settings_count, datasets = metrics["setting"].nunique(), metrics["dataset"].nunique()
    sets = "set" if datasets == 1 else "sets"
    return (
        f"Ranks of detectors that were measured in all {settings_count} settings of {datasets} data {sets}; settings "
        "that share a data set are not independent of each other."
    )


def troubles(rows: pd.DataFrame) -> list[str]:
    """A line for each reason why a number is missing."""
    missing = rows[rows["status"] != "ok"]
    return [
        f"{', '.join(dict.fromkeys(group['detector']))}: {status}, {reason}."
        for (status, reason), group in missing.groupby(["status", "reason"], sort=True)
    ]


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per recipe for the rows of one setting."""
    columns = {
        "best_test": "best epoch",
        "last_test": "last epoch",
        "test_by_noisy_validation": "by noisy validation",
        "test_by_clean_validation": "by clean validation (oracle)",
    }
    return pd.DataFrame(
        {"recipe": recipe, "runs": len(group)} | _cells(group, columns)
        for recipe, group in rows.groupby("recipe", sort=False)
    )


def effort_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What was run and how long it took, a row per study and data set."""
    rows = []
    for (study, dataset), group in runs.groupby(["study", "dataset"], sort=True) if len(runs) else ():
        rows.append(
            {
                "study": study,
                "data set": dataset_title(str(dataset)),
                "training samples": f"{group['samples'].iloc[0]:,}",
                "noise rates": ", ".join(f"{rate:.0%}" for rate in sorted(group["rate"].unique())),
                "runs": len(group),
                "hours": f"{group['seconds'].sum() / 3600:.2f}",
            }
        )
    return pd.DataFrame(rows)


def speed_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What `make bench` measured: milliseconds per image, and how many times faster than what it is compared with.

    One row per measurement, one column per network.
    """
    shown = rows.assign(
        cell=[
            f"{milliseconds:.3g} ms" + (f" ({ratio:.3g} × {against})" if against else "")
            for milliseconds, ratio, against in zip(
                rows["milliseconds"], rows["ratio"], rows["against"].fillna(""), strict=True
            )
        ]
    )
    table = shown.pivot(index="what", columns="model", values="cell").fillna("–")
    order = rows.groupby("what")["milliseconds"].max().sort_values(ascending=False).index
    models = rows.groupby("model")["milliseconds"].max().sort_values(ascending=False).index
    return table.loc[order, models].reset_index().rename(columns={"what": "per image"})


def scoring_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What `make bench` measured of scoring: seconds per detector, the fastest first."""
    scoring = rows[rows["what"].str.startswith("scoring, ")].sort_values("milliseconds", kind="stable")
    names = scoring["what"].str.removeprefix("scoring, ")
    return pd.DataFrame({"detector": names, "seconds": (scoring["milliseconds"] / 1e3).map("{:.2g}".format)})


def for_terminal(title: str, table: pd.DataFrame) -> Table:
    drawn = Table(title=title, title_justify="left", title_style="bold")
    for column in table.columns:
        drawn.add_column(str(column), justify="left" if column in WORDS else "right")
    for row in table.itertuples(index=False):
        drawn.add_row(*(escape(str(cell)) for cell in row))
    return drawn


def as_markdown(title: str, table: pd.DataFrame) -> str:
    aligned = ["left" if column in WORDS else "right" for column in table.columns]
    body = table.astype(str).to_markdown(index=False, colalign=aligned, disable_numparse=True)
    return f"**{title}**\n\n{body}\n"


def as_latex(title: str, table: pd.DataFrame, label: str) -> str:
    """A table with booktabs rules; `title` becomes its caption."""
    columns = "".join("l" if column in WORDS else "r" for column in table.columns)
    body = table.astype(str).map(escape_latex).rename(columns=escape_latex)
    return body.to_latex(
        index=False,
        escape=False,
        column_format=columns,
        caption=escape_latex(title),
        label=f"tab:{label}",
        position="t",
    )


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
        "±": r"$\pm$", "–": "--", "−": "$-$", "×": r"$\times$", "~": r"\textasciitilde{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "^": r"\textasciicircum{}",
    }
)  # fmt: skip


def escape_latex(text: object) -> str:
    return str(text).translate(LATEX)

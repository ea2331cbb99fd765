"""The figure of a study with several kinds of noise."""

from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

from benchmark.display.canvas import LABEL_WIDTH, heat_map, label_margin, panels
from benchmark.statistics.noise_kinds import in_order, settings_to_compare
from benchmark.wording import dataset_title


def by_noise_kind(metrics: pd.DataFrame) -> Figure | None:
    """AUROC of every detector under every kind of noise, as means over data sets; kinds on other data stand apart."""
    rows = metrics[metrics["status"] == "ok"]
    rows = rows[rows["setting"].isin(settings_to_compare(rows))]
    if rows["noise"].nunique() < 2:
        return None
    tables = kinds_by_data(rows)
    order = tables[0][1].iloc[:, 0].sort_values(ascending=False, kind="stable").index
    widths = [len(table.columns) for _, table in tables]
    labels = [fill(str(label), LABEL_WIDTH) for label in order]
    margin, lines = label_margin(labels)
    size = (0.55 * max(widths) + 0.4, 0.9 + (0.12 + 0.12 * lines) * len(order))
    figure, axes = panels(len(tables), size, margin=margin, columns=len(tables), sharey=True)
    for axis, (title, table) in zip(axes, tables, strict=True):
        heat_map(axis, table.reindex(order), "{:.2f}", limit=0.25, centre=0.75)
        names = [name.replace(":", ":\n") for name in table.columns]
        axis.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(order)), labels)
        axis.set(title=fill(title, 9 * max(widths)), xlabel="kind of noise", aspect="auto")
    return figure


def kinds_by_data(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Detectors × kinds: a table for each set of data sets that kinds were measured on, the usual kind in the first."""
    means = rows.groupby(["noise", "dataset", "detector"])["auroc"].mean()
    tables: dict[tuple[str, ...], dict[str, pd.Series]] = {}
    for noise in in_order(rows["noise"]):
        of_kind = means[noise].unstack("dataset")
        complete = of_kind.dropna()  # a mean over fewer data sets would be of others
        tables.setdefault(tuple(of_kind.columns), {})[noise] = complete.mean(axis=1)
    return [(", ".join(map(dataset_title, datasets)), pd.DataFrame(columns)) for datasets, columns in tables.items()]

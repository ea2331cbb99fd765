"""Tables from the committed files: for the terminal, as Markdown, and for the README."""

import pandas as pd
from rich.table import Table

SETTING = ["dataset", "noise", "rate", "backbone", "image_size", "epochs"]
SPREAD_NOTE = "± is the standard deviation over training seeds."


def setting_name(row: pd.Series) -> str:
    return (
        f"{row['dataset']}, {row['rate']:.0%} {row['noise']} noise, {row['backbone']} at {row['image_size']} px, "
        f"{row['epochs']} epochs"
    )


def settings(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each setting under its name, in a fixed order."""
    return [(setting_name(group.iloc[0]), group) for _, group in rows.groupby(SETTING, sort=True)]


def mean_and_spread(values: pd.Series, digits: int = 4) -> str:
    known = values.dropna()
    if known.empty:
        return "–"
    spread = f" ± {known.std(ddof=1):.{digits}f}" if len(known) > 1 else ""
    return f"{known.mean():.{digits}f}{spread}"


def auc_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per detector, the best first, for the rows of one setting."""
    table = []
    for detector, group in rows.groupby("detector", sort=False):
        troubles = [
            f"{status}: {reason}"
            for status, reason in zip(group["status"], group["reason"], strict=True)
            if status != "ok"
        ]
        table.append(
            {
                "detector": detector,
                "AUROC": mean_and_spread(group["auroc"]),
                "AUPRC": mean_and_spread(group["auprc"]),
                "seeds": group["training_seed"].nunique(),
                "epochs used": int(group["epochs_used"].max()) if group["epochs_used"].notna().any() else "–",
                "seconds": f"{group['seconds'].mean():.3f}" if group["seconds"].notna().any() else "–",
                "note": troubles[0] if troubles else "",
                "order": -group["auroc"].mean(),
            }
        )
    ordered = pd.DataFrame(table).sort_values("order", kind="stable").drop(columns="order")
    return ordered if ordered["note"].any() else ordered.drop(columns="note")


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per recipe for the rows of one setting."""
    columns = {
        "best_test": "best epoch",
        "last_test": "last epoch",
        "test_by_noisy_validation": "by noisy validation",
        "test_by_clean_validation": "by clean validation (oracle)",
    }
    return pd.DataFrame(
        {"recipe": recipe, "seeds": group["training_seed"].nunique()}
        | {title: mean_and_spread(group[column]) for column, title in columns.items()}
        for recipe, group in rows.groupby("recipe", sort=False)
    )


def for_terminal(title: str, table: pd.DataFrame) -> Table:
    drawn = Table(title=title, title_justify="left", title_style="bold")
    for column in table.columns:
        drawn.add_column(str(column), justify="left" if column in ("detector", "recipe", "note") else "right")
    for row in table.astype(str).itertuples(index=False):
        drawn.add_row(*row)
    return drawn


def as_markdown(title: str, table: pd.DataFrame) -> str:
    aligned = ["left" if column in ("detector", "recipe", "note") else "right" for column in table.columns]
    body = table.astype(str).to_markdown(index=False, colalign=aligned, disable_numparse=True)
    return f"**{title}**\n\n{body}\n"

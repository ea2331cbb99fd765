"""What `run` and `report` print of a study: one small table, and a sentence."""

from collections.abc import Mapping

import pandas as pd

from benchmark.display import Group
from benchmark.display.tables import MISSING, mean_and_spread
from benchmark.reference import BASELINE_RECIPE, DETECTOR, RECIPE
from benchmark.report.study_tables import RANKS, missing_notes, spread_note, summary_groups
from benchmark.statistics.comparisons import main_line_up, mean_ranks, measured_together
from benchmark.wording import describe_setting, line_up_title, ordinal, varying_columns

BRIEF_TITLE = ("dataset", "rate", "noise", "backbone", "image_size", "epochs")


def compact(rows: Mapping[str, pd.DataFrame]) -> Group:
    """Detectors of one line-up, or accuracy if nothing was detected."""
    metrics = rows["metrics"]
    measured = metrics[metrics["status"] == "ok"]
    if len(measured):
        shown = main_line_up(measured)["line_up"].iloc[0]
        return compact_detection(metrics[metrics["line_up"] == shown])
    groups = summary_groups(rows)
    group = groups.get("accuracy-summary", groups["accuracy"])
    return Group(group.tables[0][0], group.tables[:1], missing_notes(metrics)[:1] or _who_gains(rows["accuracy"]))


def compact_detection(metrics: pd.DataFrame) -> Group:
    """Detectors with AUROC and rank, for rows of one line-up, some of which have an AUROC; over settings, means."""
    measured = metrics[metrics["status"] == "ok"]
    together, ranks, settings = measured_together(measured), mean_ranks(measured), measured["setting"].nunique()
    means = together.groupby("setting").mean().mean().sort_values(ascending=False, kind="stable")
    rows = []
    for name in [*means.index, *sorted(set(metrics["detector"]) - set(means.index))]:
        aurocs = measured[measured["detector"] == name].set_index("setting")["auroc"]
        cell = mean_and_spread(aurocs) if settings == 1 else f"{aurocs.groupby('setting').mean().mean():.4f}"
        if name in ranks:
            rows.append((name, cell, f"{ranks[name]:g}" if settings == 1 else f"{ranks[name]:.1f}"))
        else:
            rows.append((name, f"{cell} in {len(aurocs)} of {len(together)} runs" if len(aurocs) else MISSING, MISSING))
    how = spread_note(measured) if settings == 1 else f"Means over {settings} settings. {RANKS}"
    varying = varying_columns(measured, BRIEF_TITLE)
    same = describe_setting(measured.iloc[0], [column for column in BRIEF_TITLE if column not in varying])
    title = f"Detection, {line_up_title(str(measured['line_up'].iloc[0]))}: {same}\n{how}"
    return Group(title, [("", pd.DataFrame(rows, columns=["detector", "AUROC", "rank"]))], [_who_leads(means)])


def _who_leads(means: pd.Series) -> str:
    best, own = str(means.idxmax()), DETECTOR
    lead = f"{best} has the highest AUROC of {len(means)} ({means.max():.4f})"
    if best == own or own not in means:
        return f"{lead}."
    rank = int(means.rank(ascending=False, method="min")[own])
    return f"{lead}; {own} is ranked {ordinal(rank)} ({means[own]:.4f})."


def _who_gains(accuracy: pd.DataFrame) -> list[str]:
    """One sentence, if both recipes were trained in the same setting."""
    means = accuracy.pivot_table("last_test", "setting", "recipe")
    if not {RECIPE, BASELINE_RECIPE} <= set(means):
        return []
    gains = 100 * (means[RECIPE] - means[BASELINE_RECIPE]).dropna()
    where = f", mean over {len(gains)} settings" if len(gains) > 1 else ""
    return [f"{DETECTOR} minus standard training at the last epoch: {gains.mean():+.1f} points{where}."]

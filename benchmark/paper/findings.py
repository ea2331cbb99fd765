"""What the studies say in plain words: questions that readers ask, each answered for every data set by its numbers."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmark.display.tables import mean_and_spread
from benchmark.evaluation.comparisons import against_reference, short_titles
from benchmark.paper import numbers as paper
from benchmark.wording import dataset_title

Answer = dict[str, str]
EARLY = (5, 10)  # epochs that LiNC's phases take; what others know by then
USUAL = "linc"
CORRECTION = ("noisy_precision", "noisy_recall", "label_accuracy_before", "label_accuracy_after")
EARLY_STOPPING = "Would stopping early by noisy validation do as well?"


def findings_table(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """From the rows of all studies on real data, by table name."""
    rows = [
        *_best_detector(tables["metrics"]),
        *_best_early(tables["auc_by_epochs"]),
        *_feedback(tables["metrics"]),
        *_gains(tables["accuracy"]),
        *_early_stopping(tables["accuracy"]),
        *_corrections(tables["corrections"]),
    ]
    return pd.DataFrame(rows, columns=["question", "data set", "answer"])


def by_setting(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Under a name that is as short as can be."""
    if len(rows):
        titles = short_titles(rows)
        for setting, title in titles.items():
            yield title, rows[rows["setting"] == setting]


def original_line_up(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["line_up"] == "original"] if len(rows) else rows
    return rows[rows["status"] == "ok"] if "status" in rows else rows


def _best_detector(metrics: pd.DataFrame) -> Iterator[Answer]:
    for title, rows in by_setting(compared(original_line_up(metrics))):
        means = rows.groupby("detector")["auroc"].mean().sort_values(ascending=False)
        if "LiNC" not in means:
            continue
        best = str(means.index[0])
        place = means.rank(ascending=False, method="min")["LiNC"]
        text = f"LiNC is number {place:.0f} of {len(means)} with an AUROC of {means['LiNC']:.4f}"
        rival = str(means.index[1]) if best == "LiNC" else best
        difference = against_reference(rows[rows["detector"] == rival])
        which = "next" if best == "LiNC" else "the best"
        text += f"; {which} is {rival} with {means[rival]:.4f} ({difference}, in the runs they share)"
        yield {"question": "Is LiNC the best detector?", "data set": title, "answer": text}


def at_the_papers_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """At the noise rate of the paper's detection table."""
    return rows[np.isclose(rows["rate"], paper.DETECTION_RATE)] if len(rows) else rows


def compared(rows: pd.DataFrame, least: int = 5) -> pd.DataFrame:
    """Of settings in which detectors were compared, not only LiNC's variants tried."""
    if rows.empty:
        return rows
    plain = rows[~rows["detector"].str.contains("(", regex=False)]
    return plain[plain.groupby("setting")["detector"].transform("nunique") >= least]


def _best_early(auc: pd.DataFrame) -> Iterator[Answer]:
    for title, rows in by_setting(compared(original_line_up(auc))):
        means = rows.groupby(["detector", "epochs_read"])["auroc"].mean().unstack()
        if "LiNC" not in means.index:
            continue
        last = int(means.columns.max())
        parts = []
        for epochs in (epochs for epochs in dict.fromkeys((*EARLY, last)) if epochs in means):
            best, linc = str(means[epochs].idxmax()), means.loc[["LiNC"], epochs].iloc[0]
            parts.append(f"after {epochs} epochs {best} ({means[epochs].max():.4f}; LiNC {linc:.4f})")
        peaks = means.max(axis=1)
        winner = str(peaks.idxmax())
        when = means.columns[int(np.nanargmax(means.loc[winner].to_numpy(float)))]
        parts.append(f"at its own best epoch {winner} after {when} ({peaks.max():.4f})")
        yield {
            "question": "Which is best at which epoch, of those that can be cut at any?",
            "data set": title,
            "answer": "; ".join(parts),
        }


def _feedback(metrics: pd.DataFrame) -> Iterator[Answer]:
    for title, rows in by_setting(compared(original_line_up(metrics))):
        post_hoc = rows[rows["detector"] == "post-hoc trust"]
        if len(post_hoc):
            linc = rows.loc[rows["detector"] == "LiNC", "auroc"]
            text = (
                f"post-hoc trust {mean_and_spread(post_hoc['auroc'])}, LiNC {mean_and_spread(linc)}; post-hoc minus "
                f"LiNC {against_reference(post_hoc)}"
            )
            question = "What does feeding trust back into training add to detection?"
            yield {"question": question, "data set": title, "answer": text}


def accuracy_pairs(accuracy: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each data set and kind of noise, a row per rate and seed that both recipes have, a column per recipe."""
    usual = accuracy[accuracy["recipe"].isin(["standard", USUAL])] if len(accuracy) else accuracy
    for (dataset, noise), rows in usual.groupby(["dataset", "noise"], sort=True) if len(usual) else ():
        measures, seeds = ["last_test", "best_test", "test_by_noisy_validation"], ["noise_seed", "training_seed"]
        table = rows.pivot_table(index=["rate", *seeds], columns="recipe", values=measures).dropna()
        if len(table) and len(table.columns) == 2 * len(measures):
            yield f"{dataset_title(str(dataset))}, {noise} noise", table


def _gains(accuracy: pd.DataFrame) -> Iterator[Answer]:
    for title, table in accuracy_pairs(accuracy):
        gains = {
            what: (100 * (table[f"{what}_test"][USUAL] - table[f"{what}_test"]["standard"])).groupby("rate")
            for what in ("last", "best")
        }
        parts = [
            f"at the {what} epoch {', '.join(f'{gain:+.1f} at {rate:.0%}' for rate, gain in by_rate.mean().items())}"
            for what, by_rate in gains.items()
        ]
        last = gains["last"]
        hurts = [f"{rate:.0%}" for rate in last.groups if last.max()[rate] < 0 and last.size()[rate] > 1]
        unclear = [f"{rate:.0%}" for rate in last.groups if last.mean()[rate] < 0 and f"{rate:.0%}" not in hurts]
        text = f"{'; '.join(parts)} (points)"
        text += f"; every seed says that it hurts the last epoch at {', '.join(hurts)} noise" if hurts else ""
        text += f"; whether it hurts the last epoch at {', '.join(unclear)} noise is unclear" if unclear else ""
        yield {"question": "What does LiNC add to accuracy, and when does it hurt?", "data set": title, "answer": text}


def _early_stopping(accuracy: pd.DataFrame) -> Iterator[Answer]:
    for title, table in accuracy_pairs(accuracy):
        by_rate = table.groupby("rate").mean()
        stopped, last = by_rate["test_by_noisy_validation"], by_rate["last_test"][USUAL]
        parts = [
            f"{rate:.0%} noise: {stopped['standard'][rate]:.4f}, {stopped[USUAL][rate]:.4f} and {last[rate]:.4f}"
            for rate in by_rate.index
        ]
        text = f"standard training stopped, LiNC stopped, LiNC's last epoch: {'; '.join(parts)}"
        yield {"question": EARLY_STOPPING, "data set": title, "answer": text}


def _corrections(corrections: pd.DataFrame) -> Iterator[Answer]:
    rows = (
        corrections[(corrections["class"] == "all") & (corrections["recipe"] == USUAL)]
        if len(corrections)
        else corrections
    )
    for title, group in by_setting(rows.drop_duplicates("run") if len(rows) else rows):
        share = {column: f"{group[column].mean():.3f}" for column in CORRECTION}
        text = (
            f"{share['noisy_precision']} of its noisy component are mislabelled, and it holds {share['noisy_recall']} "
            f"of the mislabelled; {share['label_accuracy_before']} of labels are right before and "
            f"{share['label_accuracy_after']} after"
        )
        if (group["rate"] == 0).all():
            text = (
                f"no label is wrong before; after its corrections {share['label_accuracy_after']} of labels are right"
            )
        yield {"question": "Does the mixture find whom to relabel?", "data set": title, "answer": text}

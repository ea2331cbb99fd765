"""The one schema of a results folder's CSV tables: columns with their types, and what identifies a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Columns = Mapping[str, type]


@dataclass(frozen=True)
class Table:
    """A series is a column with many values per row, one cell in the file and one row per value in memory."""

    name: str
    key: Columns  # what identifies a row
    values: Columns
    series: Columns | None = None

    @cached_property
    def columns(self) -> dict[str, type]:
        """All of them, in the order in which they are written."""
        return {**self.key, **self.values, **(self.series or {})}

    @property
    def order(self) -> list[str]:
        """What rows are sorted by."""
        return [column for column in OF_STUDY if column in self.key] or [
            column for column, kind in self.key.items() if kind is str
        ]


def _all(kind: type, *names: str) -> dict[str, type]:
    return dict.fromkeys(names, kind)


# What is known of a run beside its id: in the table of runs, and in those that people read by themselves.
ABOUT_RUNS: Columns = {
    **_all(str, "dataset"),
    **_all(int, "classes", "samples"),
    **_all(str, "noise"),
    **_all(float, "rate"),
    **_all(int, "noise_seed", "training_seed"),
    **_all(str, "backbone"),
    **_all(int, "image_size", "epochs", "batch_size"),
    **_all(float, "learning_rate", "weight_decay"),
    **_all(str, "images", "recipe", "recipe_name", "recipe_options", "setting", "protocol"),
    **_all(float, "true_rate"),
}
ORIGIN = _all(str, "commit", "machine", "python", "torch", "timm", "numpy", "scikit-learn", "medmnist")
OF_STUDY = _all(str, "study", "run")
OF_ENTRY = OF_STUDY | _all(str, "line_up", "detector")
PROFILED = {
    **_all(str, "dataset", "backbone"),
    **_all(int, "image_size"),
    **_all(str, "path"),
    **_all(int, "epochs", "batch_size", "classes", "training_samples", "rounds", "threads"),
    **_all(str, "device", "clock"),
}
INTERVALS = (
    "objective",
    "recording",
    "scoring",
    "alone",
    "recording_shared",
    "shared",
    "slower_steps",
    "outside_clocks",
)
OF_TRIAL = {
    **_all(str, "dataset", "data"),
    **_all(int, "samples", "classes"),
    **_all(float, "rate"),
    **_all(int, "seed"),
    **_all(str, "backbone"),
    **_all(int, "image_size", "trainings"),
}

STUDY_TABLES = (
    Table("runs", OF_STUDY, {**ABOUT_RUNS, **_all(str, "weights", "path"), **_all(float, "seconds"), **ORIGIN}),
    Table(
        "metrics",
        OF_STUDY,
        {
            **ABOUT_RUNS,
            **_all(str, "line_up", "detector", "detector_name", "detector_options"),
            **_all(int, "runs_averaged", "epochs_used"),
            **_all(float, "auroc", "auroc_low", "auroc_high", "auprc", "auprc_chance", "precision_at_rate"),
            **_all(float, "recall_1", "recall_5", "recall_10", "recall_20", "ties"),
            **_all(float, "minus_linc", "minus_linc_low", "minus_linc_high", "seconds"),
            **_all(str, "status", "reason"),
        },
    ),
    Table(
        "accuracy",
        OF_STUDY,
        {
            **ABOUT_RUNS,
            **_all(float, "best_test", "last_test", "test_by_noisy_validation", "test_by_clean_validation"),
            **_all(float, "best_batch_mean", "last_batch_mean"),
        },
    ),
    Table("auc_by_epochs", OF_ENTRY, {}, {"epochs_read": int, "auroc": float}),
    Table("roc", OF_ENTRY, {}, {"false_positive_rate": float, "true_positive_rate": float}),
    Table("agreement", OF_ENTRY, {}, {"other": str, "rank_correlation": float}),
    # Of a run, whichever studies it is in: kept once.
    Table(
        "curves",
        {"run": str},
        {},
        {
            "epoch": int,
            **_all(float, "train_loss", "train_accuracy", "validation_loss", "validation_accuracy"),
            **_all(float, "test_loss", "test_accuracy"),
        },
    ),
    Table("trust_histograms", _all(str, "run", "subset"), {}, {"from": float, "to": float, "count": int}),
    Table(
        "data_maps",
        _all(str, "run", "subset"),
        {},
        {"confidence_from": float, "variability_from": float, "count": int},
    ),
    Table("mixtures", {"run": str, "component": int}, _all(float, "mean", "standard_deviation", "weight")),
    Table(
        "corrections",
        {"run": str, "class": str},
        {
            **_all(int, "warm_up", "soft_epochs", "in_class"),
            **_all(float, "noisy_share", "ambiguous_share", "noisy_precision", "noisy_recall"),
            "corrected": int,
            **_all(float, "corrected_right", "label_accuracy_before", "label_accuracy_after"),
        },
    ),
)
OTHER_TABLES = (
    Table(
        "overhead",
        {**PROFILED, "line_up": str, "detector": str},
        {
            "measured_samples": int,
            **_all(float, "standard_seconds", "disk_bytes"),
            **_all(float, *(f"{part}{end}" for part in INTERVALS for end in ("", "_low", "_high"))),
            **_all(float, "memory_bytes", "memory_bytes_low", "memory_bytes_high", "memory_floor_bytes"),
            **_all(float, "scoring_memory_bytes", "device_bytes"),
            **ORIGIN,
        },
    ),
    Table(
        "overhead_terms",
        PROFILED,
        {"measured_samples": int, "term": str, **_all(float, "share", "share_low", "share_high"), **ORIGIN},
    ),
    Table(
        "overhead_growth",
        {"axis": str, **_all(int, "samples", "classes", "epochs"), **_all(str, "quantity", "detector")},
        {**_all(float, "added", "baseline", "recorded_bytes"), **ORIGIN},
    ),
    Table("audit_precision", OF_TRIAL, {"method": str, "first": float, "precision": float}),
    Table(
        "audit_counts",
        OF_TRIAL,
        {
            **_all(float, "share", "estimate", "low", "high"),
            **_all(bool, "is_known", "is_evidence"),
            **_all(float, "cleanlab", "cleanlab, with held-out"),
            **ORIGIN,
            "cleanlab version": str,
        },
    ),
    Table("speed", _all(str, "what", "model"), {**_all(float, "milliseconds", "ratio"), "against": str}),
    Table("baseline", _all(str, "what", "model"), {**_all(float, "milliseconds", "ratio"), "against": str}),
)
TABLES = {table.name: table for table in (*STUDY_TABLES, *OTHER_TABLES)}

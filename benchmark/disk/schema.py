"""The one schema of a results folder's CSV tables: columns with their types, and the order of rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

Columns = Mapping[str, type]


@dataclass(frozen=True)
class Table:
    """A series is a column with many values per row, one cell in the file and one row per value in memory."""

    name: str
    single: Columns  # columns with one value per row, those that identify it first
    series: Columns = field(default_factory=dict)
    order: tuple[str, ...] = ("study", "run")  # what rows are sorted by
    later: tuple[str, ...] = ()  # columns that files of earlier versions lack: there they are empty

    @cached_property
    def columns(self) -> dict[str, type]:
        """All of them, in the order in which they are written."""
        return {**self.single, **self.series}


def _columns(names: str) -> dict[str, type]:
    """From names and types: `name:float`, or only a name for text."""
    types: dict[str, type] = {"": str, "int": int, "float": float, "bool": bool}
    return {name: types[kind] for name, _, kind in (word.partition(":") for word in names.split())}


# What is known of a run beside its id: in the table of runs, and in those that people read by themselves.
ABOUT_RUNS = _columns(
    "dataset classes:int samples:int noise rate:float noise_seed:int training_seed:int backbone image_size:int"
    " epochs:int batch_size:int learning_rate:float weight_decay:float head_init warm_up_steps:float clip_norm:float"
    " images recipe recipe_name recipe_options setting protocol true_rate:float"
)
# What the weights are worth for the data set before training, and how far a first step at the paper's learning rate
# moves a logit, with the run's initial classifier.
CHECKS = _columns("neighbour_accuracy:float first_step:float")
ORIGIN = _columns("commit machine python torch timm numpy scikit-learn medmnist")
OF_STUDY = _columns("study run")
OF_ENTRY = OF_STUDY | _columns("line_up detector")
PROFILED = _columns(
    "dataset backbone image_size:int path epochs:int batch_size:int classes:int training_samples:int rounds:int"
    " threads:int device clock"
)
OF_TRIAL = _columns(
    "dataset data samples:int classes:int noise rate:float seed:int backbone image_size:int trainings:int"
)
# What a simulated reviewer's decisions prove; wrong labels found from the top of the list, and by chance.
REVIEWS = _columns("mistakes:float decisions:int low:float high:float covers:bool found:float by_chance:float")
GROUPING = ("rate", "learning_rate", "weight_decay", "first")  # rows without a number here would be in no group
BY_PROFILE = ("dataset", "path", "backbone", "image_size", "epochs", "batch_size", "device")
BY_TRIAL = ("dataset", "data", "noise", "rate", "seed", "backbone", "image_size", "trainings")

METRICS = _columns(
    "line_up detector detector_name detector_options runs_averaged:int epochs_used:int auroc:float auroc_low:float"
    " auroc_high:float auprc:float auprc_chance:float precision_at_rate:float recall_1:float recall_5:float"
    " recall_10:float recall_20:float ties:float minus_linc:float minus_linc_low:float minus_linc_high:float"
    " seconds:float status reason"
)
ACCURACY = _columns(
    "best_test:float last_test:float test_by_noisy_validation:float test_by_clean_validation:float"
    " best_batch_mean:float last_batch_mean:float best_test_without_twins:float last_test_without_twins:float"
)
# Balanced accuracy, and the recall of the class that is rarest in training, at the last epoch.
BY_CLASS = _columns("last_balanced:float last_rarest:float")
CURVES = _columns(
    "epoch:int train_loss:float train_accuracy:float validation_loss:float validation_accuracy:float test_loss:float"
    " test_accuracy:float"
)
CORRECTIONS = _columns(
    "warm_up:int soft_epochs:int in_class:int noisy_share:float ambiguous_share:float noisy_precision:float"
    " noisy_recall:float log_precision:float log_recall:float in_first_batches:float noisy_in_first_batches:float"
    " corrected:int corrected_right:float label_accuracy_before:float label_accuracy_after:float"
)
COSTS = ("objective", "recording", "scoring", "alone", "recording_shared", "shared", "slower_steps", "outside_clocks")
OVERHEAD = (
    _columns("measured_samples:int standard_seconds:float disk_bytes:float")
    | {f"{part}{end}": float for part in (*COSTS, "memory_bytes") for end in ("", "_low", "_high")}
    | _columns("memory_floor_bytes:float scoring_memory_bytes:float device_bytes:float")
)
TERMS = _columns("measured_samples:int term share:float share_low:float share_high:float")
GROWTH = _columns(
    "axis samples:int classes:int epochs:int quantity detector added:float baseline:float recorded_bytes:float"
)
ERROR_COUNTS = _columns("share:float estimate:float low:float is_known:bool is_evidence:bool cleanlab:float") | {
    "cleanlab, with held-out": float,
    **ORIGIN,
    "cleanlab version": str,
}
OF_DATASET = _columns("dataset data")
DUPLICATES = _columns(
    "images:int exact_groups:int exact_pairs:int near_pairs:int pairs_with_two_labels:int test_images:int"
    " test_twins:int test_twins_in_training:int measure threshold:float"
)
ALIKE = _columns("alike_pairs:float alike_besides_near:float alike_with_two_labels:float")  # to the network
LABEL_ERRORS = _columns("split index:int label:int other_split other_index:int other_label:int correlation:float")
WRONG_LABELS = _columns(
    "samples:int classes:int true_rate:float chance_mean:float chance_spread:float in_hardest_tenth:float"
)
TIMES = _columns("what model milliseconds:float ratio:float against")

STUDY_TABLES = (
    Table(
        "runs",
        OF_STUDY
        | ABOUT_RUNS
        | _columns("weights path")
        | CHECKS
        | _columns("seconds:float")
        | ORIGIN
        | _columns("date"),
        later=(*CHECKS, "date"),
    ),
    Table("metrics", OF_STUDY | ABOUT_RUNS | METRICS),
    Table("accuracy", OF_STUDY | ABOUT_RUNS | ACCURACY | BY_CLASS, later=tuple(BY_CLASS)),
    Table("auc_by_epochs", OF_ENTRY, _columns("epochs_read:int auroc:float")),
    Table("auroc_draws", OF_ENTRY, _columns("auroc:int")),  # in units of 0.0001
    Table("roc", OF_ENTRY, _columns("false_positive_rate:float true_positive_rate:float")),
    Table("agreement", OF_ENTRY, _columns("other rank_correlation:float")),
    # Of a run, whichever studies it is in: kept once.
    Table("curves", _columns("run"), CURVES),
    Table("trust_histograms", _columns("run subset"), _columns("from:float to:float count:int")),
    Table("data_maps", _columns("run subset"), _columns("confidence_from:float variability_from:float count:int")),
    Table("first_batches", _columns("run class"), _columns("batch:int gradient:float")),
    Table("mixtures", _columns("run component:int mean:float standard_deviation:float weight:float")),
    Table("corrections", _columns("run class") | CORRECTIONS),
)
OTHER_TABLES = (
    Table("duplicates", OF_DATASET | DUPLICATES | ALIKE, order=("dataset", "data"), later=tuple(ALIKE)),
    Table(
        "wrong_labels",
        OF_DATASET | _columns("noise rate:float noise_seed:int") | WRONG_LABELS,
        _columns("correct:int given:int count:int"),
        order=("dataset", "data", "noise", "rate", "noise_seed"),
    ),
    Table("label_errors", OF_DATASET | LABEL_ERRORS, order=("dataset", "data")),
    Table("overhead", PROFILED | _columns("line_up detector") | OVERHEAD | ORIGIN, order=BY_PROFILE),
    Table("overhead_terms", PROFILED | TERMS | ORIGIN, order=BY_PROFILE),
    Table("overhead_growth", GROWTH | ORIGIN, order=("quantity", "axis", "detector")),
    Table("audit_precision", OF_TRIAL | _columns("method first:float precision:float"), order=BY_TRIAL),
    Table("audit_counts", OF_TRIAL | ERROR_COUNTS, order=BY_TRIAL),
    Table("audit_reviews", OF_TRIAL | REVIEWS, order=BY_TRIAL),
    Table("speed", TIMES, order=("what", "model")),
    Table("baseline", TIMES, order=("what", "model")),
)
TABLES = {table.name: table for table in (*STUDY_TABLES, *OTHER_TABLES)}

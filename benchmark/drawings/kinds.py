"""The list of figures that a study may have: how each is drawn, from which tables, and what its caption says."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from benchmark import reference
from benchmark.disk import slug
from benchmark.display.canvas import Drawing
from benchmark.drawings.detection import (
    MOST_COMPARED,
    agreement,
    auc_averaged,
    auc_by_detector,
    auc_by_epochs,
    auc_by_rate,
    every_two,
    roc_curves,
)
from benchmark.drawings.noise import by_noise_kind
from benchmark.drawings.rows_to_draw import (
    FAMILY,
    PROTOCOL,
    about,
    families,
    few_settings,
    first_seed,
    first_setting,
)
from benchmark.drawings.training import accuracy_curves, data_map, first_batches, gain_heat_map, trust_histograms
from benchmark.drawings.variants import variants
from benchmark.paper.select import is_ablation, like
from benchmark.statistics.comparisons import main_line_up
from benchmark.statistics.hierarchical import EQUIVALENT


@dataclass(frozen=True)
class Kind:
    draw: Callable[..., Figure | None]  # its name is the figure's
    reads: tuple[str, ...]
    caption: str
    apart: tuple[str, ...] = PROTOCOL  # settings that differ in these are drawn in separate figures
    pick: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows  # of many settings, those that are shown
    first_seed: bool = False
    has_cells: bool = False  # in colours that text stands on
    of_changes: bool = False  # shows what the changes of an ablation do
    of_noise: bool = False  # compares kinds of noise


LINC = reference.DETECTOR
KINDS = (
    Kind(
        auc_by_detector,
        ("metrics",),
        "AUROC of every detector: a dot per run with its bootstrap 95% interval, a bar at the mean of the runs; the "
        f"row of {LINC} is shaded",
    ),
    Kind(
        auc_averaged,
        ("averaged",),
        "AUROC of every detector from scores averaged over several trainings on the same wrong labels: a dot per pair "
        f"of seeds with its bootstrap 95% interval, a bar at their mean; the row of {LINC} is shaded",
    ),
    Kind(
        every_two,
        ("auroc_draws", "metrics"),
        f"Every two of the best {MOST_COMPARED} detectors that were measured everywhere, {LINC} among them. In a cell: "
        "the difference of their mean AUROCs (row minus column, × 100); below it, the probability that the row is "
        "better, from a bootstrap over data sets, then pairs of seeds, then samples. "
        f"Better or worse: the 95% interval is beyond {EQUIVALENT:g}. Equivalent: "
        f"it is within ±{EQUIVALENT:g}",
        has_cells=True,
    ),
    Kind(
        roc_curves,
        ("roc",),
        f"ROC curves: {LINC} as the thick black line, the five others with the largest areas in colour, all others in "
        "grey, chance dotted; the square-root scale enlarges the part with few false positives",
        pick=few_settings,
        first_seed=True,
    ),
    Kind(
        auc_by_epochs,
        ("auc_by_epochs",),
        "AUROC of every detector that reads a training history when it reads only the first epochs, as the mean over "
        f"seeds; {LINC} in grey",
    ),
    Kind(
        auc_by_rate,
        ("metrics",),
        f"AUROC of every detector over the nominal noise rate: a dot per run, a line through the means; {LINC} in grey",
    ),
    Kind(
        by_noise_kind,
        ("metrics",),
        "AUROC of every detector under every kind of noise, as means over pairs of seeds, then over data sets; the "
        f"best under {reference.NOISE} noise first, and kinds that were measured on other data apart",
        apart=(),
        has_cells=True,
        of_noise=True,
    ),
    Kind(
        trust_histograms,
        ("trust_histograms", "mixtures"),
        "Trust after the warm-up of truly clean and truly mislabelled training samples. Dashed lines are the means of "
        "the mixture's components, and shades show where each is the most probable; samples left of the solid line are "
        "taken as noisy. Trust starts at 1 and decays for all samples; counts are on a square-root scale",
        pick=few_settings,
        first_seed=True,
    ),
    Kind(
        accuracy_curves,
        ("curves", "corrections"),
        f"Test accuracy over epochs, standard training and {LINC}: a thin line per run, a thick line for the mean; "
        f"bands mark the phases of {LINC}",
        pick=few_settings,
    ),
    Kind(
        gain_heat_map,
        ("accuracy",),
        f"Test accuracy of {LINC} minus that of standard training in percentage points, as means over seeds, at the "
        "last epoch and at the best epoch",
        apart=(),
        has_cells=True,
    ),
    Kind(
        variants,
        ("accuracy", "metrics"),
        f"What each change does: AUROC of {LINC} and of the best of the paper's other detectors in the same setting "
        "(left), and accuracy at the last epoch with that of standard training (right); a dot per run",
        apart=(),
        of_changes=True,
    ),
    Kind(
        first_batches,
        ("first_batches",),
        "The gradient of trust, −log p(given label) − H(p), in the batches of the first epoch: the mean over the "
        "samples of each given class. What is high here lowers trust, whether the label is right or wrong",
        apart=(),
        first_seed=True,
        of_changes=True,
    ),
    Kind(
        data_map,
        ("data_maps",),
        "Data map: mean and standard deviation over epochs of the given label's probability, for truly clean and truly "
        "mislabelled training samples; darker cells hold more samples",
        pick=first_setting,
        has_cells=True,
        first_seed=True,
    ),
    Kind(
        agreement,
        ("agreement",),
        "Rank correlation between the scores of every two detectors, as the mean over data sets; those that agree "
        "stand together",
        has_cells=True,
    ),
)


def study_drawings(tables: Mapping[str, pd.DataFrame]) -> Iterator[Drawing]:
    """Every figure that the study may have; what has nothing to show is found when it is drawn.

    An ablation has those that show its changes, a study of several kinds of noise those that compare them; their
    usual settings are those of another study.
    """
    rows_of = {name: tables[name] for kind in KINDS for name in kind.reads}
    filled = [rows[list(FAMILY)] for rows in rows_of.values() if not rows.empty]
    if not filled:
        return
    has_kinds = not is_ablation(tables["accuracy"]) and tables["metrics"]["noise"].nunique() > 1
    examples, taken = pd.concat(filled).drop_duplicates(), set[str]()
    for kind in KINDS:
        if (is_ablation(tables["accuracy"]) and not kind.of_changes) or (has_kinds and not kind.of_noise):
            continue
        separate = families(examples, kind.apart) if kind.apart else {"": examples}
        for family, example in separate.items():
            settings = example.iloc[0][list(kind.apart)]
            rows = tuple(kind.pick(like(main_line_up(rows_of[name]), settings)) for name in kind.reads)
            if not rows[0].empty:
                parts = (kind.draw.__name__, family.lower())
                name = "_".join(slug(part) for part in parts if part)
                while name in taken:  # data sets may differ in characters that a file's name has not
                    name += "_"
                taken.add(name)
                yield Drawing(name, kind.draw, rows, _caption(kind, rows[0]), not kind.has_cells)


def _caption(kind: Kind, rows: pd.DataFrame) -> str:
    return f"{kind.caption}. {about(first_seed(rows) if kind.first_seed else rows)}"

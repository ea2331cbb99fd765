"""The settings of an audit, and the study that trains and scores its samples."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.errors import LincBenchError
from benchmark.identity import Json, settings_of
from benchmark.networks import Backbone
from benchmark.reference import DETECTOR
from benchmark.runs import Grid, LineUp, Study
from benchmark.training import TrainingSettings
from detectors import detector_named

DETECTORS = tuple(map(detector_named, (DETECTOR, "EL2N", "Data-IQ", "nearest neighbours")))
EPOCHS, BATCH_SIZE = max(detector.training.min_epochs for detector in DETECTORS), 64
DEFAULT_BACKBONE = Backbone()
FEWEST_SAMPLES = 200  # of fewer, planted errors would be too large a part or too few to learn from


@dataclass(frozen=True)
class AuditSettings:
    """Scores are means over the training seeds."""

    seeds: tuple[int, ...] = (0,)
    backbone: Backbone = DEFAULT_BACKBONE
    weights: Path | None = None
    workers: int = 1
    planted: bool = True  # trains once more, with planted errors

    def training(self, samples: int) -> TrainingSettings:
        batch_size = min(BATCH_SIZE, samples // 4)
        return TrainingSettings(epochs=EPOCHS, batch_size=batch_size, head_init="torch")  # as in the trials

    def study(self, dataset: Path, samples: int) -> Study:
        """Training on the given labels of one data set, with no noise added."""
        grid = Grid(
            datasets=(str(dataset),),
            rates=(0.0,),
            seeds=tuple((0, seed) for seed in self.seeds),
            backbone=self.backbone,
            training=self.training(samples),
            recipes=(),
            line_ups=(LineUp("audit", DETECTORS),),
        )
        return Study("own-data", "labels of one's own data", (grid,))

    def as_json(self, samples: int) -> dict[str, Json]:
        return {
            "backbone": settings_of(self.backbone),
            "training": settings_of(self.training(samples)),
            "seeds": self.seeds,
            "detectors": [settings_of(detector) for detector in DETECTORS],
        }


def checked_settings(
    seeds: int, backbone: Backbone | str, weights: Path | str | None, workers: int, shown: int
) -> AuditSettings:
    """A backbone may be a timm name."""
    if seeds < 1 or shown < 1 or workers < 1:
        counts = f"{seeds}, {shown} and {workers}"
        raise LincBenchError(f"An audit needs at least one seed, sample and worker, not {counts}.")
    backbone = replace(DEFAULT_BACKBONE, name=backbone) if isinstance(backbone, str) else backbone
    return AuditSettings(tuple(range(seeds)), backbone, Path(weights) if weights else None, workers)

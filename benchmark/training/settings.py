"""The settings of a training."""

from dataclasses import dataclass

from benchmark.errors import LincBenchError


@dataclass(frozen=True)
class TrainingSettings:
    """The paper's section on the model and training, as values."""

    epochs: int = 70
    batch_size: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 1e-4
    milestones: tuple[int, ...] = (10, 20, 40, 60)
    decay: float = 0.7
    seed: int = 0
    threads: int = 1  # bytes depend on it, so it is a setting; parallelism is over runs
    device: str = "cpu"
    plain: bool = False  # the whole network runs in every step, instead of its tail on cached features
    augment: bool = False  # random flips and crops of the training images

    def __post_init__(self) -> None:
        if self.augment and not self.plain:
            raise LincBenchError("Augmentation changes the images in every step, so it needs the plain path.")

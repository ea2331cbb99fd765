"""The training loop, and the recipes and objectives that plug into it."""

from benchmark.training.objective import CrossEntropy, Objective
from benchmark.training.recipes import Embed, Job, Recipe, Standard
from benchmark.training.settings import TrainingSettings

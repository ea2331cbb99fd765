"""The training loop, and the recipes and objectives that plug into it."""

from benchmark.training.objective import CrossEntropy, Objective, TrainingSettings
from benchmark.training.recipes import Embed, Job, Recipe, Standard

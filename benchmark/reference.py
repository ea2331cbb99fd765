"""The method that all others are compared with: the one place that knows its name."""

DETECTOR = "LiNC"  # the detector's name
LINE_UP = "original"  # detectors as their authors describe them; of several line-ups, figures show this
RECIPE = "linc"  # the name of the recipe that it trains with
BASELINE_RECIPE = "standard"  # what that recipe is compared with
NOISE = "symmetric"  # the kind of noise that others are compared with, and the paper's
RATE = 0.2  # of wrong labels: where the paper compares detectors, and figures with one rate do
RECIPE_TITLES = {RECIPE: DETECTOR, BASELINE_RECIPE: "standard training"}

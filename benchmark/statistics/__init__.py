"""Pure functions on arrays: mixtures, held-out classifiers, error counts, metrics, bootstrap intervals."""

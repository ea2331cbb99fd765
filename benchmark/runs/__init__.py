"""From a study to trained and scored runs: studies, plans, units of work, scores."""

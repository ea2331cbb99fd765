"""From a study to trained and scored runs: studies, plans, units of work, scores."""

from benchmark.runs.plan import Plan, Sources, plan_study
from benchmark.runs.studies import DEMO, MAIN, ORIGINAL, STUDIES, Grid, LineUp, Seeds, Study, study_named
from benchmark.runs.units import Outcome, RunSettings, Unit, joined, signals_for

"""Studies as values: grids that share runs, and what the command line changes in them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.cli.command_line import command_line
from benchmark.cli.overrides import Overrides, overridden
from benchmark.disk.results_folder import ResultsFolder
from benchmark.record import EVAL_SUMMARY, EvalSummary
from benchmark.runs.plan import Sources, plan_study
from benchmark.runs.studies import STUDIES, Study, study_named
from detectors import LINE_UPS, detector_named


def changed(study: str, *options: str) -> Study:
    arguments = command_line().parse_args(["run", study, *options])
    return overridden(study_named(study), Overrides.from_options(arguments))


def test_a_run_that_two_grids_have_is_one_unit_with_what_either_needs(tmp_path: Path) -> None:
    study = study_named("detection")
    plan = plan_study(study, Sources(ResultsFolder(tmp_path)))
    ids = [unit.run.run_id for unit in plan.units]
    assert len(ids) == len(set(ids)) == 5 * 5 * 2 + 3 * 3 * 5, (
        "data sets, pairs of seeds, recipes; LiNC that starts later, and four ways with trainings of their own"
    )
    vog = [unit for unit in plan.units if detector_named("VoG") in unit.detectors]
    assert {unit.run.dataset for unit in vog} == {"breastmnist", "pneumoniamnist", "dermamnist"}
    assert {unit.run.seeds for unit in vog} == {(0, 0), (1, 1), (2, 2)}
    assert all(detector_named("AUM") in unit.detectors for unit in vog), "what the other grid scores is scored too"
    for unit in plan.units:
        assert {signal for detector in unit.detectors for signal in detector.needs} <= set(unit.signals)


def test_further_trainings_have_the_same_wrong_labels_and_only_what_detectors_need(tmp_path: Path) -> None:
    study = changed("demo", "--trainings", "3", "--detector", "AUM", "--seed", "1", "--seed", "2")
    units = plan_study(study, Sources(ResultsFolder(tmp_path))).units
    seeds = [(unit.run.seeds, unit.run.recipe.name, unit.trainings) for unit in units]
    pairs = [((seed, seed), recipe, 3) for seed in (1, 2) for recipe in ("standard", "linc")]
    assert seeds == [*pairs, *(((noise, noise + more), "standard", 0) for noise in (1, 2) for more in (100, 200))], (
        "pairs come first"
    )


@pytest.mark.parametrize("by_epochs", [False, True])
def test_all_epochs_are_recorded_for_readers_of_one_only_if_a_study_asks(by_epochs: bool, tmp_path: Path) -> None:
    study = replace(changed("demo", "--detector", "EL2N", "--line-up", "original"), by_epochs=by_epochs)
    units = plan_study(study, Sources(ResultsFolder(tmp_path))).units
    (signals,) = {unit.signals for unit in units if unit.detectors}
    assert signals == ((EvalSummary((10,)), EVAL_SUMMARY) if by_epochs else (EvalSummary((10,)),))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_study_can_be_planned_without_data(study: Study, tmp_path: Path) -> None:
    plan = plan_study(study, Sources(ResultsFolder(tmp_path)))
    assert plan.units == tuple(plan.to_train)


def test_the_accuracy_study_reads_the_records_of_the_detection_study(tmp_path: Path) -> None:
    sources = Sources(ResultsFolder(tmp_path))
    names = ("detection", "accuracy")
    one, other = ({unit.run for unit in plan_study(study_named(name), sources).units} for name in names)
    shared = one & other
    assert len(shared) == 5 * 3 * 2, "20 % noise is trained once"


def test_chosen_data_sets_stay_in_the_grids_that_have_them() -> None:
    study = changed("detection", "--dataset", "bloodmnist")
    assert [grid.datasets for grid in study.grids] == [("bloodmnist",)], "the grid of three others has nothing left"
    assert study.name == "detection-modified"


def test_a_file_can_stand_for_a_data_set_of_the_study() -> None:
    options = ("--dataset", "breastmnist", "--dataset", "bloodmnist=a/b=c.npz", "--name", "detection")
    study = changed("detection", *options)
    assert [grid.datasets for grid in study.grids] == [("breastmnist", "a/b=c.npz"), ("breastmnist",)]
    assert (study.name, study.is_modified) == ("detection", True)


def test_a_data_set_that_the_study_has_not_joins_every_grid() -> None:
    study = changed("detection", "--dataset", "breastmnist", "--dataset", "digits")
    assert [grid.datasets for grid in study.grids] == [("breastmnist", "digits")] * 2


def test_rates_and_seeds_of_the_study_stay_in_the_grids_that_have_them() -> None:
    study = changed("accuracy", "--rate", "0.1", "--rate", "0.2")
    assert [grid.rates for grid in study.grids] == [(0.2,), (0.1,)]
    seeds = [grid.seeds for grid in changed("detection", "--seed", "4", "--seed", "0").grids]
    assert seeds == [((4, 4), (0, 0)), ((0, 0),)]


def test_rates_and_seeds_that_the_study_has_not_are_tried_in_every_grid() -> None:
    study = changed("accuracy", "--rate", "0.25", "--seed", "7")
    assert [(grid.rates, grid.seeds) for grid in study.grids] == [((0.25,), ((7, 7),))] * 2


def test_a_noise_seed_takes_the_place_of_those_in_the_pairs() -> None:
    assert [grid.seeds for grid in changed("demo", "--noise-seed", "9").grids] == [((9, 0), (9, 1), (9, 2))]
    both = changed("demo", "--noise-seed", "9", "--noise-seed", "8", "--seed", "1", "--seed", "7")
    assert [grid.seeds for grid in both.grids] == [((9, 1), (9, 7), (8, 1), (8, 7))]


def test_choices_that_no_run_has_together_are_told(fails: Callable[..., str], tmp_path: Path) -> None:
    said = fails("run", "ablation", "--dataset", "pneumoniamnist", "--seed", "1", "--results", tmp_path)
    assert "No run of the study ablation matches --dataset, --rate, --seed, --detector and --line-up together" in said


def test_a_line_up_can_be_chosen(fails: Callable[..., str], tmp_path: Path) -> None:
    study = changed("demo", "--line-up", "hcat")
    assert [line_up.name for line_up in study.line_ups] == ["hcat"]
    assert len(study.detectors) == len(LINE_UPS["hcat"])
    assert "original" in fails("run", "--line-up", "cat", "--results", tmp_path)


def chosen_runs(study: Study, tmp_path: Path) -> set[tuple[str, int, str]]:
    units = plan_study(study, Sources(ResultsFolder(tmp_path))).units
    return {(unit.run.dataset, unit.run.training.seed, unit.run.recipe.name) for unit in units}


def test_a_detector_stays_in_the_grids_that_have_it(tmp_path: Path) -> None:
    study = changed("detection", "--detector", "VoG", "--seed", "0")
    assert {detector.name for detector in study.detectors} == {"VoG"}
    datasets = ("breastmnist", "pneumoniamnist", "dermamnist")
    assert chosen_runs(study, tmp_path) == {(name, 0, recipe) for name in datasets for recipe in ("standard", "linc")}
    both = changed("detection", "--detector", "VoG", "--detector", "AUM")
    assert [{detector.name for detector in grid.detectors} for grid in both.grids] == [{"AUM"}, {"AUM", "VoG"}]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
@pytest.mark.parametrize("name", ["LiNC", "AUM", "VoG", "EL2N", "post-hoc trust"])
def test_nothing_is_trained_for_a_detector_that_is_then_dropped(study: Study, name: str, tmp_path: Path) -> None:
    """A chosen detector is scored as the study scores it, and the rest of its grids is left out."""
    chosen = changed(study.name, "--detector", name)
    own = [grid for grid in study.grids if name in {detector.label for detector in grid.detectors}]
    assert [grid.datasets for grid in chosen.grids] == [grid.datasets for grid in own or study.grids]
    assert {detector.label for detector in chosen.detectors} == {name}
    if own:
        for grid, given in zip(chosen.grids, own, strict=True):
            assert (grid.recipes, grid.training, grid.seeds) == (given.recipes, given.training, given.seeds)


def test_a_name_is_of_one_detector_and_a_label_of_another() -> None:
    chosen = changed("detection", "--detector", "LiNC", "--detector", "aum")
    assert [line_up.name for line_up in chosen.line_ups] == ["original"]
    assert {detector.label for detector in chosen.detectors} == {"LiNC", "AUM"}
    later = changed("detection", "--detector", "LiNC (trust_from_epoch=2)")
    assert {detector.label for detector in later.detectors} == {"LiNC (trust_from_epoch=2)"}
    (hcat,) = changed("detection", "--line-up", "hcat", "--detector", "EL2N").detectors
    assert hcat.label == "EL2N (epoch=None, squared=True)"


def test_a_line_up_stays_in_the_grids_that_have_it_or_joins_all() -> None:
    study = changed("accuracy", "--line-up", "hcat")
    assert [[line_up.name for line_up in grid.line_ups] for grid in study.grids] == [["hcat"]] * 2
    assert {detector.name for detector in changed("demo", "--line-up", "hcat", "--detector", "AUM").detectors} == {
        "AUM"
    }


def test_a_detector_that_its_line_up_has_not(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "random" not in {detector.name for detector in LINE_UPS["hcat"]}
    assert "No run of the study demo" in fails(
        "run", "--line-up", "hcat", "--detector", "random", "--results", tmp_path
    )


def test_what_is_not_said_is_not_changed() -> None:
    for study in STUDIES:
        assert changed(study.name, "--device", "cpu") == study


@pytest.mark.parametrize("dataset", study_named("ablation").datasets)
def test_the_ablation_changes_one_thing_at_a_time(dataset: str) -> None:
    base, of_linc, *others = [grid for grid in study_named("ablation").grids if grid.datasets == (dataset,)]
    assert base.recipes[1] in of_linc.recipes
    for grid in others:
        differing = [
            name
            for part, usual in ((grid, base), (grid.training, base.training), (grid.backbone, base.backbone))
            for name, value in vars(part).items()
            if value != vars(usual)[name] and name not in ("training", "backbone", "line_ups")
        ]
        assert len(differing) == 1
        assert grid.seeds == base.seeds
    phases = {(recipe.warm_up, recipe.soft_epochs) for recipe in of_linc.recipes}
    assert len(phases) == 9

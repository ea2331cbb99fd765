"""Every figure of a small made-up study: drawn, readable, with the same bytes each time, and with a caption."""

import xml.etree.ElementTree as ET
from functools import cache

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.text import Text

from benchmark.display.canvas import Drawing
from benchmark.display.svg import minify
from benchmark.drawings import detection as detection_figures
from benchmark.drawings import training as training_figures
from benchmark.drawings.kinds import KINDS, Kind, study_drawings
from benchmark.drawings.rows_to_draw import few_settings, first_setting, titled_settings
from benchmark.paper.diagram import overview
from benchmark.wording import dataset_title
from tests.made_up_study import DATASETS, RATES, Tables, about_run, made_up_ablation, made_up_kinds, made_up_study

STUDY = made_up_study()
NAMES = [kind.draw.__name__ for kind in KINDS]


@cache
def small_study() -> Tables:
    return made_up_study({"digits": 300}, (0.2,))


@cache
def ablation() -> Tables:
    return made_up_ablation()


def drawings(study: Tables) -> dict[str, Drawing]:
    return {drawing.name: drawing for drawing in study_drawings(study)}


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_nothing_is_drawn_from_no_rows(kind: Kind) -> None:
    assert kind.draw(*(STUDY[name][:0] for name in kind.reads)) is None


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_figures_have_axis_labels_and_no_small_text(kind: Kind) -> None:
    study = ablation() if kind.of_changes else made_up_kinds() if kind.of_noise else STUDY
    figure = kind.draw(*(study[name] for name in kind.reads))
    assert figure is not None
    assert any(axis.get_xlabel() for axis in figure.axes)
    figure.draw_without_rendering()
    sizes = [float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(sizes) >= 6.5
    plt.close(figure)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("variants", "first_batches", "by_noise_kind")])
def test_two_drawings_have_the_same_bytes(name: str) -> None:
    study = STUDY if name in ("auc_by_rate", "gain_heat_map") else small_study()
    (drawing,) = [drawing for drawing in study_drawings(study) if drawing.draw.__name__ == name]
    files = drawing.render(with_pixels=True)
    assert set(files) == {f"{drawing.name}.svg", f"{drawing.name}.png"}
    assert drawing.render(with_pixels=True) == files
    ET.fromstring(files[f"{drawing.name}.svg"])


def test_a_setting_with_one_run_beside_others_with_several_says_so() -> None:
    accuracy = STUDY["accuracy"]
    dataset = accuracy["dataset"].iloc[0]
    is_other_seed = accuracy["training_seed"] != accuracy["training_seed"].min()
    titles = [title for title, _ in titled_settings(accuracy[~((accuracy["dataset"] == dataset) & is_other_seed)])]
    assert {("(one run)" in title) == title.startswith(dataset_title(dataset)) for title in titles} == {True}
    for rows in (accuracy, accuracy[~is_other_seed]):
        assert not any("(one run)" in title for title, _ in titled_settings(rows))


def test_the_overview_names_every_phase() -> None:
    figure = overview()
    words = " ".join(text.get_text() for text in figure.axes[0].texts)
    for phase in ("warm-up", "noisy", "ambiguous", "clean", "Soft correction", "Hard correction"):
        assert phase in words
    plt.close(figure)


def test_captions_name_samples_rates_seeds_and_network() -> None:
    drawn = drawings(STUDY)
    for kind in (kind for kind in KINDS if not (kind.of_changes or kind.of_noise)):
        (caption,) = [one.caption for one in drawn.values() if one.draw is kind.draw]
        rates = "20%, 50%" if kind.pick(STUDY["runs"])["rate"].nunique() > 1 else "20% symmetric"
        assert "n = 400" in caption or (kind.pick is first_setting and "n = 1,259" in caption)
        assert all(words in caption for words in (rates, "seed", "Lite0 at 64 px", "12 epochs")), caption


def test_of_many_settings_each_data_set_is_shown_at_one_rate_and_one_data_set_at_each_rate() -> None:
    rows = STUDY["runs"]
    assert set(few_settings(rows)["rate"]) == {0.2}
    assert set(few_settings(rows)["dataset"]) == set(DATASETS)
    assert set(few_settings(rows[rows["dataset"] == "digits"])["rate"]) == set(RATES)
    assert first_setting(rows)["setting"].nunique() == 1


def test_the_curves_with_the_largest_areas_are_named_and_the_others_grey() -> None:
    areas = {f"d{number}": ("standard", 0.5 + number / 20) for number in range(8)}
    roc = made_up_study({"digits": 300}, (0.2,), {"LiNC": ("linc", 0.6)} | areas)["roc"]
    figure = detection_figures.roc_curves(roc)
    assert figure is not None
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["LiNC", "d3", "d4", "d5", "d6", "d7", "other detectors"]
    plt.close(figure)


def test_detectors_that_agree_stand_together() -> None:
    names, alike = ("a", "b", "c", "d"), {("a", "c"), ("b", "d")}
    pairs = pd.DataFrame(
        about_run("digits", 300, 0.2, 0, "standard")
        | {
            "detector": one,
            "other": two,
            "rank_correlation": 1.0 if one == two else 0.9 if {(one, two), (two, one)} & alike else 0.1,
        }
        for one in names
        for two in names
    )
    figure = detection_figures.agreement(pairs)
    assert figure is not None
    order = [label.get_text()[-1] for label in figure.axes[0].get_yticklabels()]
    assert {tuple(sorted(order[:2])), tuple(sorted(order[2:]))} == alike
    plt.close(figure)


def test_of_many_detectors_that_agree_there_is_a_matrix_without_numbers() -> None:
    def texts(count: int) -> int:
        names = [f"d{number:02}" for number in range(count)]
        pairs = pd.DataFrame(
            about_run("digits", 300, 0.2, 0, "standard")
            | {"detector": one, "other": two, "rank_correlation": 1.0 if one == two else 0.1}
            for one in names
            for two in names
        )
        figure = detection_figures.agreement(pairs)
        assert figure is not None
        plt.close(figure)
        return len(figure.axes[0].texts)

    most = detection_figures.MOST_COMPARED
    assert [texts(most), texts(most + 1)] == [most**2, 0]


def test_a_matrix_of_every_two_has_the_best_and_the_reference() -> None:
    names = [f"d{number:02}" for number in range(20)]
    most = detection_figures.MOST_COMPARED
    assert detection_figures._best([*names, "LiNC"]) == [*names[: most - 1], "LiNC"]
    assert detection_figures._best(["LiNC", *names]) == ["LiNC", *names[: most - 1]]
    assert detection_figures._best(names) == names[:most]


def test_figures_of_one_data_set_and_rate_have_short_names() -> None:
    drawn = drawings(made_up_study({"digits": 300}, (0.2,), line_ups=("original", "hcat")))
    assert {"trust_histograms", "auc_by_detector", "roc_curves"} <= set(drawn)
    assert not any("hcat" in name for name in drawn), "other line-ups are in tables"
    assert set(drawn["auc_by_detector"].rows[0]["line_up"]) == {"original"}
    assert drawn["auc_by_rate"].render(with_pixels=False) == {}, "no curve over one rate"
    assert drawn["first_batches"].render(with_pixels=False) == {}, "one training has nothing to be compared with"


def test_an_ablation_has_the_figures_of_its_changes() -> None:
    drawn = drawings(ablation())
    assert list(drawn) == ["variants", "first_batches"]
    assert all("batch 32 or 64" in one.caption for one in drawn.values())
    figure = drawn["variants"].draw(*drawn["variants"].rows)
    assert figure is not None
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["LiNC as it is", "warm up = 10", "warm up = 2", "warm up = 20", "batch 32"]
    plt.close("all")


def test_tables_without_rows_leave_their_figures_out() -> None:
    curves_only = {name: rows if name == "curves" else rows[:0] for name, rows in STUDY.items()}
    assert set(drawings(curves_only)) == {"accuracy_curves"}
    nothing = {name: rows[:0] for name, rows in STUDY.items()}
    assert not drawings(nothing)


def test_the_heat_map_shows_points_and_their_sign() -> None:
    accuracy = pd.DataFrame(
        about_run("digits", 10, rate, 0, recipe) | {"best_test": best, "last_test": last}
        for recipe, best, last in (("standard", 0.9, 0.7), ("linc", 0.875, 0.905))
        for rate in (0.2, 0.5)
    )
    figure = training_figures.gain_heat_map(accuracy)
    assert figure is not None
    assert [axis.texts[0].get_text() for axis in figure.axes[:2]] == ["+20.5", "−2.5"]
    plt.close(figure)


def test_two_settings_at_one_rate_are_never_averaged() -> None:
    metrics = STUDY["metrics"]
    twice = pd.concat([metrics, metrics.assign(setting=metrics["setting"] + "b")])
    assert detection_figures.auc_by_rate(twice) is None
    figure = detection_figures.auc_by_detector(twice)
    assert figure is not None
    assert len(figure.axes) == 2 * len(DATASETS) * len(RATES)
    plt.close(figure)


@pytest.mark.parametrize("name", ["auc_by_detector", "accuracy_curves"])
def test_many_runs_are_drawn_as_a_range(name: str) -> None:
    """Thousands of dots and lines show no more, and take minutes and megabytes."""
    kind = KINDS[NAMES.index(name)]
    sizes = {}
    for copies in (1, 40):
        many = {
            table: pd.concat([rows.assign(run=rows["run"] + f"-{copy}") for copy in range(copies)])
            for table, rows in ((table, small_study()[table]) for table in kind.reads)
        }
        figure = kind.draw(*(many[table] for table in kind.reads))
        assert figure is not None
        sizes[copies] = len(figure.axes[0].lines) + len(figure.axes[0].collections)
        plt.close(figure)
    assert sizes[40] < sizes[1]


def test_failed_detectors_are_left_out() -> None:
    metrics = STUDY["metrics"].assign(status="failed")
    assert detection_figures.auc_by_detector(metrics) is None
    assert detection_figures.auc_by_rate(metrics) is None


def test_clean_labels_have_histograms_and_maps_too() -> None:
    drawn = drawings(made_up_study({"digits": 300}, (0.0,)))
    for name in ("trust_histograms", "data_map"):
        assert drawn[name].render(with_pixels=False)


def test_figures_of_two_backbones_have_different_names() -> None:
    curves = small_study()["curves"]
    both = pd.concat([curves, curves.assign(backbone="vit_small_patch8_224.dino", setting="other")])
    study = {name: both if name == "curves" else rows[:0] for name, rows in STUDY.items()}
    assert set(drawings(study)) == {"accuracy_curves_efficientnet-lite0", "accuracy_curves_vit-s-8-dino"}


@pytest.mark.filterwarnings("error")
def test_a_run_that_ended_in_the_warm_up_has_only_that_phase() -> None:
    study = small_study()
    curves = study["curves"][study["curves"]["epoch"] <= 2]
    figure = training_figures.accuracy_curves(curves, study["corrections"].assign(warm_up=5, soft_epochs=5))
    assert figure is not None
    figure.draw_without_rendering()
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert sum(label in training_figures.PHASES for label in labels) == 1
    plt.close(figure)


def test_a_minified_drawing_keeps_its_lines_and_text() -> None:
    style = "<defs><style>*{stroke-linejoin: round; stroke-linecap: butt}</style></defs>"
    line = '<g id="a"><path d="M 10.123456 20 \nL 30.26 19.94 \nL 30.28 19.95 \nz\n" style="fill: none"/></g>'
    text = '<text style="fill: none" x="1.06" transform="rotate(-0 1.06 2)">0.123456 &lt;b&gt;</text>'
    small = minify(f"<svg>{style}{line}{text}</svg>")
    assert "<path d='M10.1 20l20.2-0.1l0-0z'" not in small
    assert "<path d='M10.1 20l20.2-0.1z' class='s0'/>" in small
    assert "<text class='s0' x='1.1'>0.123456 &lt;b&gt;</text>" in small
    assert ".s0{fill: none}" in small


def test_names_are_drawn_as_they_are() -> None:
    """Not as a formula, an attribute, a long number or a missing value."""
    names = ("a$b$c", r"$\frac$", "1$", "_x", 'x="y" d="M 1 1"', "v 1.2345 )", "nan", "007")
    study = made_up_study({names[1]: 300}, (0.2,), {"LiNC": ("linc", 0.97)} | dict.fromkeys(names, ("standard", 0.95)))
    drawn = [(drawing, svg) for drawing in study_drawings(study) for svg in drawing.render(False).values()]
    assert len(drawn) > 5
    for drawing, svg in drawn:
        texts = ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]
        has_detectors = drawing.draw.__name__ in ("auc_by_detector", "agreement", "auc_by_epochs")
        for name in names if has_detectors else names[1:2]:
            assert any(name in text for text in texts), (drawing.name, name)

"""Every figure from a small study that is made up here: drawn, with the same bytes each time, and with a caption."""

from functools import cache
from hashlib import sha256
from itertools import permutations, product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from benchmark.paper.diagram import overview
from benchmark.report import figures as plots

Tables = dict[str, pd.DataFrame]
Rows = dict[str, list[dict[str, Any]]]
DATASETS, RATES, SEEDS = {"digits": 1259, "bloodmnist": 400}, (0.2, 0.5), (0, 1, 2)
DETECTORS = {
    "LiNC": ("linc", 0.97),
    "AUM": ("standard", 0.95),
    "EL2N": ("standard", 0.9),
    "VoG (at_epochs=(1, 3, 5), output=probability, per_class=False, high_is_clean=True)": ("standard", 0.6),
    "confident learning": ("cross-validation", 0.93),
}
EPOCHS, WARM_UP, SOFT = 12, 3, 3
TABLES = {name for kind in plots.KINDS for name in kind.reads}


def made_up_study(
    datasets: dict[str, int] = DATASETS,
    rates: tuple[float, ...] = RATES,
    detectors: dict[str, tuple[str, float]] = DETECTORS,
    line_ups: tuple[str, ...] = ("original",),
) -> Tables:
    """All tables of a study with three seeds per setting."""
    rng = np.random.default_rng(0)
    rows: Rows = {name: [] for name in TABLES}
    for (dataset, samples), rate, seed in product(datasets.items(), rates, SEEDS):
        for recipe in ("standard", "linc", "cross-validation"):
            about = _about(dataset, samples, rate, seed, recipe)
            for line_up, (name, (needs, level)) in product(line_ups, detectors.items()):
                if needs == recipe:
                    auroc = level - 0.2 * rate + rng.normal(0, 0.01)
                    _detector_rows(
                        rows,
                        about | {"line_up": line_up, "detector": name, "detector_name": name, "detector_options": ""},
                        auroc,
                        list(detectors),
                    )
            if recipe != "cross-validation":
                _training_rows(rows, about, rng)
            if recipe == "linc":
                _trust_rows(rows, about, rng)
    return {name: pd.DataFrame(made) for name, made in rows.items()}


def _about(dataset: str, samples: int, rate: float, seed: int, recipe: str) -> dict[str, Any]:
    return {
        "study": "made-up", "run": f"{dataset}-{rate}-t{seed}-{recipe}", "dataset": dataset, "classes": 10,
        "samples": samples, "noise": "symmetric", "rate": rate, "noise_seed": 0, "training_seed": seed,
        "backbone": "tf_efficientnet_lite0", "image_size": 64, "epochs": EPOCHS, "batch_size": 64, "recipe": recipe,
        "recipe_name": recipe, "recipe_options": "", "protocol": "p",
        "setting": f"{dataset}{rate}", "true_rate": rate, "images": "cached",
        "learning_rate": 5e-4, "weight_decay": 1e-4,
    }  # fmt: skip


def _detector_rows(rows: Rows, about: dict[str, Any], auroc: float, detectors: list[str]) -> None:
    seed, name = about["training_seed"], about["detector"]
    averaged = name == "EL2N"
    if not averaged or seed == 0:
        numbers = {"auroc": auroc, "auroc_low": auroc - 0.01, "auroc_high": auroc + 0.01, "status": "ok", "reason": ""}
        rows["metrics"].append(about | {"runs_averaged": 3 if averaged else 1} | numbers)
    if about["recipe"] != "cross-validation":
        rows["auc_by_epochs"] += [
            about | {"epochs_read": k, "auroc": 0.5 + (auroc - 0.5) * (1 - np.exp(-k / 2))}
            for k in range(1, EPOCHS + 1)
        ]
    if seed == 0:
        x = np.linspace(0, 1, 60)
        rows["roc"] += [
            about | {"false_positive_rate": a, "true_positive_rate": b}
            for a, b in zip(x, x ** ((1 - auroc) / auroc), strict=True)
        ]
        rows["agreement"] += [
            about
            | {"other": other, "rank_correlation": 0.9 - 0.08 * abs(detectors.index(name) - detectors.index(other))}
            for one, other in permutations(detectors, 2)
            if one == name
        ]


def _training_rows(rows: Rows, about: dict[str, Any], rng: np.random.Generator) -> None:
    epochs = np.arange(1, EPOCHS + 1)
    fall = 0.0 if about["recipe"] == "linc" else 0.4 * about["rate"]
    accuracy = 0.9 - 0.4 * np.exp(-epochs / 2) - fall * epochs / EPOCHS + rng.normal(0, 0.005, EPOCHS)
    rows["accuracy"].append(about | {"best_test": accuracy.max(), "last_test": accuracy[-1]})
    rows["curves"] += [about | {"epoch": k, "test_accuracy": a} for k, a in zip(epochs, accuracy, strict=True)]
    if about["recipe"] == "standard" and about["training_seed"] == 0:
        wrong = int(about["rate"] * about["samples"])
        for subset, count, centre in (("clean", about["samples"] - wrong, 0.85), ("mislabelled", wrong, 0.2)):
            confidence = rng.normal(centre, 0.12, count).clip(0, 0.999)
            variability = (0.4 * np.sqrt(confidence * (1 - confidence)) + rng.normal(0.05, 0.03, count)).clip(0, 0.499)
            counts, low, left = np.histogram2d(confidence, variability, 25, ((0, 1), (0, 0.5)))
            rows["data_maps"] += [
                about
                | {"subset": subset, "confidence_from": low[i], "confidence_to": low[i + 1]}
                | {"variability_from": left[j], "variability_to": left[j + 1], "count": int(counts[i, j])}
                for i, j in np.argwhere(counts)
            ]


def _trust_rows(rows: Rows, about: dict[str, Any], rng: np.random.Generator) -> None:
    wrong = int(about["rate"] * about["samples"])
    for subset, count, centre in (("clean", about["samples"] - wrong, 0.62), ("mislabelled", wrong, 0.42)):
        counts, edges = np.histogram(rng.normal(centre, 0.05, count), 40, (0.2, 0.8))
        rows["trust_histograms"] += [
            about | {"subset": subset, "from": edges[i], "to": edges[i + 1], "count": counts[i]} for i in range(40)
        ]
    rows["mixtures"] += [about | {"component": i, "mean": mean} for i, mean in enumerate((0.4, 0.52, 0.63))]
    rows["corrections"] += [
        about | {"warm_up": WARM_UP, "soft_epochs": SOFT, "class": name} for name in ("all", "0", "1")
    ]


@cache
def _study() -> Tables:
    return made_up_study()


@cache
def _ablation() -> Tables:
    """One setting with three variants of LiNC, and with another batch size."""
    study = made_up_study({"digits": 1259}, (0.2,))
    for table, column, name in (("accuracy", "recipe", "linc"), ("metrics", "detector", "LiNC")):
        rows = study[table]
        variants = [f"{name} (warm_up={epochs})" for epochs in (2, 10, 20)]
        study[table] = pd.concat([rows, *(rows[rows[column] == name].assign(**{column: one}) for one in variants)])
    for table, rows in study.items():
        usual = rows[~rows["recipe"].str.contains("(", regex=False)]
        smaller = usual.assign(batch_size=32, setting=usual["setting"] + "-32", run=usual["run"] + "-32")
        study[table] = pd.concat([rows, smaller])
    return study


@pytest.mark.parametrize("kind", plots.KINDS, ids=lambda kind: kind.name)
def test_a_figure_of_nothing_is_none(kind: plots.Kind) -> None:
    assert kind.draw(*(pd.DataFrame() for _ in kind.reads)) is None
    assert kind.draw(*(_study()[name][:0] for name in kind.reads)) is None


@pytest.mark.parametrize("kind", plots.KINDS, ids=lambda kind: kind.name)
def test_every_figure_has_axes_with_words(kind: plots.Kind) -> None:
    study = _ablation() if kind.name == "variants" else _study()
    figure = kind.draw(*(study[name] for name in kind.reads))
    assert figure is not None
    assert any(axis.get_xlabel() for axis in figure.axes)
    figure.draw_without_rendering()
    sizes = [float(text.get_fontsize()) for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert min(sizes) >= 6.5
    plt.close(figure)


def test_the_overview_needs_no_data() -> None:
    figure = overview()
    words = " ".join(text.get_text() for text in figure.axes[0].texts)
    for phase in ("warm-up", "noisy", "ambiguous", "clean", "Soft correction", "Hard correction"):
        assert phase in words
    plt.close(figure)


def _bytes(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_two_calls_write_the_same_bytes(tmp_path: Path) -> None:
    study = made_up_study({"digits": 300})
    captions = plots.draw_all(study.__getitem__, tmp_path / "one")
    assert plots.draw_all(study.__getitem__, tmp_path / "two") == captions
    written = _bytes(tmp_path / "one")
    assert written == _bytes(tmp_path / "two")
    assert set(written) == {f"{name}.{suffix}" for name in captions for suffix in ("svg", "png")}


def test_every_data_set_has_its_figures_with_captions_that_name_n_and_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "save", lambda figure, folder, name: plt.close(figure))
    captions = plots.draw_all(_study().__getitem__, tmp_path)
    for kind in (kind for kind in plots.KINDS if kind.name != "variants"):
        own = {name: caption for name, caption in captions.items() if name.startswith(kind.name)}
        assert len(own) == (len(DATASETS) if "dataset" in kind.apart else 1), kind.name
        for name, caption in own.items():
            n = "n = 400" if "bloodmnist" in name or "dataset" not in kind.apart else "n = 1,259"
            assert all(words in caption for words in (n, "20%, 50%", "seed", "Lite0 at 64 px", "12 epochs")), caption


def test_a_study_of_one_data_set_and_rate_has_short_names_and_no_curve_over_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "save", lambda figure, folder, name: plt.close(figure))
    study = made_up_study({"digits": 1259}, (0.2,), line_ups=("original", "hcat"))
    captions = plots.draw_all(study.__getitem__, tmp_path)
    assert {"trust_histograms", "auc_by_detector_original", "roc_curves_hcat"} <= set(captions)
    assert not any("rate" in name for name in captions)


def test_an_ablation_has_one_figure_of_all_its_changes_and_the_others_of_the_usual_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {}
    monkeypatch.setattr(plots, "save", lambda figure, folder, name: drawn.update({name: figure}))
    captions = plots.draw_all(_ablation().__getitem__, tmp_path)
    assert not [name for name in captions if "batch" in name]
    assert [name for name, caption in captions.items() if "batch 32 or 64" in caption] == ["variants"]
    labels = [label.get_text() for label in drawn["variants"].axes[0].get_yticklabels()]
    assert labels == ["LiNC as it is", "warm up = 10", "warm up = 2", "warm up = 20", "batch 32"]
    assert len(drawn["auc_by_detector_original"].axes) == 1
    plt.close("all")


def test_tables_that_are_missing_leave_their_figures_out(tmp_path: Path) -> None:
    curves_only = {"curves": _study()["curves"]}
    captions = plots.draw_all(lambda name: curves_only.get(name, pd.DataFrame()), tmp_path)
    assert set(captions) == {"accuracy_curves_bloodmnist", "accuracy_curves_digits"}


def test_the_heat_map_shows_points_and_their_sign() -> None:
    accuracy = pd.DataFrame(
        _about("digits", 10, 0.2, 0, recipe) | {"best_test": best, "last_test": last}
        for recipe, best, last in (("standard", 0.9, 0.7), ("linc", 0.875, 0.905))
    )
    figure = plots.gain_heat_map(accuracy)
    assert figure is not None
    assert [axis.texts[0].get_text() for axis in figure.axes[:2]] == ["+20.5", "−2.5"]
    plt.close(figure)


def test_two_settings_at_one_rate_are_never_averaged() -> None:
    metrics = _study()["metrics"]
    twice = pd.concat([metrics, metrics.assign(setting=metrics["setting"] + "b")])
    assert plots.auc_by_rate(twice) is None
    figure = plots.auc_by_detector(twice)
    assert figure is not None
    assert len(figure.axes) == 2 * len(DATASETS) * len(RATES)
    plt.close(figure)


def test_many_runs_are_drawn_as_a_range() -> None:
    """Thousands of dots and lines say no more, and take minutes and megabytes."""
    few = made_up_study({"digits": 1259}, (0.2,))
    for kind in (kind for kind in plots.KINDS if kind.name in ("auc_by_detector", "accuracy_curves")):
        sizes = {}
        for copies in (1, 40):
            many = {
                name: pd.concat([table.assign(run=table["run"] + f"-{copy}") for copy in range(copies)])
                for name, table in few.items()
            }
            figure = kind.draw(*(many[name] for name in kind.reads))
            assert figure is not None
            sizes[copies] = len(figure.axes[0].lines) + len(figure.axes[0].collections)
            plt.close(figure)
        assert sizes[40] < sizes[1], kind.name


def test_failed_detectors_are_left_out() -> None:
    metrics = _study()["metrics"].assign(status="failed")
    assert plots.auc_by_detector(metrics) is None
    assert plots.auc_by_rate(metrics) is None


def test_clean_labels_have_histograms_and_maps_too() -> None:
    study = made_up_study({"digits": 300}, (0.0,))
    for figure in (
        plots.trust_histograms(study["trust_histograms"], study["mixtures"]),
        plots.data_map(study["data_maps"]),
    ):
        assert figure is not None
        figure.draw_without_rendering()
        plt.close(figure)


def test_figures_of_two_backbones_are_told_apart(tmp_path: Path) -> None:
    curves = made_up_study({"digits": 300}, (0.2,))["curves"]
    both = pd.concat([curves, curves.assign(backbone="vit_small_patch8_224.dino", setting="other")])
    captions = plots.draw_all(lambda name: both if name == "curves" else pd.DataFrame(), tmp_path)
    assert {"accuracy_curves_efficientnet-lite0", "accuracy_curves_vit-s-8-dino"} == set(captions)


@pytest.mark.filterwarnings("error")
def test_a_run_that_ended_in_the_warm_up_has_only_that_phase(tmp_path: Path) -> None:
    study = _study()
    curves = study["curves"][study["curves"]["epoch"] <= 2]
    figure = plots.accuracy_curves(curves, study["corrections"].assign(warm_up=5, soft_epochs=5))
    assert figure is not None
    plots.save(figure, tmp_path, "short")
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert sum(label in plots.PHASES for label in labels) == 1

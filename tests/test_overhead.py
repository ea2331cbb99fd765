"""The cost of detectors: charged to whoever causes it, shared where it is shared, and kept as rows."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from benchmark.cli.command_line import main
from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from benchmark.execution.progress import Progress
from benchmark.overhead import growth, profiling
from benchmark.overhead.charges import (
    BASELINE,
    Measured,
    Observation,
    Variant,
    median_interval,
    objective_cost,
    observe,
    of_same_recipe,
    shares_of,
    signal_costs,
    terms_of,
    variant_for,
)
from benchmark.overhead.figures import (
    CAPTIONS,
    _quality_and_cost,
    overhead_by_detector,
    overhead_drawings,
    pareto_front,
    quality_against_cost,
)
from benchmark.overhead.growth import Point
from benchmark.overhead.measure import RUNS_BETWEEN_BASELINES, Workbench, measure_round, measure_seconds
from benchmark.overhead.memory import peak_memory
from benchmark.overhead.setups import synthetic
from benchmark.overhead.tables import exponent, growth_table, imagenet_note, overhead_groups
from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS, RunRecord, Signal, without_parts
from benchmark.record.history import (
    END_OF_EPOCHS,
    EVALUATION,
    OBJECTIVE,
    PASS,
    PASS_OF_OBJECTIVE,
    RECORDING,
    STEPS,
    Charge,
    History,
)
from benchmark.record.recorders import Predict, Recorder, RunContext
from benchmark.record.signals import InputGradientSpread
from benchmark.record.summary import SUMMARY
from benchmark.runs.studies import LineUp
from benchmark.training import Recipe, Standard, TrainingSettings
from detectors import DETECTORS, LINE_UPS, detector_named
from detectors.confident_learning import CrossValidation
from detectors.linc import LiNCRecipe
from tests.made_up_study import about_run
from tests.test_readme import OWN_DETECTOR

NOTHING = RunRecord(np.zeros(0, dtype=np.int64), 2, 1, {})
LOOP = {STEPS: 10.0, OBJECTIVE: 1.0, END_OF_EPOCHS: 0.0, EVALUATION: 3.0}


LOOP_LAPS = {part: [taken] for part, taken in LOOP.items()}


def recording(*keys: str) -> Charge:
    return Charge(RECORDING, keys)


def measured(seconds: Mapping[Charge, float] | None = None) -> Measured:
    everything = LOOP | dict(seconds or {})
    return Measured({part: [taken] for part, taken in everything.items()}, 0.0, NOTHING)


def baseline() -> Measured:
    return replace(measured(), record=replace(NOTHING, epochs=30))


def test_a_pass_over_the_training_set_is_paid_by_the_signal_that_asked_for_it() -> None:
    run = measured(
        {recording("train_logits"): 0.5, recording("eval_logits"): 0.25, Charge(PASS, ("eval_logits",)): 4.0}
    )
    variant = Variant(Standard(), (TRAIN_LOGITS, EVAL_LOGITS))
    assert signal_costs(variant, run) == {"train_logits": 0.5, "eval_logits": 4.25}


def test_signals_of_one_recorder_share_its_cost() -> None:
    early, late = InputGradientSpread(), InputGradientSpread(stage="late")
    run = measured({recording("train_logits"): 1.0, recording(early.key, late.key): 3.0})
    costs = signal_costs(Variant(Standard(), (TRAIN_LOGITS, early, late)), run)
    assert costs == {early.key: 1.5, late.key: 1.5, "train_logits": 1.0}


def test_a_recorder_whose_name_is_no_signal_is_an_error() -> None:
    with pytest.raises(LincBenchError, match="charged to 'my recorder', which is no signal"):
        signal_costs(Variant(Standard(), (TRAIN_LOGITS,)), measured({recording("my recorder"): 1.0}))


def test_an_objective_pays_for_what_it_adds_to_cross_entropy_and_for_its_own_pass() -> None:
    run = measured({OBJECTIVE: 1.5, END_OF_EPOCHS: 0.2, PASS_OF_OBJECTIVE: 0.3})
    assert objective_cost(LiNCRecipe(), run, 30, baseline_objective=1.0) == pytest.approx(1.0)
    assert not signal_costs(variant_for([detector_named("LiNC")]), run)


def test_all_of_a_training_in_folds_is_charged_to_its_signal() -> None:
    assert objective_cost(CrossValidation(), measured(), 30, baseline_objective=1.0) == 0.0
    costs = signal_costs(variant_for([detector_named("confident learning")]), measured())
    assert sum(costs.values()) == 11.0, "all but validation and test"


def test_a_recipe_that_trains_more_pays_for_it_and_standard_training_for_nothing() -> None:
    @dataclass(frozen=True)
    class Twice(Recipe):
        name: ClassVar[str] = "two networks"

        def passes(self, epochs: int) -> float:
            return 2 * epochs

    assert objective_cost(Twice(), measured(), 30, baseline_objective=1.0) == 5.0, "half of its steps"
    noisy = measured({OBJECTIVE: 1.3})
    assert objective_cost(Standard(), noisy, 30, baseline_objective=1.0) == 0.0, "the same objective: only noise"


def test_terms_are_read_from_the_epochs_in_which_they_happen() -> None:
    """Ten of thirty epochs have trust; the mixture comes after five, the pass after ten."""
    linc = variant_for([detector_named("LiNC")])
    at_end = [0.01] * 4 + [0.5] + [0.01] * 4 + [0.02] + [0.01] * 20
    laps = LOOP_LAPS | {STEPS: [0.3] * 30, OBJECTIVE: [0.06, 0.05] * 10 + [0.02, 0.01] * 20, END_OF_EPOCHS: at_end}
    run = replace(baseline(), laps=laps | {PASS_OF_OBJECTIVE: [0.2]})
    even = replace(baseline(), laps=LOOP_LAPS | {STEPS: [0.3] * 30})
    runs = [observe(linc, run, (even, even), {})] * 6
    base = 9.0 + 1.0
    shares = {term["term"]: term["share"] * base for term in terms_of({BASELINE: [], linc: runs}, epochs=30)}
    assert list(shares.values()) == pytest.approx([3 * 0.8, 0.8, 0.5, 0.22, 0.28], rel=1e-3)


def test_a_stall_in_few_epochs_does_not_count_as_slower_steps() -> None:
    stalled = replace(baseline(), laps=baseline().laps | {STEPS: [0.3] * 28 + [0.2, 5.0]})
    even = replace(baseline(), laps=baseline().laps | {STEPS: [0.3] * 30})
    assert observe(BASELINE, stalled, (even, even), {}).slower == pytest.approx(0.0)
    slow = replace(baseline(), laps=baseline().laps | {STEPS: [0.4] * 30})
    assert observe(BASELINE, slow, (even, stalled), {}).slower == pytest.approx(3.0)


def test_the_interval_of_a_median_is_that_of_order_statistics() -> None:
    assert median_interval([5, 1, 9, 2, 8, 3, 7, 4, 6]) == (5, 2, 8)
    assert median_interval([3, 1, 2]) == (2, 1, 3), "too few for 95 %: all there is"


def work(seconds: float) -> None:
    """Takes so much processor time of this thread, on the clock of `only_work_takes_time`."""
    worked.seconds = getattr(worked, "seconds", 0.0) + seconds


worked = threading.local()


@pytest.fixture
def only_work_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that charges are exact, however busy the machine is."""
    worked.__dict__.clear()
    monkeypatch.setattr(time, "thread_time", lambda: getattr(worked, "seconds", 0.0))


@dataclass(frozen=True)
class Slow(Signal):
    """Takes a known time at each of a recorder's moments."""

    kind: ClassVar[str] = "slow"

    def recorder(self, context: RunContext) -> Recorder:
        return Worker(context, self.key)


class Worker(Recorder):
    seconds = 0.03

    def at_start(self) -> None:
        np.save(self.context.folder / f"{self.keys[0]}.npy", np.zeros(self.context.shape.samples))
        work(self.seconds)

    def after_batch(self, epoch, indices, logits) -> None:
        work(self.seconds)

    def after_epoch(self, epoch: int, predict: Predict) -> None:
        predict()
        work(self.seconds)

    def at_end(self) -> None:
        work(self.seconds)


small = partial(synthetic, 256, 4, TrainingSettings(epochs=2))


READING = 0.06  # seconds


def slow_to_read(bench: Workbench) -> Workbench:
    """Each batch of it takes so long in another thread."""

    class SlowRows:
        def __getitem__(self, rows: np.ndarray) -> np.ndarray:
            work(READING)
            return features[rows]

    features = np.asarray(bench.data.train.features[np.arange(256)])
    slow = {name: replace(getattr(bench.data, name), features=SlowRows()) for name in ("train", "validation", "test")}
    return replace(bench, data=replace(bench.data, **slow))


@pytest.mark.usefixtures("only_work_takes_time")
def test_what_a_recorder_takes_is_charged_to_it_and_to_nobody_else(tmp_path: Path) -> None:
    bench = slow_to_read(small(tmp_path))
    variant = Variant(Standard(), (Slow(), TRAIN_LOGITS))
    run = measure_round(bench, {variant: ()}, 0, tmp_path / "run")[variant]
    taken = Worker.seconds * (1 + 2 * 2 + 2 + 1)  # start, two batches in two epochs, two epochs, end
    taken += READING * 2  # a pass after each epoch
    assert run.signals == pytest.approx({"slow": taken, "train_logits": 0})
    assert (run.outside, run.slower) == pytest.approx((0, 0), abs=1e-9)


def test_time_of_other_programs_is_charged_to_nobody() -> None:
    history = History()
    with history.clock(recording("a signal")):
        time.sleep(0.2)
    assert history.seconds["recording for a signal"] < 0.1


@pytest.mark.usefixtures("only_work_takes_time")
@pytest.mark.parametrize(
    ("detector", "charge", "batches"),
    [
        ("GraNd", recording("gradient_norms-epoch=10"), 256 // 16),
        ("nearest neighbours", recording("embedding"), 1),
        ("mean loss", Charge(PASS, ("eval_summary",)), 2),
        ("EL2N", Charge(PASS, ("eval_summary-at_epochs=10",)), 1),
        ("confident learning", Charge("held-out predictions", ("held_out_logits",)), 5),
        ("AUM", EVALUATION, 2 * 2),
    ],
)
def test_reading_ahead_is_charged_to_whatever_asked_for_it(
    detector: str, charge: Charge, batches: int, tmp_path: Path
) -> None:
    laps = slow_to_read(small(tmp_path)).run(variant_for([detector_named(detector)]), tmp_path / "run").laps
    assert sum(laps[charge]) == pytest.approx(READING * batches), sorted(map(str, laps))


@pytest.mark.usefixtures("only_work_takes_time")
def test_reading_ahead_is_charged_to_who_asked_for_the_batch(tmp_path: Path) -> None:
    """Not to whose clock happens to run while another thread reads."""
    laps = slow_to_read(small(tmp_path)).run(Variant(Standard(), (TRAIN_LOGITS,)), tmp_path / "run").laps
    assert sum(laps[STEPS]) == pytest.approx(READING * 2 * 2)
    assert sum(laps[recording("train_logits")]) == sum(laps[OBJECTIVE]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("detector", "passes"), [("EL2N", 1), ("loss mixture", 1), ("last loss", 1), ("mean loss", 3), ("AUM", 0)]
)
def test_a_detector_alone_is_charged_for_the_epochs_that_it_reads(detector: str, passes: int, tmp_path: Path) -> None:
    bench = synthetic(256, 4, TrainingSettings(epochs=3), tmp_path)
    run = bench.run(variant_for([detector_named(detector)]), tmp_path / "run")
    assert sum(len(laps) for charge, laps in run.laps.items() if charge.part == PASS) == passes
    whole = run.record.epochs * 256 * SUMMARY.itemsize
    assert sum(run.recorded.values()) == (whole if detector in ("mean loss", "AUM") else whole / run.record.epochs)


def test_a_run_does_not_change_the_next(tmp_path: Path) -> None:
    bench, records = small(tmp_path), []
    for name in ("one", "two"):
        records.append(bench.run(Variant(Standard(), (TRAIN_LOGITS,)), tmp_path / name).record)
    assert (records[0][TRAIN_LOGITS] == records[1][TRAIN_LOGITS]).all()


def test_baseline_runs_come_before_and_after_every_run(tmp_path: Path) -> None:
    order: list[Variant] = []

    class Listed:
        def run(self, variant: Variant, folder: Path) -> Measured:
            order.append(variant)
            return measured()

    variants = {variant_for([detector]): () for detector in DETECTORS if detector.needs}
    assert set(measure_round(Listed(), variants, 1, tmp_path / "run")) == set(variants)
    assert order[0] == order[-1] == BASELINE
    between = "".join("b" if variant == BASELINE else "v" for variant in order)
    assert "v" * (RUNS_BETWEEN_BASELINES + 1) not in between


@dataclass(frozen=True)
class TellsItsProcess:
    """A bench whose objective seems to take as many seconds as the number of its process."""

    folder: Path
    brief: bool = False

    def briefly(self) -> "TellsItsProcess":
        return replace(self, brief=True)

    def run(self, variant: Variant, folder: Path) -> Measured:
        return measured({OBJECTIVE: 0 if self.brief else os.getpid()})


def killed(folder: Path) -> None:
    os._exit(9)


def test_every_round_is_a_new_process_and_warm_up_does_not_count() -> None:
    reports: list[tuple[int, int]] = []
    variant = Variant(LiNCRecipe(), ())
    runs = measure_seconds(TellsItsProcess, {variant: ()}, 2, lambda *report: reports.append(report))[variant]
    processes = {run.laps[OBJECTIVE][0] for run in runs}
    assert len(processes) == 2
    assert not processes & {0, os.getpid()}
    assert reports == [(0, 2), (1, 2), (2, 2)]


def test_a_measuring_process_that_is_killed_says_what_to_do() -> None:
    with pytest.raises(LincBenchError, match=r"was killed\. If memory ran out, measure fewer --samples"):
        measure_seconds(killed, {BASELINE: ()}, 1)


def test_a_temporary_folder_whose_path_is_too_long_for_a_socket_is_told(tmp_path: Path) -> None:
    """In a process of its own, since this one may have its server of processes already."""
    (folder := tmp_path / ("x" * 60) / ("y" * 60)).mkdir(parents=True)
    code = "from benchmark.overhead.measure import measure_seconds; measure_seconds(None, {}, 1)"
    environment = os.environ | {"TMPDIR": str(folder)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert f"LincBenchError: The path of the temporary folder, {folder}, is too long for the socket" in told.stderr
    assert "TMPDIR, such as /tmp" in told.stderr


def test_shares_of_a_line_up_add_up_to_what_it_takes() -> None:
    """Nothing is charged twice, and nothing to nobody."""
    line_up = LineUp("original", LINE_UPS["original"])
    observed: dict[Variant, list[Observation]] = {}
    alone = [variant_for([detector]) for detector in line_up.detectors]
    shared = [variant_for(of_same_recipe(detector, line_up.detectors)) for detector in line_up.detectors]
    for variant in dict.fromkeys([*alone, *shared]):
        seconds = {recording(signal.key): 1.0 for signal in variant.signals} if variant.recipe == Standard() else {}
        scoring = dict.fromkeys(line_up.detectors, 0.0)
        observed[variant] = [observe(variant, measured(seconds), (baseline(), baseline()), scoring)] * 6
    shares = {detector: shares_of(observed, line_up, detector) for detector in line_up.detectors}
    of_standard = [detector for detector in line_up.detectors if detector.training == Standard()]
    signals = {signal for detector in of_standard for signal in detector.needs}
    assert sum(shares[detector]["shared"] for detector in of_standard) == pytest.approx(len(signals) / 11, rel=1e-3)
    cross_validation = next(d for d in line_up.detectors if isinstance(d.training, CrossValidation))
    # Its ten seconds of steps are 40 epochs of standard training, of which a run has 30; cross-entropy takes a tenth.
    assert shares[cross_validation]["alone"] == pytest.approx(11 / (1.1 * 10 * 30 / 40), rel=1e-3)
    linc = next(d for d in line_up.detectors if isinstance(d.training, LiNCRecipe))
    assert shares[linc]["alone"] == 0.0


def test_private_memory_has_no_pages_of_mapped_files(tmp_path: Path) -> None:
    """In a new process, whose allocator holds no freed memory that it could use again."""
    (tmp_path / "file").write_bytes(bytes(50_000_000))
    script = """
import sys
import numpy as np
from benchmark.overhead.memory import private_bytes
before = private_bytes()
mapped = np.memmap(sys.argv[1], mode="r")
assert mapped.sum() == 0
assert private_bytes() - before < 10e6
own = np.ones(50_000_000, dtype=np.uint8)
assert private_bytes() - before > 40e6
"""
    subprocess.run([sys.executable, "-c", script, tmp_path / "file"], check=True)


def test_the_peak_of_memory_is_seen_while_it_lasts() -> None:
    kept = np.ones(10_000_000)
    del kept  # what an allocator still holds of it does not count as being there
    with peak_memory() as peak:
        block = np.ones(20_000_000)  # 160 MB
        time.sleep(0.05)
        del block
    assert 150e6 < peak.added < 250e6


LAWS = [
    ("LiNC", "seconds", "samples", 1e-6, 1.0),
    ("LiNC", "seconds", "classes", 1e-3, 0.5),
    ("LiNC", "seconds", "epochs", 1e-3, 2.0),
    ("LiNC", "bytes", "samples", 73, 1.0),
    ("LiNC", "bytes beyond the record", "samples", 20, 1.0),
    ("LiNC's own state", "seconds", "samples", 1e-6, 1.0),
    ("AUM", "seconds", "samples", 1e-7, 1.1),
]
GROWTH = [
    {"axis": axis, "samples": 1000, "classes": 8, "epochs": 11, "quantity": quantity, "detector": name}
    | {axis: value, "added": scale * value**power, "baseline": 1.0, "recorded_bytes": 53 * value}
    for name, quantity, axis, scale, power in LAWS
    for value in (16_000, 32_000, 64_000, 128_000)
]
IMAGENET = [
    {"axis": "ImageNet", "samples": 1_281_167, "classes": 1000, "epochs": epochs, "quantity": quantity}
    | {"detector": name, "added": added, "baseline": 1.0, "recorded_bytes": 0}
    for quantity, name, added, epochs in [
        ("seconds", "LiNC's own state", 12.3, 3),
        ("bytes", "LiNC's own state", 45e6, 3),
        ("disk", "LiNC", 3.7e8, 70),
        ("disk", "AUM", 3.6e11, 70),
    ]
]


def test_exponents_and_slopes_are_those_of_the_law_behind_the_rows() -> None:
    table = growth_table(pd.DataFrame(GROWTH + IMAGENET)).set_index("detector")
    exponents = table.loc["LiNC", ["by samples", "by classes", "by epochs"]]
    assert list(exponents) == ["1.00 ± 0.00", "0.50 ± 0.00", "2.00 ± 0.00"]
    assert table.loc["AUM", "by samples"] == "1.10 ± 0.00"
    assert table.loc["LiNC", "bytes per sample"] == "20.0", "beyond the record"
    assert table.loc["LiNC", "recorded per sample"] == "53.0"
    assert table.loc["AUM", "by classes"] == "–"
    with_constant = pd.DataFrame(GROWTH).assign(added=lambda rows: rows["added"] + 3e6)
    grown = growth_table(with_constant[with_constant["quantity"] != "seconds"]).set_index("detector")
    assert grown.loc["LiNC", "memory by samples"] == "1.00 ± 0.00", "what every size needs alike is not growth"
    few = pd.DataFrame(GROWTH[:2])
    assert exponent(few, "samples") == "–"


def test_the_note_on_imagenet_has_the_measured_numbers() -> None:
    note = imagenet_note(pd.DataFrame(IMAGENET))
    assert "1,281,167 samples" in note
    assert "12 s" in note
    assert "45.0 MB" in note
    assert "70 epochs" in note


def profile(results: Path, data: Path, path: str) -> None:
    """With as few processes as possible, by the command."""
    own = results.parent / "low_margin.py"
    own.write_text(OWN_DETECTOR)
    options = ["--dataset", str(data), "--image-size", "32", "--epochs", "2", "--samples", "64", "--path", path]
    names = ("LiNC", "mean loss", f"{own}:WorstMargin")
    chosen = [word for name in names for word in ("--detector", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiling, "MEMORY_ROUNDS", 1)
        patch.setattr(profiling, "MORE_SAMPLES", 1)
        patch.setattr(profiling, "measure_seconds", _two_rounds)
        assert main(["profile", *options, *chosen, "--results", str(results)]) == 0


def _two_rounds(setup, variants, rounds, report):
    assert rounds == 6
    return measure_seconds(setup, variants, 2, report)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory, odd_or_even: Path) -> Path:
    results = tmp_path_factory.mktemp("profile") / "results"
    profile(results, odd_or_even, "fast")
    return results


def test_profile_writes_a_row_per_detector(profiled: Path) -> None:
    rows = pd.read_csv(profiled / "overhead.csv")
    original = rows[rows["line_up"] == "original-chosen"].set_index("detector")
    assert set(original.index) == {"LiNC", "mean loss", "worst margin"}
    for part in ("objective", "recording", "scoring", "alone", "shared", "outside_clocks"):
        assert (rows[f"{part}_low"] <= rows[part]).all()
        assert (rows[part] <= rows[f"{part}_high"]).all()
    assert original.loc["LiNC", "recording"] > 0, "trust and labels are written too"
    assert original.loc["mean loss", "recording"] > 0
    assert (rows["standard_seconds"] > 0).all()
    assert rows["memory_bytes"].notna().all()
    assert rows["commit"].notna().all()


def test_profile_separates_the_terms_of_lincs_cost(profiled: Path) -> None:
    terms = pd.read_csv(profiled / "overhead_terms.csv").set_index("term")["share"]
    assert len(terms) == 5
    assert (terms[["mixture", "relabelling pass"]] == 0).all(), "two epochs do not reach them"
    assert terms["keeping trust for the record"] > 0


@pytest.mark.long
def test_a_profile_of_another_path_keeps_the_rows_of_the_first(
    profiled: Path, odd_or_even: Path, tmp_path: Path
) -> None:
    results = Path(shutil.copytree(profiled, tmp_path / "results"))
    profile(results, odd_or_even, "plain")
    rows = pd.read_csv(results / "overhead.csv")
    original = rows[rows["line_up"] == "original-chosen"]
    expected = product(("fast", "plain"), ("LiNC", "mean loss", "worst margin"))
    assert sorted(zip(original["path"], original["detector"], strict=True)) == list(expected)
    assert len(pd.read_csv(results / "overhead_terms.csv")) == 10, "five terms on each path"


def test_profile_makes_tables_figures_and_the_page(profiled: Path) -> None:
    for name in ("cost.md", "terms.md"):
        assert (profiled / "tables" / "overhead" / name).exists()
    assert (profiled / "figures" / "overhead" / "overhead_by_detector.svg").exists()
    assert "What each detector costs" in (profiled / "details.html").read_text()
    page = (profiled / "report.html").read_text()
    assert 'id="cost"' in page
    assert page.count("<svg") == len(list((profiled / "figures").rglob("*.svg")))


def test_axes_of_costs_are_in_their_unit(profiled: Path) -> None:
    """Time in % of standard training, memory in MB: a tick is labelled with where it stands."""
    rows = pd.read_csv(profiled / "overhead.csv").assign(alone=0.02, memory_bytes=3e6, memory_floor_bytes=1e6)
    rows = rows.assign(**{f"{name}_{end}": rows[name] for name in ("alone", "memory_bytes") for end in ("low", "high")})
    figure = overhead_by_detector(rows)
    for axis, value in zip(figure.axes, (2, 3), strict=True):
        drawn = np.concatenate([np.asarray(line.get_xdata(), dtype=float).ravel() for line in axis.lines])
        assert drawn[np.isfinite(drawn)] == pytest.approx(value)
        assert axis.xaxis.get_major_formatter()(value, 0) == f"{value}"
    plt.close(figure)


def test_figures_are_drawn_with_the_same_bytes(profiled: Path, tmp_path: Path) -> None:
    growth = pd.DataFrame(GROWTH + IMAGENET)
    costs = pd.read_csv(profiled / "overhead.csv")
    metrics = pd.DataFrame(
        about_run("digits", 300, 0.2, seed, "standard")
        | {"line_up": "original", "detector": name, "auroc": 0.9, "status": "ok", "backbone": costs["backbone"].iloc[0]}
        for name in costs["detector"]
        for seed in (0, 1)
    )
    tables = {"overhead": costs, "overhead_growth": growth, "metrics": metrics}
    once, again = ([drawing.render(False) for drawing in overhead_drawings(tables.__getitem__)] for _ in range(2))
    assert once == again
    assert [name for files in once for name in files] == [f"{name}.svg" for name in CAPTIONS]
    nothing = ResultsFolder(tmp_path / "nothing")
    assert not list(overhead_drawings(lambda name: read_table(nothing, name)))
    assert overhead_groups(lambda name: read_table(nothing, name)) == {}


def test_quality_is_that_of_the_leaderboard_and_the_front_is_what_nothing_cheaper_beats() -> None:
    """VoG was measured on one of two data sets only: it is drawn as such, and no part of the front."""
    quality = {"random": 0.5, "AUM": 0.9, "LiNC": 0.95, "EL2N": 0.93, "VoG": 0.7}
    unprofiled = {"combined": 0.97, "FINE": 0.6}
    costs = pd.DataFrame(
        {
            "dataset": "digits",
            "line_up": "original",
            "path": "fast",
            "backbone": "tf_efficientnet_lite0",
            "image_size": 64,
            "epochs": 30,
        }
        | {"batch_size": 64, "detector": name, "alone": alone}
        for name, alone in {"random": 1e-4, "AUM": 0.004, "LiNC": 0.02, "EL2N": 0.27, "VoG": 0.7}.items()
    )
    metrics = pd.DataFrame(
        about_run(dataset, 300, 0.2, 0, "standard")
        | {"line_up": "original", "detector": name, "auroc": auroc - 0.1 * (dataset == "bloodmnist"), "status": "ok"}
        for dataset in ("digits", "bloodmnist")
        for name, auroc in (quality | unprofiled).items()
        if (name, dataset) != ("VoG", "bloodmnist")
    )
    ((title, where, points),) = _quality_and_cost(costs, metrics)
    assert title.startswith("BloodMNIST, digits: EfficientNet-Lite0")
    assert where == ", measured on digits\nCost not measured: combined and FINE", "the best first"
    expected = {name: auroc if name == "VoG" else auroc - 0.05 for name, auroc in quality.items()}
    assert points["auroc"].to_dict() == pytest.approx(expected)
    assert points.index[~points["in_all"].astype(bool)].tolist() == ["VoG"]
    assert list(pareto_front(points).index) == ["random", "AUM", "LiNC"]
    figure = quality_against_cost(costs, metrics)
    assert figure is not None
    assert {text.get_text() for text in figure.axes[0].texts} == set(quality)
    plt.close(figure)
    assert quality_against_cost(costs.assign(backbone="another"), metrics) is None


def test_too_few_rounds_are_refused_with_a_reason(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "--rounds is 3; it must be from 6" in fails("profile", "--rounds", "3", "--results", tmp_path)


def test_a_study_without_detectors_is_refused_before_anything_is_done(
    fails: Callable[..., str], tmp_path: Path
) -> None:
    said = fails("profile", "paper-accuracy", "--results", tmp_path / "results")
    assert "scores no detectors. Name some with --detector" in said
    assert not (tmp_path / "results").exists()


def test_costs_of_two_data_sets_of_one_name_are_not_mixed_up(
    profiled: Path, odd_or_even: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    results = Path(shutil.copytree(profiled, tmp_path / "results"))
    before = (results / "overhead.csv").read_bytes()
    with np.load(odd_or_even) as arrays:
        fewer = {key: array[:150] for key, array in arrays.items()}
    np.savez(other := tmp_path / "odd_or_even.npz", **fewer)
    chosen = ("--detector", "AUM", "--batch-size", "32")
    for command in ("profile", "run"):
        said = fails(command, *chosen, "--dataset", other, "--results", results)
        assert "another data set called 'odd_or_even' (study overhead, 1,200 training samples)" in said
    both = ("--dataset", odd_or_even, "--dataset", other)
    assert "both are called 'odd_or_even'" in fails("profile", *chosen, *both, "--results", tmp_path / "new")
    assert (results / "overhead.csv").read_bytes() == before


def test_growth_says_what_it_does_not_listen_to(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "leave --detector" in fails("profile", "--growth", "--detector", "AUM", "--results", tmp_path)


def test_what_a_signal_needs_is_what_it_takes(tmp_path: Path) -> None:
    """Plans and the table for ImageNet rely on it; only an embedding's size depends on the network."""
    bench = small(tmp_path)
    for detector in DETECTORS:
        variant = variant_for([detector])
        record = bench.run(variant, tmp_path / detector.name).record
        for signal in without_parts(variant.signals):
            if signal.kind not in ("embedding", "trust_mixture"):
                assert signal.bytes_needed(bench.shape) == record.arrays[signal.key].nbytes, signal.key


@pytest.mark.long
def test_growth_is_measured_point_by_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes, every kind of row; a second call replaces the rows of the first."""
    monkeypatch.setattr(growth, "STATE", (Point("samples", 400, 4, 3), Point(growth.IMAGENET, 300, 5, 3)))
    monkeypatch.setattr(growth, "SECONDS", (Point("samples", 300, 4, 3),))
    monkeypatch.setattr(growth, "BYTES", (Point("samples", 300, 4, 3),))
    monkeypatch.setattr(growth, "DETECTORS", tuple(map(detector_named, ("LiNC", "AUM"))))
    results = ResultsFolder(tmp_path)
    for _ in range(2):
        growth.measure_growth(results, Progress(Console(quiet=True)))
    rows = pd.read_csv(tmp_path / "overhead_growth.csv")
    assert len(rows) == 2 * 3 + 2 * 2 + 2 * 2, "own state and ImageNet; two detectors' seconds and disk; their bytes"
    beyond = rows[(rows["quantity"] == "bytes beyond the record") & (rows["detector"] == "LiNC")]["added"].iloc[0]
    whole = rows[(rows["quantity"] == "bytes") & (rows["detector"] == "LiNC")]["added"].iloc[0]
    assert beyond <= whole
    disk = rows[rows["quantity"] == "disk"].set_index("detector")["added"]
    assert disk["AUM"] == SUMMARY.itemsize * 70 * 300
    assert disk["LiNC"] == (4 * 70 + 1 + 8) * 300

"""`linc-bench reproduce`: the paper's tables and figures are listed, printed from committed rows, and planned."""

import argparse
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmark.cli.command_line import command_line, main
from benchmark.cli.overrides import Overrides, overridden
from benchmark.disk import ResultsFolder
from benchmark.networks import Backbone
from benchmark.paper.numbers import DETECTION
from benchmark.paper.targets import TARGETS
from benchmark.runs import Plan, Sources, estimate, plan_study, study_named

ROOT = Path(__file__).parents[1]
TRAINED = [name for name, target in TARGETS.items() if target.study]


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "figures", "figures")
    Path("results").mkdir()
    for table in (ROOT / "results").glob("*.csv"):
        shutil.copy(table, "results")
    return Path("results")


def test_every_table_and_figure_is_listed(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmark.cli.dry_run.estimate", lambda plan, workers: (7200.0, 3 * 10**9))
    assert main(["reproduce"]) == 0
    said = capsys.readouterr().out
    assert [line.partition(":")[0] for line in said.splitlines() if line[0] not in " `"] == list(TARGETS)
    assert said.count("needs: ") == said.count("takes: about 2.0 h and 3.0 GB of disk:") == len(TRAINED)
    for numbers in ("of its 9 numbers", "of its 11 numbers", "of its 200 numbers", "figures/paper/overview.svg"):
        assert numbers in said
    shutil.rmtree(committed)
    assert main(["reproduce"]) == 0, "a folder without committed rows"


def test_a_table_is_printed_from_the_committed_rows(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pd.read_csv(committed / "metrics.csv").query("study == 'detection' and line_up == 'original'")
    ours = rows.query("dataset == 'breastmnist' and detector == 'LiNC'")["auroc"].mean()
    assert main(["reproduce", "table1", "--committed"]) == 0
    said = capsys.readouterr().out
    assert f"{DETECTION['LiNC']:.4f}" in said
    assert f"{ours:.4f}" in said
    assert said.splitlines()[-1].startswith("Differs from the paper: ours is EfficientNet-Lite0 at 64 px; ")


def test_rows_in_the_papers_setting_are_said_to_be_so(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (committed / f"{name}.csv" for name in ("metrics", "accuracy", "runs")):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False).query("dataset == 'breastmnist'")
        rows.assign(dataset="organsmnist", backbone="vit_small_patch8_224.dino", image_size="224").to_csv(
            path, index=False
        )
    assert main(["reproduce", "table1", "--committed"]) == 0
    assert "taken to be timm's vit_small_patch8_224.dino" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("name", ["figure1", "figure2", "figure3"])
def test_a_figure_is_where_it_is_said_to_be(name: str, committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", name, "--committed"]) == 0
    paths = capsys.readouterr().out.splitlines()[0].rpartition(": ")[2].split(", ")
    assert all(Path(path).is_file() for path in paths)


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_trained_is_a_part_of_the_papers_study(name: str, tmp_path: Path) -> None:
    target, sources = TARGETS[name], Sources(ResultsFolder(tmp_path))
    whole = study_named(target.study)
    part = overridden(whole, Overrides.from_options(command_line().parse_args(target.words)))
    assert part.name == whole.name
    runs, all_runs = ({unit.run_id for unit in plan_study(study, sources).units} for study in (part, whole))
    assert runs < all_runs


def test_its_run_gets_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[argparse.Namespace] = []
    monkeypatch.setattr("benchmark.cli.studies.run", lambda options: given.append(options) or 3)
    assert main(["reproduce", "table1", "--dry-run", "--workers", "7", "--results", str(tmp_path)]) == 3
    (options,) = given
    assert (options.study, options.name, options.rates) == ("paper-auc", "paper-auc", [0.2])
    assert (options.dry_run, options.workers, options.results.root) == (True, 7, tmp_path)
    assert set(options.detectors) == set(DETECTION)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("Differs from the paper: ")
    assert "linc-bench run paper-auc --rate 0.2" in said[1]


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Did you mean 'table1'? Known: figure1, figure2, figure3, table1" in fails("reproduce", "tabel1")
    assert "results has no rows of it" in fails("reproduce", "table2", "--committed")
    assert not list(tmp_path.iterdir())


def test_figures_of_other_data_are_listed_as_such(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmark.cli.dry_run.estimate", lambda plan, workers: (7200.0, 3 * 10**9))
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.split("figure3: ")[1].splitlines()
    assert "committed: of other data (EfficientNet-Lite0 at 64 px; " in lines[3]
    assert "accuracy_curves" in lines[3]


def test_what_input_gradients_take_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def seconds(plan: Plan, workers: int) -> tuple[float, int]:
        return 3600.0 * sum(
            signal.prefix_passes(unit.shape) > 0 for unit in plan.to_train for signal in unit.signals
        ), 0

    monkeypatch.setattr("benchmark.cli.dry_run.estimate", seconds)
    assert main(["reproduce", "--results", str(tmp_path)]) == 0
    takes = [line for line in capsys.readouterr().out.splitlines() if "takes: " in line]
    assert "about 3.0 h and 0 bytes" in takes[0]
    assert "; VoG, for gradients through the whole network, about 3.0 h of it" in takes[0]
    assert not any("VoG" in line for line in takes[1:])


def test_a_network_is_timed_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Backbone] = []
    monkeypatch.setattr(estimate, "measure", lambda backbone, _: timed.append(backbone) or estimate.Cost(1, 2, 3, 4))
    results, backbone = ResultsFolder(tmp_path / "output"), Backbone("resnet18", 64)
    for folder_exists in (False, True, True):
        assert estimate.known_cost(results, backbone, False) == estimate.Cost(1, 2, 3, 4)
        results.root.mkdir(exist_ok=True) if not folder_exists else None
    assert len(timed) == 2, "nothing is written where no results are"
    (file,) = results.root.rglob("*-speed.json")
    os.utime(file, (0, 0))
    estimate.known_cost(results, backbone, False)
    assert len(timed) == 3


def test_all_missing_files_are_listed_at_once(tmp_path: Path) -> None:
    paper = plan_study(study_named("paper-accuracy"), Sources(ResultsFolder(tmp_path), data_root=tmp_path))
    said = paper.not_here_yet()
    assert said.count(f".npz into {tmp_path}") == 10
    assert "the weights of vit_small_patch8_224.dino (from timm's hub, or with --weights FILE)" in said
    assert plan_study(study_named("demo"), Sources(ResultsFolder(tmp_path))).not_here_yet() == ""

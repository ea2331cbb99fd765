"""What the READMEs say is run, word for word."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmark.cli.command_line import command_line, main
from benchmark.disk import Manifest, ResultsFolder
from benchmark.upkeep.verify import against_committed
from detectors.testing import check_detector

ROOT = Path(__file__).parent.parent
FOLDERS = ("detectors", "benchmark", "benchmark/audit", "results", "tests")
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*sorted(ROOT.glob("*.md")), *(ROOT / folder / "README.md" for folder in FOLDERS))
}
README, ALL = PAGES["README.md"], "\n".join(PAGES.values())
PYTHON = re.findall(r"```python\n(.*?)```", ALL, flags=re.DOTALL)
OWN_DETECTOR, OWN_LOSS, OWN_LOOP, OWN_ARRAYS, SLURM, AUDIT, AUDIT_ARRAYS = PYTHON


@pytest.mark.long
def test_an_audit_from_python(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "path/to/folder" / name).mkdir(parents=True)
        for number in range(25):
            pixels = generator.integers(256, size=(8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "path/to/folder" / name / f"{number}.png")
    (tmp_path / "script.py").write_text(AUDIT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "50 images are too few for an estimate" in done.stdout
    assert (tmp_path / "audits/folder/audit.html").exists()


def test_an_audit_of_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generator, labels = np.random.default_rng(0), np.arange(50) % 2
    names: dict[str, object] = {"labels": labels, "embeddings": generator.normal(size=(50, 4))}
    names |= {"probabilities": np.eye(2)[labels], "images": generator.integers(0, 256, (50, 8, 8)).astype(np.uint8)}
    monkeypatch.chdir(tmp_path)
    exec(AUDIT_ARRAYS, names)
    assert "50 images are too few for an estimate" in capsys.readouterr().out
    assert (tmp_path / "audits/mine/audit.html").exists()


def test_scoring_logits_of_ones_own() -> None:
    names: dict[str, object] = {}
    exec(OWN_ARRAYS, names)
    assert np.shape(names["scores"]) == (200,)


def test_linc_and_the_log_in_a_loop_of_ones_own() -> None:
    names: dict[str, Any] = {}
    exec(OWN_LOSS, names)
    assert names["criterion"].suspicion.shape == names["criterion"].labels.shape == (200,)
    exec(OWN_LOOP, names)
    assert names["record"].epochs == 5
    assert [scores.shape for scores in names["scores"]] == 3 * [(200,)]


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    """The README's detector, saved as it says."""
    assert len(OWN_DETECTOR.splitlines()) < 30
    path = tmp_path / "worst_margin.py"
    path.write_text(OWN_DETECTOR)
    return path


def test_the_readmes_detector_conforms(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(own_file.parent)
    from worst_margin import WorstMargin  # type: ignore[import-not-found]

    check_detector(WorstMargin())


def test_a_detector_in_its_own_file_is_scored_without_training(
    quick: tuple[str, ...], copied: Path, own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    options = ["--detector", f"{own_file}:WorstMargin", "--results", str(copied)]
    assert main([*quick, *options, "--dry-run"]) == 0
    assert "0 of 2 runs to train" in capsys.readouterr().out
    assert main([*quick, *options]) == 0
    said = capsys.readouterr().out
    assert "0 of 2 runs trained" in said
    assert "worst margin" in said
    rows = pd.read_csv(copied / "metrics.csv").set_index("detector")
    assert rows.loc["worst margin", "auroc"] > 0.6
    first = sorted((copied / "scores").rglob("worst-margin-*.npy"))
    own_file.write_text(OWN_DETECTOR.replace(".min(axis=0)", ".max(axis=0)"))
    assert main([*quick, *options]) == 0
    assert len(sorted((copied / "scores").rglob("worst-margin-*.npy"))) == 2 * len(first), "a changed file scores anew"


def test_the_readme_shows_how_the_demo_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the committed rows, to the digit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Manifest, "is_current", lambda *_: True)  # no figure is drawn
    for folder in ("results", "output"):
        Path(folder).mkdir()
        for table in (ROOT / "results").glob("*.csv"):
            shutil.copy(table, folder)
    assert main(["report", "demo"]) == 0
    runs = pd.read_csv("output/runs.csv").query("study == 'demo'")["run"]
    said = capsys.readouterr().out + against_committed(ResultsFolder(), "demo", set(runs))
    shown = README.partition("```console\n")[2].partition("```")[0]
    assert [line.split() for line in shown.splitlines()] == [line.split() for line in said.splitlines()[-6:]]


@pytest.mark.long
def test_a_clean_clone_stays_clean(
    quick: tuple[str, ...], own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of `make demo` and of `Add a detector`, on less data."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    git("clone", "--quiet", "--shared", str(ROOT), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    assert main([*quick, "--workers", "1"]) == 0
    assert main([*quick, "--workers", "1", "--detector", f"{own_file}:WorstMargin"]) == 0
    assert main(["report"]) == 0
    assert main(["status"]) == 0
    assert Path("output/report.html").exists()
    assert git("status", "--porcelain") == ""


@pytest.mark.long
def test_worker_processes_know_a_detector_from_its_own_file(
    quick: tuple[str, ...], own_file: Path, tmp_path: Path
) -> None:
    few = quick[: quick.index("--detector")]
    options = ["--epochs", "1", "--workers", "2", "--results", str(tmp_path / "results")]
    assert main([*few, *options, "--detector", f"{own_file}:WorstMargin", "--detector", "LiNC"]) == 0
    rows = pd.read_csv(tmp_path / "results" / "metrics.csv").query("line_up == 'original'")
    assert sorted(rows["detector"]) == ["LiNC", "worst margin"]
    assert (rows["status"] == "ok").all()


def test_the_readmes_slurm_cluster_asks_for_encrypted_workers_of_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no SLURM here, so no job is submitted; everything else is real."""
    from dask_jobqueue import SLURMCluster  # listens to signals, which only a main thread may

    assert len(SLURM.split("__main__")[1].splitlines()) <= 10
    scripts, commands = [], []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SLURMCluster, "adapt", lambda cluster, **jobs: scripts.append(cluster.job_script()))
    monkeypatch.setattr("benchmark.cli.main", commands.append)
    with pytest.raises(SystemExit):
        exec(SLURM, {"__name__": "__main__"})
    assert "#SBATCH -t 04:00:00" in scripts[0]
    assert "--nthreads 1" in scripts[0]
    assert "tls://" in scripts[0]
    assert "--no-dashboard" in scripts[0]
    assert "--lifetime 225m" in scripts[0], "before the job's time is up, so that nobody is blamed for it"
    assert command_line().parse_args(commands[0]).dask == "current"


def commands_shown() -> list[list[str]]:
    """The words of every command after `linc-bench`, in the order of the pages, with variables filled in."""
    found, values = [], dict[str, str]()
    for line in "\n".join(re.findall(r"```sh\n(.*?)```", ALL, flags=re.DOTALL)).replace("\\\n", " ").splitlines():
        if assigned := re.fullmatch(r'([A-Z]+)="(.*)"', line):
            values[assigned[1]] = assigned[2]
        elif shown := re.fullmatch(r"(?:.* && )?linc-bench (.*?)(?:\s+#.*)?", line):
            found.append(re.sub(r"\$([A-Z]+)", lambda name: values[name[1]], shown[1]).split())
    return found


def test_commands_in_the_readme_are_understood() -> None:
    assert len(commands_shown()) >= 40
    for words in commands_shown():
        assert command_line().parse_args(words).command  # exits on what it does not know
    with pytest.raises(SystemExit):
        command_line().parse_args(["run", "--no-such-option"])


def _decide(audit: Path) -> None:
    about = json.loads(audit.with_suffix(".json").read_text())
    samples = pd.read_csv(audit, dtype=str, keep_default_na=False)
    kept = samples[["id", "given"]].assign(audit=about["audit"], decision="keep", label=samples["given"])
    kept.to_csv("decisions.csv", index=False)


@pytest.mark.long
@pytest.mark.timeout(1800)  # some fifty commands
@pytest.mark.usefixtures("own_file")
def test_commands_in_the_readme_run(
    quick: tuple[str, ...],
    real_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those that train for long as a plan; `verify` is run by CI, costs and trials of audits by tests of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(ROOT / "results", "results", ignore=shutil.ignore_patterns("runs", "features", "scores"))
    generator, listed = np.random.default_rng(0), ["path,label,site,patient"]
    for number in range(60):
        image = Path(f"path/to/folder/{'cat' if number % 2 else 'dog'}/{number}.png")
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(256, size=(8, 8), dtype=np.uint8)).save(image)
        listed.append(f"{image},{image.parent.name},{number // 10},{number // 4}")
    Path("list.csv").write_text("\n".join(listed))
    Path("DIR").symlink_to(real_data)
    np.savetxt("raters.csv", 0.9 * np.eye(10) + 0.01, delimiter=",")
    own = ["--name", "demo", "--workers", "1", "--seed", "0"]
    assert main([*quick, *own]) == 0  # of which `report`, `status` and `pack` tell
    shutil.copy(next(Path("output/flips").iterdir()), "flips.json")
    for words in commands_shown():
        if words[0] in ("verify", "profile", "try-audit"):
            continue
        if words[0] == "apply-review":  # as a reviewer who agrees with everything
            _decide(Path(words[1]))
        trains = (words[0] == "run" and "--from-pack" not in words) or (words[0] == "reproduce" and len(words) == 2)
        capsys.readouterr()
        code = main([*words, "--dry-run"] if trains and "--dry-run" not in words else words)
        assert code == 0, (words, capsys.readouterr().err)


def test_options_that_the_readme_names_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "profile", "audit"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    known = capsys.readouterr().out
    for option in set(re.findall(r"`(--[a-z-]+)", ALL)):
        assert option in known, option


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    for link, heading in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", PAGES[page]):
        if "://" in link:
            continue
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(), flags=re.MULTILINE) if heading else []
        assert not heading or heading in [re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings]


def test_the_readme_can_be_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 250
    assert len(README.encode()) <= 20_000
    for door in ("Reproduce the paper's tables", "Add a detector", "Audit my images"):
        assert len(README.partition(f"## {door}\n")[2].partition("\n## ")[0].strip().splitlines()) <= 25, door
    answers = README.partition("<!-- results of paper, answer")[2].partition("<!-- end of paper, answer")[0]
    bullets = [line for line in answers.splitlines() if line.startswith("- ")]
    assert len(bullets) == 4
    assert all(len(bullet.split()) <= 26 for bullet in bullets), "25 words each, and the mark of a list"


def test_every_room_is_in_the_table_of_rooms() -> None:
    rooms = {path.parent.name: path.read_text() for path in (ROOT / "benchmark").glob("*/__init__.py")}
    for name, text in rooms.items():
        assert f"| `{name}/` | {text.split(chr(34) * 3)[1]} |" in PAGES["benchmark/README.md"]

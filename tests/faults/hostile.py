"""What people do to a results folder: spreadsheets that save a CSV, names that are paths, links out of a folder."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from benchmark.disk.results_folder import ResultsFolder
from benchmark.disk.schema import TABLES
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from tests.conftest import forget_own_detectors
from tests.faults.campaign import ANOTHER, Campaign, Fault, read_text
from tests.snapshot import differences, losses, snapshot


def decimal_commas(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """In the columns of numbers."""
    numbers = [name for name, kind in TABLES[table].columns.items() if kind is float]
    return rows.assign(**{name: rows[name].map(lambda cell: re.sub(r"\b\.\b", ",", cell)) for name in numbers})


def saved(separator: str, encoding: str = "utf-8", commas: bool = False, line: str = "\n") -> Callable[..., bytes]:
    def save(rows: pd.DataFrame, table: str) -> bytes:
        cells = decimal_commas(rows, table) if commas else rows
        return cells.to_csv(sep=separator, index=False, lineterminator=line).encode(encoding)

    return save


SPREADSHEETS: dict[str, Callable[[pd.DataFrame, str], bytes]] = {
    "semicolons": saved(";"),
    "semicolons and decimal commas": saved(";", "utf-8-sig", commas=True, line="\r\n"),
    "decimal commas in quotes": saved(",", commas=True),
    "a byte order mark and Windows' line ends": saved(",", "utf-8-sig", line="\r\n"),
    "tabs": saved("\t"),
    "UTF-16": saved("\t", "utf-16", line="\r\n"),
}


def spreadsheet(campaign: Campaign) -> bool:
    """The next command reads the same values, or leaves the file alone, or refuses; then the file is restored."""
    campaign.copy_of_whole()
    chance, results = campaign.chance, campaign.results
    kind, table = chance.choice(list(SPREADSHEETS)), chance.choice(sorted(results.glob("*.csv")))
    content = SPREADSHEETS[kind](read_text(table), table.stem)
    what = f"{table.name} with {kind}"
    table.write_bytes(content)
    before = snapshot(campaign.home, without=[results])
    commands = ([*campaign.quick, "--workers", "1"], [*campaign.quick, "--workers", "1", "--force"], ["report"])
    code, said = campaign.run([*chance.choice(commands), "--results", str(results)])
    assert not differences(before, snapshot(campaign.home, without=[results])), what
    for other in campaign.whole.glob("*.csv"):
        expected = read_table(ResultsFolder(campaign.whole), other.stem)
        try:
            read = read_table(ResultsFolder(results), other.stem)
        except LincBenchError:
            assert other.name == table.name, other
            assert code or table.read_bytes() == content, f"{what} was neither refused nor left alone"
            continue
        if code and other.name == table.name:
            continue
        clock = ["seconds"] if "seconds" in read else []
        pd.testing.assert_frame_equal(read.drop(columns=clock), expected.drop(columns=clock), obj=f"{other} of {what}")
    if code:
        assert table.name in said, f"the error names no file: {said}"
        kept = [path for path in results.glob("*") if path.is_file() and path.read_bytes() == content]
        assert kept, f"what was in {what} is lost"
        for path in kept:
            path.unlink()
    shutil.copy(campaign.whole / table.name, table)
    return True


PATHS = (
    "..",
    ".",
    "../precious",
    "../../precious",
    "../../../elsewhere",
    "a/../../../precious",
    "a/b",
    "./a",
    "~",
    "/",
)
MARKS = (
    "$(touch ran)",
    "`touch ran`",
    "a\nb",
    "a b/..",
    "[/bold]",
    "..\\..\\precious",
    "=cmd()",
    "x" * 300,
    "-rf",
    "\u202e",
)


def name_as_path(campaign: Campaign) -> bool:
    """A name from the command line, a cell or a file is refused or is only a name."""
    campaign.copy_of_whole()
    place = campaign.chance.choice((name_option, study_cell, dataset_file, own_detector))
    place(campaign)
    return True


def name_option(campaign: Campaign) -> None:
    name = campaign.chance.choice((*PATHS, str(campaign.home / "precious"), str(campaign.results)))
    before = snapshot(campaign.home)
    campaign.makes_report = True
    code, said = campaign.run([*campaign.quick, "--workers", "1", "--results", str(campaign.results), "--name", name])
    assert code, f"--name {name!r} was accepted"
    assert "name" in said, said
    assert not differences(before, snapshot(campaign.home)), f"--name {name!r}"


def study_cell(campaign: Campaign) -> None:
    """In every table, or in one of them only."""
    chance, results = campaign.chance, campaign.results
    name = chance.choice((*PATHS, *MARKS, str(campaign.home / "precious")))
    tables = [path for path in sorted(results.glob("*.csv")) if "study" in read_text(path)]
    for table in tables if chance.random() < 0.7 else [chance.choice(tables)]:
        rows = read_text(table)
        rows.assign(study=rows["study"].replace(ANOTHER, name)).to_csv(table, index=False)
    before = snapshot(campaign.home, without=[results])
    campaign.run(["report", "--results", str(results)])
    campaign.command()
    assert not differences(before, snapshot(campaign.home, without=[results])), f"study {name!r}"
    for table in tables:  # nothing but the name has changed
        shutil.copy(campaign.whole / table.name, table)
    shutil.rmtree(results / "tables", ignore_errors=True)
    shutil.rmtree(results / "figures", ignore_errors=True)


def one_epoch(campaign: Campaign, *options: str) -> list[str]:
    trained = ("run", "--image-size", "32", "--batch-size", "32", "--epochs", "1", "--seed", "0", "--workers", "1")
    return [*trained, "--results", str(campaign.home / "work" / "throwaway"), *options]


def dataset_file(campaign: Campaign) -> None:
    dataset = Path(campaign.quick[campaign.quick.index("--dataset") + 1])
    name = campaign.chance.choice((".", "..", "...", *MARKS))[:200].replace("/", "")
    (folder := campaign.home / "elsewhere" / "data").mkdir()
    shutil.copy(dataset, path := folder / f"{name}.npz")
    _run_apart(campaign, f"data set {name!r}", "--dataset", str(path), "--detector", "mean loss")


def own_detector(campaign: Campaign) -> None:
    name = campaign.chance.choice((*PATHS, *MARKS, str(campaign.home / "precious")))
    (file := campaign.home / "elsewhere" / "own.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n\nimport numpy as np\n\n"
        "from detectors import Detector\n\n\n@dataclass(frozen=True)\nclass Own(Detector):\n"
        f"    name: ClassVar[str] = {name!r}\n\n    @property\n    def needs(self):\n        return ()\n\n"
        "    def score(self, record):\n        return np.zeros(len(record.given_labels))\n"
    )
    dataset = campaign.quick[campaign.quick.index("--dataset") + 1]
    _run_apart(campaign, f"detector {name!r}", "--dataset", dataset, "--detector", f"{file}:Own")
    forget_own_detectors()


def _run_apart(campaign: Campaign, what: str, *options: str) -> None:
    """With a results folder of its own, since such a run is none of the whole results."""
    throwaway = campaign.home / "work" / "throwaway"
    apart = [throwaway, campaign.home / "elsewhere" / "__pycache__"]
    before = snapshot(campaign.home, without=apart)
    campaign.run(one_epoch(campaign, *options))
    assert not differences(before, snapshot(campaign.home, without=apart)), what


def link_out(campaign: Campaign) -> bool:
    """Nothing behind a link is read as ours, changed or removed."""
    campaign.copy_of_whole()
    campaign.chance.choice((linked_images, linked_images, linked_results, linked_results, linked_store))(campaign)
    return True


def linked_images(campaign: Campaign) -> None:
    """A class, or a file, that is somewhere else."""
    chance, precious = campaign.chance, campaign.home / "precious"
    images = campaign.home / "elsewhere" / "images"
    pixels = np.random.default_rng(0)
    for number in range(60):
        for folder in (images / "cat", images / "dog", precious / "patients"):
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.integers(0, 256, (8, 8), np.uint8)).save(folder / f"{number}.png")
    if chance.random() < 0.5:
        (images / "link").symlink_to(precious / "patients")
    else:
        (images / "cat" / "link.png").symlink_to(precious / "patients" / "0.png")
    commands = (
        one_epoch(campaign, "--dataset", str(images), "--detector", "mean loss"),
        ["audit", str(images), "--out", str(campaign.home / "work" / "throwaway"), "--workers", "1"],
    )
    without = [campaign.home / "work" / "throwaway"]
    before = snapshot(campaign.home, without)
    code, said = campaign.run(chance.choice(commands))
    left_out = campaign.home / "work" / "throwaway" / "unreadable.csv"  # an audit goes on without the image
    named = said if code else left_out.read_text() if left_out.exists() else ""
    assert "link" in named, f"a link out of the folder was followed: {said}"
    assert not differences(before, snapshot(campaign.home, without))


def linked_results(campaign: Campaign) -> None:
    """A folder of the results folder is somewhere else."""
    chance, results, precious = campaign.chance, campaign.results, campaign.home / "precious"
    folders = sorted(path for path in results.iterdir() if path.is_dir())
    inner = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_dir()]
    _attack_link(campaign, chance.choice(folders if chance.random() < 0.5 else inner), precious)


def linked_store(campaign: Campaign) -> None:
    """What an interrupted command leaves is deleted by the next one, but not through a link."""
    chance, results = campaign.chance, campaign.results
    folder = chance.choice(sorted((*results.glob("runs/*"), *results.glob("features/*"))))
    name = f"{chance.choice(('.partial-', '.old-'))}{folder.name}"
    _attack_link(campaign, folder.with_name(name), campaign.home / "precious")


def _attack_link(campaign: Campaign, place: Path, target: Path) -> None:
    chance, results = campaign.chance, campaign.results
    aside = campaign.home / "aside"
    if place.exists():
        place.rename(aside)
    place.symlink_to(target)
    before = snapshot(campaign.home, without=[results, aside])
    same = [*campaign.quick, "--workers", "1"]
    commands = (same, [*same, "--force"], ["features", "clean", "--all"], ["features", "clean", "--unfinished"])
    command = chance.choice((*commands, ["report"], ["doctor"], ["status"], ["features", "list"]))
    campaign.run_any([*command, "--results", str(results)])
    after = snapshot(campaign.home, without=[results, aside])
    what = f"{place.relative_to(results)} as a link, {' '.join(command[:3])}"
    assert not losses(before, after), f"{what}: {losses(before, after)}"
    shutil.rmtree(aside, ignore_errors=True)
    campaign.begin()
    campaign.copy_of_whole()


HOSTILE: dict[str, Fault] = {
    "a spreadsheet saves a CSV": spreadsheet,
    "a name that is a path": name_as_path,
    "a link out of a folder": link_out,
}

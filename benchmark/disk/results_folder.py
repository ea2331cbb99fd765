"""The layout of a results folder: the only module that joins these paths."""

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from benchmark.errors import LincBenchError

DEFAULT_RESULTS = Path("output")  # ignored by git: a clean clone stays clean
COMMITTED, COMMITTED_FIGURES = Path("results"), Path("figures")  # written only with `--results results`


def slug(text: str) -> str:
    """As part of a file's name: it may be empty, and never is `..` or hidden."""
    return re.sub(r"[^A-Za-z0-9.=_]+", "-", text).strip("-.")


@dataclass(frozen=True)
class ResultsFolder:
    root: Path = DEFAULT_RESULTS

    # Reproducible, and not committed.
    def run(self, run_id: str) -> Path:
        return self.root / "runs" / run_id

    def all_runs(self) -> list[Path]:
        """Folders of runs, those that are not finished too."""
        return sorted(self.root.glob("runs/*"))

    def all_scores(self, run_id: str) -> Path:
        return self.root / "scores" / run_id

    def scores(self, run_id: str, detector_id: str) -> Path:
        return self.all_scores(run_id) / f"{detector_id}.npy"

    @property
    def all_features(self) -> Path:
        return self.root / "features"

    def features(self, store_id: str) -> Path:
        return self.all_features / store_id

    def given_labels(self, noise_id: str) -> Path:
        return self.root / "labels" / f"{noise_id}.npz"

    def duplicates(self, dataset_id: str) -> Path:
        """Images that a data set has twice."""
        return self.root / "duplicates" / f"{dataset_id}.npz"

    def look_alikes(self, store_id: str) -> Path:
        """Images that a network takes for the same."""
        return self.root / "duplicates" / f"{store_id}-alike.npz"

    def backbone_check(self, check_id: str) -> Path:
        """What pretrained weights are worth for a data set."""
        return self.root / "checks" / f"{check_id}.npz"

    def speed(self, network_id: str) -> Path:
        """How fast this machine runs a network."""
        return self.root / "checks" / f"{network_id}-speed.json"

    def hardness(self, store_id: str) -> Path:
        """How hard each training sample is for simple classifiers of cached features."""
        return self.root / "checks" / f"{store_id}-hardness.npz"

    def answer_key(self, noise_id: str) -> Path:
        return self.root / "answers" / f"{noise_id}.npz"

    def flips(self, noise_id: str) -> Path:
        """Which labels are wrong, to be given to others."""
        return self.root / "flips" / f"{noise_id}.json"

    def running(self, run_id: str) -> Path:
        return self.root / "running" / f"{run_id}.json"

    def all_running(self) -> list[str]:
        """Runs that are marked as being trained; a killed process leaves its mark."""
        return sorted(path.stem for path in (self.root / "running").glob("*.json"))

    def failed(self, run_id: str) -> Path:
        """Why a run could not be done, until it is."""
        return self.root / "failed" / f"{run_id}.json"

    def all_failed(self) -> list[Path]:
        return sorted(self.root.glob("failed/*.json"))

    def log(self, run_id: str) -> Path:
        return self.root / "logs" / f"{run_id}.log"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    # The small files that are committed, and all that tables and figures read.
    def table_data(self, name: str) -> Path:
        return self.root / f"{name}.csv"

    @property
    def page(self) -> Path:
        return self.root / "report.html"

    @property
    def details(self) -> Path:
        return self.root / "details.html"

    @property
    def manifest(self) -> Path:
        """What the report wrote, and from what."""
        return self.root / "report.json"

    def tables(self, study: str) -> Path:
        return self.root / "tables" / study

    def figures(self, study: str) -> Path:
        return (COMMITTED_FIGURES if self.is_committed else self.root / "figures") / study

    @property
    def is_committed(self) -> bool:
        """Whether it is the committed one of the current folder, whose READMEs and figures are written too."""
        return self.root.resolve() == COMMITTED.resolve()

    def check(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise LincBenchError(f"The results folder {self.root} is a file. Choose a folder with --results DIR.")

    def check_exists(self) -> None:
        """For commands that only read."""
        self.check()
        if not self.root.exists():
            committed = f" (that of this repository: --results {COMMITTED})" if COMMITTED.is_dir() else ""
            raise LincBenchError(
                f"There is no results folder {self.root}. Name another with --results DIR{committed}, or make results "
                "with: linc-bench run demo"
            )

    def prepare(self, option: str = "--results DIR") -> None:
        """Fails early where nothing could be written later; `option` names another folder."""
        self.check()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise LincBenchError(
                f"The folder {self.root} cannot be written to ({error.strerror}). Choose another with {option}, or "
                "fix its permissions."
            ) from error

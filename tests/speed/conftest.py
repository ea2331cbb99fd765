"""What `make bench` measures is compared with the committed figures, as ratios within one run: on any machine.

results/speed.csv has times per image, each beside what it is compared with. results/baseline.csv has everything else,
in units of a yardstick that is timed at once afterwards, or as a share of standard training. A ratio twice as bad as
the committed one fails. New rows are added; with `make bench UPDATE=1` a successful run replaces the others too.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RESULTS = Path(__file__).parents[2] / "results"
KEY = ["what", "model"]
COLUMNS = {
    "speed": [*KEY, "milliseconds", "ratio", "against"],
    "baseline": [*KEY, "milliseconds", "ratio", "against"],
}
TIMES_WORSE = 2.0
Note = Callable[..., None]
_rows: dict[str, list[dict[str, str]]] = {name: [] for name in COLUMNS}


@pytest.fixture
def note() -> Note:
    """`note(what, model, seconds, ratio, against)`: seconds per image, and how many times faster than `against`."""

    def add(what: str, model: str, seconds: float, ratio: float | None = None, against: str = "") -> None:
        shown = f"{ratio:.3g}" if ratio is not None else ""
        print(f"\n{model}: {what}: {seconds * 1e3:.4g} ms per image{f', {shown} × {against}' if shown else ''}")
        row = {"what": what, "model": model, "milliseconds": f"{seconds * 1e3:.4g}", "ratio": shown, "against": against}
        _rows["speed"].append(row)
        committed = _committed("speed", what, model, "ratio")
        if ratio is not None and committed:
            print(f"committed: {committed:.3g} ×")
            if what != "reading the features once":  # there, less is better
                assert ratio >= committed / TIMES_WORSE, f"{what}: {ratio:.3g} ×, committed {committed:.3g} ×"

    return add


@pytest.fixture
def compare() -> Note:
    """`compare(what, model, seconds)`: in yardsticks, or as the given ratio to something else; less is better."""

    def add(what: str, model: str, seconds: float, ratio: float | None = None, against: str = "the yardstick") -> None:
        ratio = seconds / yardstick() if ratio is None else ratio
        row = {"what": what, "model": model, "milliseconds": f"{seconds * 1e3:.4g}"}
        _rows["baseline"].append(row | {"ratio": f"{ratio:.4g}", "against": against})
        committed = _committed("baseline", what, model, "ratio")
        print(f"\n{model}: {what}: {seconds * 1e3:.4g} ms, {ratio:.3g} × {against}, committed {committed or '–'}")
        if committed:
            assert ratio <= committed * TIMES_WORSE, f"{what}: {ratio:.3g} × {against}, committed {committed:.3g}"

    return add


def yardstick() -> float:
    """Seconds of a fixed piece of work in numpy: sorting, exponentials and a product; the least of many."""
    generator, taken = np.random.default_rng(0), []
    numbers, matrix = generator.random(1_000_000, dtype=np.float32), generator.random((512, 512), dtype=np.float32)
    for _ in range(40):
        start = time.perf_counter()
        np.sort(numbers)
        np.exp(numbers)
        matrix @ matrix
        taken.append(time.perf_counter() - start)
    return min(taken)


def _committed(table: str, what: str, model: str, column: str) -> float | None:
    path = RESULTS / f"{table}.csv"
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS[table])
    found = rows[(rows["what"] == what) & (rows["model"] == model)][column].dropna()
    return float(found.iloc[0]) if len(found) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-figures", action="store_true", help="replace committed figures by those of this run")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus != 0:
        return
    for table, rows in _rows.items():
        if rows:
            new = pd.DataFrame(rows, columns=COLUMNS[table], dtype=str)
            _merge(RESULTS / f"{table}.csv", new, bool(session.config.getoption("--update-figures")))


def _merge(path: Path, new: pd.DataFrame, is_update: bool) -> None:
    old = pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else new[:0]
    both = pd.concat([old, new]).drop_duplicates(KEY, keep="last" if is_update else "first")
    path.parent.mkdir(exist_ok=True)
    both.sort_values(["model", "what"], kind="stable").to_csv(path, index=False, lineterminator="\n")

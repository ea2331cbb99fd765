"""Figures of `make bench` that the README shows: kept in results/speed.csv, one row per measurement."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

SPEED = Path(__file__).parents[2] / "results" / "speed.csv"
COLUMNS = ["what", "model", "milliseconds", "ratio", "against"]
Note = Callable[..., None]
_rows: list[dict[str, object]] = []


@pytest.fixture
def note() -> Note:
    """`note(what, model, seconds, ratio, against)`: seconds per image, and how many times faster than `against`."""

    def add(what: str, model: str, seconds: float, ratio: float | None = None, against: str = "") -> None:
        shown = f"{ratio:.3g}" if ratio is not None else ""
        print(f"\n{model}: {what}: {seconds * 1e3:.4g} ms per image{f', {shown} × {against}' if shown else ''}")
        row = {"what": what, "model": model, "milliseconds": f"{seconds * 1e3:.4g}", "ratio": shown, "against": against}
        _rows.append(row)

    return add


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A successful run replaces the rows that it measured."""
    if not _rows or exitstatus != 0:
        return
    new = pd.DataFrame(_rows, columns=COLUMNS, dtype=str)
    if SPEED.exists():
        old = pd.read_csv(SPEED, dtype=str, keep_default_na=False)
        measured = set(zip(new["what"], new["model"], strict=True))
        kept = [key not in measured for key in zip(old["what"], old["model"], strict=True)]
        new = pd.concat([old[kept], new])
    SPEED.parent.mkdir(exist_ok=True)
    new.sort_values(["model", "what"], kind="stable").to_csv(SPEED, index=False, lineterminator="\n")

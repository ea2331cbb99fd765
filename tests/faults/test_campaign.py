"""Faults, one of each kind here and by the hundred with `--faults 100`: nothing lost, nothing wrong.

Parts with different seeds add up: `--timeout 0 --faults 250 --faults-seed 1`, then 2, 3 and 4, are a thousand.
"""

import random
import time
from itertools import cycle, islice
from pathlib import Path

import pytest

from benchmark.runs import run_study
from tests.faults.accidents import ACCIDENTS
from tests.faults.campaign import Campaign
from tests.faults.hostile import HOSTILE
from tests.test_interruptions import Quick

pytestmark = pytest.mark.long
KINDS = ACCIDENTS | HOSTILE


def test_after_every_fault_the_results_are_those_without(
    quick: Quick, quick_run: Path, tmp_path: Path, pytestconfig: pytest.Config, record_property
) -> None:
    count, seed = pytestconfig.getoption("--faults") or len(KINDS), pytestconfig.getoption("--faults-seed")
    campaign, begun = Campaign(quick, quick_run, tmp_path, random.Random(seed)), time.monotonic()
    for kind in islice(cycle(KINDS), count):
        campaign.inject(kind, KINDS[kind])
    assert sum(campaign.injected.values()) == count
    kinds = ", ".join(f"{number} × {kind}" for kind, number in campaign.injected.items())
    seconds = time.monotonic() - begun
    record_property("told", f"{count} faults, seed {seed}, {seconds:.0f} s ({kinds}): nothing lost, nothing wrong")


def test_the_campaign_notices_damage_that_nobody_repairs(
    quick: Quick, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if checksums were not compared."""
    campaign = Campaign(quick, quick_run, tmp_path, random.Random(0))
    monkeypatch.setattr(run_study, "find_damage", lambda folder: None)
    monkeypatch.setattr(Campaign, "any_file", lambda self: next((self.results / "runs").glob("*/train_summary.npy")))
    with pytest.raises(AssertionError, match="records after flipped bit"):
        campaign.inject("flipped bit", KINDS["flipped bit"])

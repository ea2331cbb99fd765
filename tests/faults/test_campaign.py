"""Faults, one of each kind here and by the hundred with `--faults 100`: nothing lost, nothing wrong."""

import random
from itertools import cycle, islice
from pathlib import Path

import pytest

from benchmark.runs import run_study
from tests.faults.campaign import KINDS, Campaign
from tests.test_interruptions import Quick

pytestmark = pytest.mark.long


def test_after_every_fault_the_results_are_those_without(
    quick: Quick, quick_run: Path, tmp_path: Path, pytestconfig: pytest.Config, record_property
) -> None:
    count, seed = pytestconfig.getoption("--faults") or len(KINDS), pytestconfig.getoption("--faults-seed")
    campaign = Campaign(quick, quick_run, tmp_path / "results", random.Random(seed))
    for kind in islice(cycle(KINDS), count):
        campaign.inject(kind)
    assert sum(campaign.injected.values()) == count
    kinds = ", ".join(f"{number} × {kind}" for kind, number in campaign.injected.items())
    record_property("told", f"{count} faults injected ({kinds}): nothing lost, nothing wrong")


def test_the_campaign_notices_damage_that_nobody_repairs(
    quick: Quick, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if checksums were not compared."""
    campaign = Campaign(quick, quick_run, tmp_path / "results", random.Random(0))
    monkeypatch.setattr(run_study, "find_damage", lambda folder: None)
    monkeypatch.setattr(Campaign, "any_file", lambda self: next((self.results / "runs").glob("*/train_logits.npy")))
    with pytest.raises(AssertionError, match="records after flipped bit"):
        campaign.inject("flipped bit")

"""Training on features that are twice as large as the memory the system allows."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # writes and reads two gigabytes, twice

LIMIT = 10**9  # a process with torch and a ViT-S takes more than half of it before it reads a feature

CHILD = """
import sys
from pathlib import Path
import numpy as np, torch
Path(sys.argv[1], "cgroup.procs").write_text("0")
torch.set_num_threads(1)
from benchmark.networks import Backbone
from benchmark.networks.loading import untrained_backbone
from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.files import MappedRows
from benchmark.training import CrossEntropy, TrainingSettings
from benchmark.training.loop import train
model = untrained_backbone(Backbone("vit_small_patch14_dinov2", 112), 3)
shape = (2 * int(sys.argv[4]) // (66 * 384 * 2), 66, 384)
features = np.lib.format.open_memmap(sys.argv[2], "w+", np.float16, shape)
for start in range(0, shape[0], 512):
    features[start : start + 512] = np.random.default_rng(start).normal(size=(1, 66, 384))
    features.flush()
nbytes = features.nbytes
stored = np.load(sys.argv[2]) if sys.argv[3] == "read" else MappedRows(Path(sys.argv[2]), slice(None))
labels = torch.arange(shape[0]) % 3
everyone, few = LabelledFeatures(stored, labels), LabelledFeatures(stored, labels[:8])
history = train(model, TrainingData(everyone, few, few, 3), CrossEntropy(labels), [], TrainingSettings(epochs=1))
print(f"trained on {nbytes / int(sys.argv[4]):.1f} times the limit")
"""


@pytest.fixture
def limited() -> Iterator[Path]:
    """A control group of Linux whose processes, with the pages of files they map, may take LIMIT bytes together."""
    version_1 = re.search(r"^\d+:memory:(.*)$", Path("/proc/self/cgroup").read_text(), re.M) if _is_linux() else None
    root = Path(f"/sys/fs/cgroup/memory{version_1[1]}") if version_1 else Path("/sys/fs/cgroup")
    group, name = root / f"linc-bench-{os.getpid()}", "memory.limit_in_bytes" if version_1 else "memory.max"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("this user may not make a control group with a memory limit")
    try:
        if not (group / name).exists():
            pytest.skip("control groups have no memory limit here")
        (group / name).write_text(str(LIMIT))
        yield group
    finally:
        group.rmdir()


def _is_linux() -> bool:
    return Path("/proc/self/cgroup").exists()


def child(group: Path, file: Path, how: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", CHILD, str(group), str(file), how, str(LIMIT)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_store_of_twice_the_limit_trains_under_it(limited: Path, tmp_path: Path) -> None:
    ended = child(limited, tmp_path / "features.npy", "map")
    assert ended.returncode == 0, ended.stderr
    assert "2.0 times the limit" in ended.stdout


def test_the_limit_is_one(limited: Path, tmp_path: Path) -> None:
    """Whoever reads all features into memory is killed by the system."""
    assert child(limited, tmp_path / "features.npy", "read").returncode == -signal.SIGKILL

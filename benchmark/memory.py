"""The peak of a process's own memory, and of an accelerator's, while something runs.

What is counted is private memory: pages of mapped files (features, records) belong to the system, which takes them back
when it needs them. It is sampled every millisecond; where the system does not tell, the process's whole peak stands in.
"""

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

STATUS = Path("/proc/self/status")
PRIVATE = ("RssAnon", "RssShmem")
SECONDS_BETWEEN_SAMPLES = 0.001


@dataclass
class Peak:
    before: int = 0
    bytes: int = 0
    device_bytes: int = 0  # CUDA's own counter

    @property
    def added(self) -> int:
        return self.bytes - self.before


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """What is yielded is filled in at the end."""
    peak, ended = Peak(before=private_bytes()), threading.Event()

    def watch() -> None:
        while not ended.wait(SECONDS_BETWEEN_SAMPLES):
            peak.bytes = max(peak.bytes, private_bytes())

    on_cuda = torch.cuda.is_available()
    if on_cuda:
        torch.cuda.reset_peak_memory_stats()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
        peak.bytes = max(peak.bytes, private_bytes())
        peak.device_bytes = torch.cuda.max_memory_allocated() if on_cuda else 0


def private_bytes() -> int:
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    lines = (line.split() for line in STATUS.read_text().splitlines() if line.startswith(PRIVATE))
    return 1024 * sum(int(words[1]) for words in lines)

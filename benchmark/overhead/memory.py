"""The peak of a process's own memory, and of an accelerator's, while something runs.

What is counted is private memory: pages of mapped files (features, records) belong to the system, which takes them back
when it needs them. It is sampled every millisecond. Where the system does not tell, nothing is said.
"""

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

STATUS = Path("/proc/self/status")
SECONDS_BETWEEN_SAMPLES = 0.001
M_MMAP_THRESHOLD = -3  # of glibc's mallopt: blocks of so many bytes are mapped one by one


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
    """What is yielded is filled in at the end. Memory that was freed before does not count as being there."""
    _give_back()
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


def is_known() -> bool:
    return STATUS.exists()


def private_bytes() -> int:
    """Zero where the system does not tell."""
    if not is_known():
        return 0
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


def keep_nothing() -> None:
    """From now on, whatever is freed in this process goes back to the system at once, however the allocator would have
    liked to keep it: then a peak is that of memory in use, and not an accident of block sizes."""
    if is_known() and (option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        option(M_MMAP_THRESHOLD, 64 * 1024)


def _give_back() -> None:
    """What was freed before, and is kept by the allocator."""
    gc.collect()
    if is_known() and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)

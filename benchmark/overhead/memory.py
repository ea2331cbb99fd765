"""The peak of a process's private memory, and of an accelerator's, while a block of code runs.

Private memory is resident memory without pages of mapped files (features, records), which the system can take back at
any time. It is sampled every millisecond.
"""

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import torch

SECONDS_BETWEEN_SAMPLES = 0.001
M_MMAP_THRESHOLD = -3  # glibc's mallopt option: blocks of at least so many bytes are mapped one by one


@dataclass
class Peak:
    before: int
    bytes: int = 0
    device_bytes: int = 0  # CUDA's own counter

    @property
    def added(self) -> int:
        return self.bytes - self.before


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Yields a peak that is filled in at the end. Memory that was freed before is not counted as used before."""
    gc.collect()
    _call_glibc("malloc_trim", 0)
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
    """On Linux exactly the anonymous pages, in microseconds; elsewhere the closest the system reports."""
    process = psutil.Process()
    memory = process.memory_info()
    return memory.rss - memory.shared if hasattr(memory, "shared") else process.memory_full_info().uss


def return_freed_memory() -> None:
    """From now on, freed blocks go back to the system at once: a peak is memory in use, not what the allocator kept."""
    _call_glibc("mallopt", M_MMAP_THRESHOLD, 64 * 1024)


def _call_glibc(name: str, *arguments: int) -> None:
    if sys.platform == "linux" and (function := getattr(ctypes.CDLL(None), name, None)) is not None:
        function(*arguments)

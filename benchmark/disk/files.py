"""Files and folders that are written atomically, with checksums; locks; arrays on disk."""

import errno
import json
import mmap
import os
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO
from uuid import uuid4
from zipfile import BadZipFile, ZipFile

import numpy as np
from filelock import FileLock, Timeout

from benchmark.errors import LincBenchError
from benchmark.identity import Json

# What numpy, zipfile and json raise for a file that is damaged or has another format.
UNREADABLE = (
    OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, MemoryError, OverflowError,
    RuntimeError, SyntaxError, BadZipFile, TokenError, zlib.error, struct.error,
)  # fmt: skip
FILE_ERRORS = (None, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP)
CHECKSUMS = "checksums.json"
PARTIAL, OLD = ".partial-", ".old-"  # prefixes of a folder's name while it is filled, and while it is replaced
BLOCK_BYTES = 2**20
SMALL_BYTES, LARGEST_BYTES, LARGEST_RATIO = 10**9, 10**12, 100  # what a zip file may unpack to


@contextmanager
def locked(folder: Path, name: str, seconds: float = -1) -> Iterator[None]:
    """Waits for a lock at most so many seconds; the system releases it when the process that holds it dies."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / f"{name}.lock", fallback_to_soft=False).acquire(timeout=seconds)
    except Timeout:
        raise LincBenchError(f"{name} is in use by another command; wait until it has ended.") from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        raise LincBenchError(
            f"The file system of {folder} has no locks, so two commands could overwrite each other's files. Choose "
            "another with --results DIR (an audit: --out DIR), or have it mounted with locks (Lustre: -o flock)."
        ) from error
    with lock:
        yield


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yields a folder to fill; at the end it is renamed to `path`, and on an error it is deleted.

    The caller holds a lock, so that what a killed process left behind can be deleted here.
    """
    partial, old = path.with_name(f"{PARTIAL}{path.name}"), path.with_name(f"{OLD}{path.name}")
    if old.exists() and not path.exists():  # killed between the two steps below
        old.rename(path)
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        write_checksums(partial)
        for file in partial.iterdir():
            flush(file)
        flush(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if path.exists():
        path.rename(old)
    partial.rename(path)
    flush(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def remove(path: Path) -> None:
    """A file, or a folder with all it holds; of a link only the link. Nothing, if it is absent."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def is_transient(error: BaseException) -> bool:
    """Whether it says nothing about the file: the disk is unavailable, memory is full, or permission is missing."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno not in FILE_ERRORS)


def write_checksums(folder: Path) -> None:
    """Notes the size and checksum of every file, so that any damage is detected."""
    files = {file.name: _size_and_checksum(file) for file in sorted(folder.iterdir()) if file.name != CHECKSUMS}
    write_json(folder / CHECKSUMS, files)


def find_damage(folder: Path) -> str | None:
    """What is wrong with a finished folder, in words; every byte is read."""
    try:
        expected = read_json(folder / CHECKSUMS)
        changed = [name for name, known in expected.items() if _size_and_checksum(folder / name) != known]
    except UNREADABLE as error:
        if is_transient(error):
            raise
        return f"{type(error).__name__}: {error}"
    return f"{', '.join(changed)} changed since it was written" if changed else None


def _size_and_checksum(file: Path) -> dict[str, Json]:
    with _no_pipe(file).open("rb") as opened:
        return {"bytes": file.stat().st_size, "crc32": checksum(iter(lambda: opened.read(BLOCK_BYTES), b""))}


def checksum(blocks: Iterable[bytes]) -> str:
    """A cyclic redundancy check: against accidents, not against people, and faster than a disk."""
    value = 0
    for block in blocks:
        value = zlib.crc32(block, value)
    return f"{value:08x}"


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yields a file to write; at the end it is renamed to `path`, and on an error it is deleted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().int}")  # processes of two machines may have one number
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_json(path: Path) -> Json:
    """A file that is not there, or damaged, is one of `UNREADABLE`, as is a key that its value lacks."""
    return json.loads(_no_pipe(path).read_bytes())


def _no_pipe(path: Path) -> Path:
    """Before it is opened: that would wait for whoever writes into a pipe, and a device may never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Not a file but a folder, a pipe or a device", str(path))
    return path


def write_json(path: Path, value: Json) -> None:
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def new_array(path: Path, shape: tuple[int, ...], dtype: np.dtype | type) -> np.memmap:
    """An array on disk to be filled. Its space is allocated now: a full disk is an error here, not a crash later."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def open_array(path: Path) -> np.ndarray:
    """A read-only, memory-mapped array."""
    with _never_unpickled(path):
        return np.load(_no_pipe(path), mmap_mode="r", allow_pickle=False)


@contextmanager
def open_arrays(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Of an .npz file, by name; each is read when it is asked for."""
    with _never_unpickled(path), np.load(_no_pipe(path), allow_pickle=False) as arrays:
        yield arrays


@contextmanager
def _never_unpickled(path: Path) -> Iterator[None]:
    """In our words, since numpy's advise to load it unsafely, also where it is only damaged."""
    try:
        yield
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"{path.name} is damaged, or has Python objects in it, which can run code and are never loaded"
        ) from error


def check_unpacked_size(path: Path) -> None:
    """Before a byte is unpacked: a small file can hold an array larger than any memory."""
    with ZipFile(path) as file:
        unpacked = sum(member.file_size for member in file.infolist())
    if unpacked > LARGEST_BYTES or unpacked > max(SMALL_BYTES, LARGEST_RATIO * path.stat().st_size):
        raise LincBenchError(
            f"{path} is refused: its {path.stat().st_size:,} bytes would unpack to {unpacked:,}, more than images or "
            "weights do."
        )


class MappedRows:
    """Rows of an array on disk, read many at a time in any order.

    All of them are announced to the system before the first is read: on a cold disk that is about twenty times faster
    than reading page by page.
    """

    def __init__(self, path: Path, window: slice) -> None:
        array = open_array(path)
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._array = np.ndarray(array.shape, array.dtype, self._map, getattr(array, "offset", 0))[window]
        self._start = self._array.ctypes.data - np.frombuffer(self._map, np.uint8).ctypes.data

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        if hasattr(self._map, "madvise"):
            size = self._array.strides[0]
            for begin in (self._start + size * rows).tolist():
                page = begin - begin % mmap.PAGESIZE
                self._map.madvise(mmap.MADV_WILLNEED, page, begin + size - page)
        return self._array[rows]


def flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

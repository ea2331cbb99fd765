"""The frozen prefix's output for a whole data set, computed once and kept on disk.

A store is a folder with `features.npy` (training images first, then validation, then test) and `store.json`. Chunks
with fixed borders are computed in any order by any number of processes and written by one; a written chunk leaves a
file with its checksum, so that an interrupted computation resumes where it stopped, to the same bytes.
"""

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.filesize import decimal

from benchmark.data.datasets import DatasetInfo
from benchmark.disk import (
    PARTIAL,
    UNREADABLE,
    MappedRows,
    checksum,
    flush,
    is_transient,
    new_array,
    open_array,
    read_json,
    remove,
    slug,
    write_checksums,
    write_json,
    write_text,
)
from benchmark.errors import LincBenchError
from benchmark.identity import digest_of, settings_of
from benchmark.networks.backbone import Backbone

if TYPE_CHECKING:
    from benchmark.networks.split_model import SplitModel

CHUNK = 128  # images
Say = Callable[[str], None]


def store_id(info: DatasetInfo, backbone: Backbone, threads: int, device: str) -> str:
    """Everything that its bytes depend on."""
    network = settings_of(replace(backbone, train_final_norm=False))
    machine = {"threads": threads, "device": device}
    digest = digest_of({"data set": info.images or info.identity, "backbone": network, **machine})
    return slug(f"{info.name}-{backbone.name}-{backbone.image_size}px-{digest}")


def open_store(folder: Path, info: DatasetInfo) -> tuple[MappedRows, MappedRows, MappedRows]:
    """The features of the three splits; a damaged store is an error that says so."""
    file, ends = folder / "features.npy", np.cumsum((0, *info.sizes)).tolist()
    try:
        if (images := len(open_array(file))) != ends[-1]:
            raise ValueError(f"{images} images instead of {ends[-1]}")
        train, validation, test = (MappedRows(file, slice(*window)) for window in pairwise(ends))
    except UNREADABLE as error:
        if is_transient(error):
            raise
        raise _unusable(folder, f"is damaged ({error})") from error
    return train, validation, test


def check_weights(folder: Path, model: "SplitModel") -> None:
    """Weights that come from a hub under a name may change behind it."""
    place = folder if folder.exists() else _partial(folder)
    try:
        weights_in_use = read_json(place / "store.json")["weights_in_use"]
    except UNREADABLE as error:
        raise _unusable(folder, f"is damaged ({error})") from error
    if weights_in_use != model.prefix_digest():
        raise _unusable(folder, "was computed with other weights than the network has now")


def _unusable(folder: Path, reason: str) -> LincBenchError:
    return LincBenchError(
        f"The feature store {folder} {reason}. Remove it with `linc-bench features clean {folder.name}` "
        "and run the same command again."
    )


def begin_store(
    folder: Path, info: DatasetInfo, backbone: Backbone, model: "SplitModel", say: Say = lambda text: None
) -> list[range]:
    """Creates the store, or finds what an earlier call left; returns the chunks of images that are missing.

    The caller holds the store's lock until it has called `finish_store`.
    """
    partial = _partial(folder)
    total = sum(info.sizes)
    if _is_resumable(partial, total):
        check_weights(folder, model)
    else:
        remove(partial)
        partial.mkdir(parents=True)
        shape, dtype = (total, *feature_shape(model, backbone)), np.dtype(backbone.feature_dtype)
        needed, free = math.prod(shape) * dtype.itemsize, shutil.disk_usage(partial).free
        numbers = " × ".join(f"{size:,}" for size in shape)
        say(f"features of {info.name}: {numbers} numbers, {decimal(needed)} ({dtype}) in {folder.parent}")
        if needed > free:
            partial.rmdir()
            raise LincBenchError(
                f"The features of {info.name} need {decimal(needed)} and the disk has {decimal(free)} left. "
                "Free some space (linc-bench features list), choose another disk with --results DIR (an audit: "
                "--out DIR), or a smaller "
                "--image-size."
            )
        new_array(partial / "features.npy", shape, dtype)
        flush(partial / "features.npy")  # before the file that says that it is there
        about = {"data set": info.name, "backbone": settings_of(backbone), "path": model.summary()}
        write_json(partial / "store.json", about | {"weights_in_use": model.prefix_digest()})
    chunks = [range(start, min(start + CHUNK, total)) for start in range(0, total, CHUNK)]
    features = open_array(partial / "features.npy")
    return [chunk for chunk in chunks if not _is_kept(partial, chunk, features)]


def _is_resumable(partial: Path, total: int) -> bool:
    try:
        return (partial / "store.json").exists() and len(open_array(partial / "features.npy")) == total
    except UNREADABLE as error:
        if is_transient(error):
            raise
        return False


def _is_kept(partial: Path, chunk: range, features: np.ndarray) -> bool:
    mark = _mark(partial, chunk)
    return mark.is_file() and mark.read_bytes() == checksum([features[chunk.start : chunk.stop].tobytes()]).encode()


def feature_shape(model: "SplitModel", backbone: Backbone) -> tuple[int, ...]:
    import torch

    device = next(model.model.parameters()).device
    with torch.no_grad():
        return tuple(model.cached(torch.zeros(1, 3, backbone.image_size, backbone.image_size, device=device)).shape[1:])


def keep_chunk(folder: Path, chunk: range, values: np.ndarray) -> None:
    """By one process for all: chunks share pages, which a network file system writes back whole."""
    partial = _partial(folder)
    features = np.lib.format.open_memmap(partial / "features.npy", mode="r+")
    features[chunk.start : chunk.stop] = values
    features.flush()
    write_text(_mark(partial, chunk), checksum([values.tobytes()]))


def finish_store(folder: Path) -> None:
    partial = _partial(folder)
    shutil.rmtree(partial / "done", ignore_errors=True)
    write_checksums(partial)
    partial.rename(folder)


def stores_in(folder: Path) -> list[Path]:
    """Every store, finished or not, by the name it has when it is finished; nothing that has another name or shape."""
    names = {
        path.name.removeprefix(PARTIAL)
        for path in (folder.iterdir() if folder.exists() else ())
        if path.name.startswith(PARTIAL) or any((path / file).exists() for file in ("store.json", "features.npy"))
    }
    return [folder / name for name in sorted(names) if name and name == slug(name)]


def store_bytes(folder: Path) -> int:
    """Of a linked store none, since removing it frees none."""
    files = [part / "features.npy" for part in (folder, _partial(folder)) if not part.is_symlink()]
    return sum(file.stat().st_size for file in files if file.exists())


def remove_store(folder: Path) -> None:
    """Finished or not; the caller holds its lock."""
    for part in (folder, _partial(folder)):
        remove(part)


def _partial(folder: Path) -> Path:
    return folder.with_name(f"{PARTIAL}{folder.name}")


def _mark(partial: Path, chunk: range) -> Path:
    return partial / "done" / f"{chunk.start}-{chunk.stop}"

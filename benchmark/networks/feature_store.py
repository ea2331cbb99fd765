"""What the frozen prefix makes of a whole data set, computed once and kept on disk.

A store is a folder with `features.npy` (training images first, then validation, then test) and `store.json`. Chunks
with fixed borders are computed in any order and by any number of processes, and kept by one; a chunk that is kept
leaves a mark with its checksum, so that a killed computation goes on where it stopped, to the same bytes.
"""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.filesize import decimal
from torch import Tensor

from benchmark.data.datasets import Dataset, DatasetInfo, Images
from benchmark.disk.files import (
    PARTIAL,
    UNREADABLE,
    MappedRows,
    checksum,
    flush,
    is_transient,
    new_array,
    open_array,
    write_checksums,
    write_json,
    write_text,
)
from benchmark.disk.results_folder import slug
from benchmark.errors import LincBenchError
from benchmark.identity import Json, digest_of, settings_of
from benchmark.networks.backbones import Backbone, SplitModel, pixel_statistics
from benchmark.training.loop import TrainingSettings

BATCH = 32
CHUNK = 4 * BATCH


def store_id(info: DatasetInfo, backbone: Backbone, training: TrainingSettings) -> str:
    """Everything that its bytes depend on."""
    network = settings_of(replace(backbone, train_final_norm=False))
    machine = {"threads": training.threads, "device": training.device}
    digest = digest_of({"data set": info.images or info.identity, "backbone": network, **machine})
    return slug(f"{info.name}-{backbone.name}-{backbone.image_size}px-{digest}")


def open_store(folder: Path, info: DatasetInfo) -> tuple[MappedRows, MappedRows, MappedRows]:
    """The features of the three splits; a damaged store is an error that says so."""
    file, ends = folder / "features.npy", np.cumsum((0, *info.sizes)).tolist()
    try:
        if len(open_array(file)) != ends[-1]:
            raise ValueError(f"{len(open_array(file))} images instead of {ends[-1]}")
        train, validation, test = (MappedRows(file, slice(*window)) for window in pairwise(ends))
    except UNREADABLE as error:
        if is_transient(error):
            raise
        raise _useless(folder, f"is damaged ({error})") from error
    return train, validation, test


def check_weights(folder: Path, model: SplitModel) -> None:
    """Weights that come from a hub under a name may change behind it."""
    place = folder if folder.exists() else _partial(folder)
    if read_metadata(place)["weights_in_use"] != model.prefix_digest():
        raise _useless(folder, "was computed with other weights than the network has now")


def read_metadata(folder: Path) -> dict[str, Json]:
    """Data set, backbone, and the weights that the store was computed with."""
    try:
        return json.loads((folder / "store.json").read_text())
    except UNREADABLE as error:
        raise _useless(folder, f"is damaged ({error})") from error


def _useless(folder: Path, why: str) -> LincBenchError:
    return LincBenchError(
        f"The feature store {folder} {why}. Remove it with `linc-bench features clean {folder.name}` "
        "and run the same command again."
    )


def begin_store(
    folder: Path,
    dataset: Dataset,
    backbone: Backbone,
    model: SplitModel,
    say: Callable[[str], None] = lambda text: None,
) -> list[range]:
    """Makes room for the store, or finds what an earlier call left; returns the chunks of images that are missing.

    The caller holds the store's lock until it has called `finish_store`.
    """
    partial = _partial(folder)
    total = sum(dataset.info.sizes)
    if not _is_begun(partial, total):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        shape, dtype = (total, *feature_shape(model, backbone)), np.dtype(backbone.feature_dtype)
        needed, free = math.prod(shape) * dtype.itemsize, shutil.disk_usage(partial).free
        numbers = " × ".join(f"{size:,}" for size in shape)
        say(f"features of {dataset.info.name}: {numbers} numbers, {decimal(needed)} ({dtype}) in {folder.parent}")
        if needed > free:
            partial.rmdir()
            raise LincBenchError(
                f"The features of {dataset.info.name} need {decimal(needed)} and the disk has {decimal(free)} left. "
                "Make room (linc-bench features list), choose another disk with --results DIR, or a smaller "
                "--image-size."
            )
        new_array(partial / "features.npy", shape, dtype)
        flush(partial / "features.npy")  # before the file that says that it is there
        about = {"data set": dataset.info.name, "backbone": settings_of(backbone), "path": model.summary()}
        write_json(partial / "store.json", about | {"weights_in_use": model.prefix_digest()})
    else:
        check_weights(folder, model)
    chunks = [range(start, min(start + CHUNK, total)) for start in range(0, total, CHUNK)]
    there = open_array(partial / "features.npy")
    return [chunk for chunk in chunks if not _is_kept(partial, chunk, there)]


def _is_begun(partial: Path, total: int) -> bool:
    """By an earlier call, and there is something to go on from."""
    try:
        return (partial / "store.json").exists() and len(open_array(partial / "features.npy")) == total
    except UNREADABLE as error:
        if is_transient(error):
            raise
        return False


def _is_kept(partial: Path, chunk: range, features: np.ndarray) -> bool:
    mark = _mark(partial, chunk)
    return mark.exists() and mark.read_text() == _checksum(features[chunk.start : chunk.stop])


def feature_shape(model: SplitModel, backbone: Backbone) -> tuple[int, ...]:
    device = next(model.model.parameters()).device
    with torch.no_grad():
        return tuple(model.cached(torch.zeros(1, 3, backbone.image_size, backbone.image_size, device=device)).shape[1:])


@torch.no_grad()
def compute_chunk(chunk: range, dataset: Dataset, backbone: Backbone, model: SplitModel) -> np.ndarray:
    dtype, device, batches = np.dtype(backbone.feature_dtype), next(model.model.parameters()).device, []
    for first in chunk[::BATCH]:
        last = min(first + BATCH, chunk.stop)
        images = preprocess(_images(dataset, first, last), backbone).to(device)
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is reported below
            batch = model.cached(images).cpu().numpy().astype(dtype)
        if not np.isfinite(batch).all():
            raise LincBenchError(
                f"Features {first} to {last} of {dataset.info.name} do not fit into {dtype}. "
                "Run with --feature-dtype float32; `linc-bench features clean --unfinished` gives back the room."
            )
        batches.append(batch)
    return np.concatenate(batches)


def keep_chunk(folder: Path, chunk: range, values: np.ndarray) -> None:
    """By one process for all: chunks share pages, which a network file system writes back whole."""
    partial = _partial(folder)
    features = np.lib.format.open_memmap(partial / "features.npy", mode="r+")
    features[chunk.start : chunk.stop] = values
    features.flush()
    write_text(_mark(partial, chunk), _checksum(values))


def _checksum(values: np.ndarray) -> str:
    return checksum([values.tobytes()])


def finish_store(folder: Path) -> None:
    partial = _partial(folder)
    shutil.rmtree(partial / "done", ignore_errors=True)
    write_checksums(partial)
    partial.rename(folder)


def stores_in(folder: Path) -> list[Path]:
    """Every store, finished or not, by the name it has when it is finished."""
    names = [path.name.removeprefix(PARTIAL) for path in folder.iterdir()] if folder.exists() else []
    return [folder / name for name in sorted(set(names))]


def store_bytes(folder: Path) -> int:
    return sum((part / "features.npy").stat().st_size for part in _parts(folder) if (part / "features.npy").exists())


def remove_store(folder: Path) -> None:
    """Finished or not; the caller holds its lock."""
    for part in _parts(folder):
        shutil.rmtree(part)


def _parts(folder: Path) -> list[Path]:
    return [part for part in (folder, _partial(folder)) if part.exists()]


def _partial(folder: Path) -> Path:
    return folder.with_name(f"{PARTIAL}{folder.name}")


def _mark(partial: Path, chunk: range) -> Path:
    return partial / "done" / f"{chunk.start}-{chunk.stop}"


def _images(dataset: Dataset, start: int, stop: int) -> list[np.ndarray]:
    """Images `start` to `stop` of the splits laid end to end."""
    images: list[np.ndarray] = []
    offset = 0
    for split in dataset.splits:
        first, last = max(start - offset, 0), min(stop - offset, len(split.labels))
        if first < last:
            images.extend(split.images[first:last])
        offset += len(split.labels)
    return images


@dataclass(frozen=True)
class LiveImages:
    """The images of a split, read and preprocessed when they are asked for: what the plain path trains on."""

    images: Images
    backbone: Backbone

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return preprocess([self.images[row : row + 1][0] for row in rows.tolist()], self.backbone).numpy()


def preprocess(images: Sequence[np.ndarray], backbone: Backbone) -> Tensor:
    """8-bit images, grey or colour and of any shape, as the batch a pretrained network expects."""
    mean, deviation = pixel_statistics(backbone.name)
    return (torch.stack([_square(image, backbone.image_size) for image in images]) - mean) / deviation


def _square(image: np.ndarray, size: int) -> Tensor:
    """3 × size × size in [0, 1]; an image that is not square is squeezed, so that nothing of it is cut off."""
    pixels = torch.from_numpy(np.array(image)).float() / 255
    channels_first = pixels.permute(2, 0, 1) if pixels.ndim == 3 else pixels.expand(3, -1, -1)
    resized = F.interpolate(channels_first[None], (size, size), mode="bilinear", antialias=True, align_corners=False)
    return resized[0].clamp(0, 1)

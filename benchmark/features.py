"""The frozen prefix's output for a whole data set, computed once and kept on disk.

A store is a folder with `features.npy`, training images first, then validation, then test. A killed computation goes on
where it stopped, to the same bytes: batches have fixed borders and threads are a setting.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.backbones import Backbone, SplitModel
from benchmark.datasets import Dataset, DatasetInfo
from benchmark.errors import LincBenchError
from benchmark.identity import digest_of, settings_of
from benchmark.layout import slug
from benchmark.storage import new_array, open_array, write_json
from benchmark.training import TrainingSettings

BATCH = 64
FLUSH_EVERY = 16  # batches between two marks that a resumed computation can start from


def store_id(info: DatasetInfo, backbone: Backbone, training: TrainingSettings) -> str:
    """Everything that its bytes depend on."""
    network = settings_of(replace(backbone, train_final_norm=False))
    machine = {"threads": training.threads, "device": training.device}
    digest = digest_of({"data set": info.identity, "backbone": network, **machine})
    return slug(f"{info.name}-{backbone.name}-{backbone.image_size}px-{digest}")


@dataclass(frozen=True)
class FeatureStore:
    features: np.ndarray
    sizes: tuple[int, int, int]

    def splits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, second = self.sizes[0], self.sizes[0] + self.sizes[1]
        return self.features[:first], self.features[first:second], self.features[second:]


def open_store(folder: Path, info: DatasetInfo) -> FeatureStore:
    return FeatureStore(open_array(folder / "features.npy"), info.sizes)


def compute_store(
    folder: Path,
    dataset: Dataset,
    backbone: Backbone,
    model: SplitModel,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Fills `folder`, which appears when all is there; the caller holds its lock."""
    total = sum(dataset.info.sizes)
    partial = folder.with_name(f".partial-{folder.name}")
    mark = partial / "rows_done.json"
    done = json.loads(mark.read_text()) if mark.exists() else 0
    if done:
        features = np.lib.format.open_memmap(partial / "features.npy", mode="r+")
    else:
        partial.mkdir(parents=True, exist_ok=True)
        shape = _prefix(dataset, 0, 1, model, backbone).shape[1:]
        features = new_array(partial / "features.npy", (total, *shape), np.dtype(backbone.feature_dtype))
    for number, start in enumerate(range(done, total, BATCH), start=1):
        stop = min(start + BATCH, total)
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is reported below
            batch = _prefix(dataset, start, stop, model, backbone).cpu().numpy().astype(features.dtype)
        if not np.isfinite(batch).all():
            raise LincBenchError(
                f"Features {start} to {stop} of {dataset.info.name} do not fit into {features.dtype}. "
                "Run with --feature-dtype float32."
            )
        features[start:stop] = batch
        if number % FLUSH_EVERY == 0:
            features.flush()
            write_json(mark, stop)
        report(stop, total)
    features.flush()
    mark.unlink(missing_ok=True)
    partial.rename(folder)


@torch.no_grad()
def _prefix(dataset: Dataset, start: int, stop: int, model: SplitModel, backbone: Backbone) -> Tensor:
    device = next(model.model.parameters()).device
    images = preprocess(_images(dataset, start, stop), backbone.image_size, model.mean, model.std)
    return model.prefix(images.to(device))


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


def preprocess(images: Sequence[np.ndarray], size: int, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """8-bit images, grey or colour and of any shape, as the batch a pretrained network expects."""
    batch = torch.stack([_square(image, size) for image in images])
    return (batch - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def _square(image: np.ndarray, size: int) -> Tensor:
    """3 × size × size in [0, 1]; an image that is not square is squeezed, so that nothing of it is cut off."""
    pixels = torch.from_numpy(np.array(image)).float() / 255
    channels_first = pixels.permute(2, 0, 1) if pixels.ndim == 3 else pixels.expand(3, -1, -1)
    resized = F.interpolate(channels_first[None], (size, size), mode="bilinear", antialias=True, align_corners=False)
    return resized[0].clamp(0, 1)

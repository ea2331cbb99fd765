"""From 8-bit images of any shape to the batches that a pretrained network expects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.data.datasets import Images
from benchmark.networks.backbone import Backbone, architecture


@dataclass(frozen=True)
class LiveImages:
    """The images of a split, read and preprocessed when they are asked for: what the plain path trains on."""

    images: Images
    backbone: Backbone

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return preprocess([self.images[row : row + 1][0] for row in rows.tolist()], self.backbone).numpy()


def preprocess(images: Sequence[np.ndarray], backbone: Backbone) -> Tensor:
    """8-bit images, grey or colour and of any shape, as the batch a pretrained network expects."""
    import timm

    config = timm.get_pretrained_cfg(architecture(backbone.name))
    mean, deviation = torch.tensor(config.mean)[:, None, None], torch.tensor(config.std)[:, None, None]
    return (torch.stack([_square(image, backbone.image_size) for image in images]) - mean) / deviation


def _square(image: np.ndarray, size: int) -> Tensor:
    """3 × size × size in [0, 1]; an image that is not square is squeezed, so that nothing of it is cut off."""
    pixels = torch.from_numpy(np.array(image)).float() / 255
    channels_first = pixels.permute(2, 0, 1) if pixels.ndim == 3 else pixels.expand(3, -1, -1)
    resized = F.interpolate(channels_first[None], (size, size), mode="bilinear", antialias=True, align_corners=False)
    return resized[0].clamp(0, 1)

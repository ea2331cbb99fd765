"""Random flips and crops of live images: an option, off by default, since the paper does not say what it used."""

import torch
import torch.nn.functional as F
from torch import Tensor


def flip_and_crop(images_BCHW: Tensor, generator: torch.Generator) -> Tensor:
    """Each image mirrored or not, and moved by up to an eighth of its size; what moves in is its own mirrored edge."""
    count, size = len(images_BCHW), images_BCHW.shape[-1]
    reach = size // 8
    is_mirrored = torch.rand(count, generator=generator) < 0.5
    offsets = torch.randint(0, 2 * reach + 1, (count, 2), generator=generator).tolist()
    mirrored = torch.where(is_mirrored[:, None, None, None].to(images_BCHW.device), images_BCHW.flip(-1), images_BCHW)
    padded = F.pad(mirrored, (reach,) * 4, mode="reflect")
    return torch.stack([image[:, y : y + size, x : x + size] for image, (y, x) in zip(padded, offsets, strict=True)])

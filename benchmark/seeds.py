"""Random generators named by what they are for, so that one axis never disturbs another."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def _seed(number: int, *axis: str) -> int:
    return int.from_bytes(hashlib.sha256(repr((number, *axis)).encode()).digest()[:7], "big")


def numpy_generator(number: int, *axis: str) -> np.random.Generator:
    return np.random.default_rng(_seed(number, *axis))


def torch_generator(number: int, *axis: str) -> "torch.Generator":
    import torch

    return torch.Generator().manual_seed(_seed(number, *axis))

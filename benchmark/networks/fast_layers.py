"""Layers of torch in a form that is faster on processors, with the same mathematics.

torch multiplies matrices of single precision with MKL, which uses half of what an AMD core can do. oneDNN, which is
part of torch too, uses all of it: 266 instead of 118 GFLOP/s on one core of an EPYC 9005. A layer computes in this way
only inside `fast_layers()`, on an x86 processor and in single precision. Otherwise it is torch's own, also where torch
batches gradients over samples.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

HAS_ONEDNN = (
    platform.machine().lower() in ("x86_64", "amd64")
    and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    and hasattr(torch.ops.mkldnn, "_linear_pointwise")
)
_is_wanted: ContextVar[bool] = ContextVar("_is_wanted", default=False)


@contextmanager
def fast_layers() -> Iterator[None]:
    before = _is_wanted.set(HAS_ONEDNN)
    try:
        yield
    finally:
        _is_wanted.reset(before)


def _is_fast(inputs: Tensor, weight: Tensor) -> bool:
    is_single = inputs.dtype == weight.dtype == torch.float32
    return _is_wanted.get() and inputs.device.type == "cpu" and is_single and inputs.numel() > 0


def linear(inputs: Tensor, weight_OD: Tensor, bias_O: Tensor | None) -> Tensor:
    """As torch's function of that name."""
    if not _is_fast(inputs, weight_OD):
        return F.linear(inputs, weight_OD, bias_O)
    outputs_NO = _Linear.apply(inputs.reshape(-1, inputs.shape[-1]), weight_OD, bias_O)
    return outputs_NO.view(*inputs.shape[:-1], len(weight_OD))


def _product(one_ND: Tensor, other_OD: Tensor, bias_O: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(one_ND, other_OD, bias_O, "none", [], "")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs_ND: Tensor, weight_OD: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs_ND, weight_OD)
        return _product(inputs_ND, weight_OD, bias_O)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_NO: Tensor) -> tuple[Tensor | None, ...]:
        inputs_ND, weight_OD = ctx.saved_tensors
        gradient_NO = gradient_NO.contiguous()
        return (
            _product(gradient_NO, weight_OD.t()) if ctx.needs_input_grad[0] else None,
            _product(gradient_NO.t(), inputs_ND.t()) if ctx.needs_input_grad[1] else None,
            gradient_NO.sum(0) if ctx.needs_input_grad[2] else None,
        )


class Linear(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias)


class PointwiseConv(nn.Conv2d):
    """A 1 × 1 convolution as the linear layer over positions that it is."""

    def forward(self, images: Tensor) -> Tensor:
        return linear(images.permute(0, 2, 3, 1), self.weight.flatten(1), self.bias).permute(0, 3, 1, 2)


class DepthwiseConv(nn.Conv2d):
    """A convolution of each channel by itself, which keeps the size; torch is slow in its backward pass."""

    def forward(self, images: Tensor) -> Tensor:
        if not _is_fast(images, self.weight):
            return super().forward(images)
        return _Depthwise.apply(channels_last(images), self.weight)


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images_BCHW: Tensor, weight_CIHW: Tensor) -> Tensor:
        ctx.save_for_backward(images_BCHW, weight_CIHW)
        return _each_channel(images_BCHW, weight_CIHW)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BCHW: Tensor) -> tuple[Tensor | None, ...]:
        images_BCHW, weight_CIHW = ctx.saved_tensors
        gradient_BCHW = channels_last(gradient_BCHW)
        to_images = to_weight = None
        if ctx.needs_input_grad[0]:
            to_images = _each_channel(gradient_BCHW, weight_CIHW.flip(2, 3))
        if ctx.needs_input_grad[1]:
            to_weight = torch.empty_like(weight_CIHW)
            middle = weight_CIHW.shape[-1] // 2
            for y in range(weight_CIHW.shape[2]):
                for x in range(weight_CIHW.shape[3]):
                    (to_y, from_y), (to_x, from_x) = _overlap(y - middle), _overlap(x - middle)
                    products = gradient_BCHW[:, :, to_y, to_x] * images_BCHW[:, :, from_y, from_x]
                    to_weight[:, 0, y, x] = products.sum((0, 2, 3))
        return to_images, to_weight


def _each_channel(images_BCHW: Tensor, weight_CIHW: Tensor) -> Tensor:
    padding = weight_CIHW.shape[-1] // 2
    return F.conv2d(images_BCHW, weight_CIHW, padding=padding, groups=len(weight_CIHW))


def _overlap(shift: int) -> tuple[slice, slice]:
    """Of a row of outputs and a row of inputs that lie `shift` further on."""
    return slice(max(0, -shift), -shift if shift > 0 else None), slice(max(0, shift), shift if shift < 0 else None)


def make_fast(part: nn.Module) -> None:
    """Turns every layer of `part` that has a faster form into it; parameters and names stay what they are."""
    for module in part.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
        elif type(module) is nn.Conv2d and (module.stride, module.dilation) == ((1, 1), (1, 1)):
            size, channels = module.kernel_size, module.in_channels
            if module.padding_mode != "zeros":
                continue
            if (size, module.padding, module.groups) == ((1, 1), (0, 0), 1):
                module.__class__ = PointwiseConv
            by_channel = module.groups == channels == module.out_channels and module.bias is None
            if by_channel and (size, module.padding) == ((3, 3), (1, 1)):
                module.__class__ = DepthwiseConv


def channels_last(batch: Tensor) -> Tensor:
    """The layout in which convolutions on few positions are fastest: 0.6 instead of 1.0 ms for a step of Lite0."""
    return batch.contiguous(memory_format=torch.channels_last) if batch.ndim == 4 else batch


def keep_layout(images: Tensor) -> Tensor:
    """Its gradient will have the same layout; pooling hands back another, in which a norm takes ten times as long."""
    if _is_wanted.get() and images.requires_grad and images.ndim == 4:
        images.register_hook(channels_last)  # type: ignore[no-untyped-call]
    return images

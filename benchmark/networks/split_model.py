"""Any timm model as a frozen prefix and a trainable tail, with pretrained weights or none at all.

One rule says what is trained: the classifier and the last block or stage (timm's last `feature_info` entry), as the
paper does with its ViT. Everything else, the final norm included, keeps its pretrained values; BatchNorm keeps its
pretrained statistics. The prefix is then a constant function of the image and runs once per data set.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmark.errors import LincBenchError
from benchmark.networks.backbone import Backbone
from benchmark.networks.fast_layers import channels_last, fast_layers, keep_layout, make_fast
from benchmark.networks.last_block import ClassTokenBlock, WholeBlock

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)


@dataclass(frozen=True)
class SplitModel:
    """`tail(features(images))` equals `model(images)`; every parameter keeps its timm name in `model`."""

    model: nn.Module
    block: WholeBlock | ClassTokenBlock
    between: tuple[nn.Module, ...]  # what runs after the last stage and before the classifier's own part
    last_name: str
    is_plain: bool = False  # features are the images themselves, and the tail is the whole network

    def features(self, images: Tensor) -> Tensor:
        """What training reads: computed once and kept, unless the path is the plain one."""
        return images if self.is_plain else self.cached(images)

    def cached(self, images: Tensor) -> Tensor:
        """Whatever does not change while the tail is trained."""
        return self.block.lay_out(self.prefix(images))

    def prefix(self, images: Tensor) -> Tensor:
        """What the last block or stage would receive."""
        received: list[Tensor] = []

        def stop(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            received.append(inputs[0])
            raise _ReachedLastBlockError

        with self.block.module.register_forward_pre_hook(stop), suppress(_ReachedLastBlockError), fast_layers():
            self.model(channels_last(images))
        assert received, f"{self.last_name} never ran"  # the probe in split_model finds this out
        return received[0]

    def tail(self, features: Tensor) -> Tensor:
        """Logits; what the training loop calls."""
        if self.is_plain:
            return self.model(channels_last(features))
        with fast_layers():
            return self._head(self.block.fast(features))

    def embed(self, features: Tensor) -> Tensor:
        """What the classifier sees."""
        cached = self.cached(features) if self.is_plain else features
        with fast_layers():
            return self._head(self.block.fast(cached), pre_logits=True)

    def tail_with(self, parameters: Mapping[str, Tensor], cached: Tensor, way: str = "__call__") -> Tensor:
        """Logits with other values of the tail's parameters, by their timm names; torch can batch it over samples."""
        renamed = {f"model.{name}": tensor for name, tensor in parameters.items()}
        return functional_call(_Tail(self, way), renamed, (cached.to(next(iter(parameters.values())).dtype),))

    def _head(self, features: Tensor, **options: bool) -> Tensor:
        for module in self.between:
            features = module(features)
        return self.model.forward_head(keep_layout(features), **options)  # type: ignore[operator]

    def trained(self) -> dict[str, nn.Parameter]:
        return {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}

    def prefix_digest(self) -> str:
        """Of the layout of cached features, and of every weight and statistic that they may depend on."""
        later = {id(tensor) for module in self.between for tensor in (*module.parameters(), *module.buffers())}
        digest = hashlib.sha256(type(self.block).__name__.encode())
        for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
            if not tensor.requires_grad and id(tensor) not in later:
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def summary(self) -> str:
        count = sum(parameter.numel() for parameter in self.trained().values())
        total = sum(parameter.numel() for parameter in self.model.parameters())
        how = f"{self.last_name} runs as a whole on cached features"
        if isinstance(self.block, ClassTokenBlock):
            how = f"{self.last_name} runs for the class token alone (probed: the same logits and gradients)"
        if self.is_plain:
            how = "the whole network runs in every step"
        return (
            f"trains {self.last_name} and the classifier: {count:,} of {total:,} parameters; the rest is frozen; {how}"
        )


class _Tail(nn.Module):
    """The tail as a module, for torch's functional calls."""

    def __init__(self, split: SplitModel, way: str) -> None:
        super().__init__()
        self.model, self.split, self.block = split.model, split, getattr(split.block, way)

    def forward(self, cached: Tensor) -> Tensor:
        return self.split._head(self.block(cached))


class _ReachedLastBlockError(Exception):
    pass


def split_model(model: Any, backbone: Backbone, is_plain: bool = False) -> SplitModel:
    """Cuts the model before its last block or stage and proves on a few images that nothing changed."""
    try:
        last_name = str(model.feature_info[-1]["module"])
    except (AttributeError, IndexError, KeyError):
        raise LincBenchError(
            f"timm does not say where the last stage of {backbone.name} begins; choose another."
        ) from None
    container, device = last_name.split(".")[0], next(model.parameters()).device
    shape = (3, 3, backbone.image_size, backbone.image_size)
    images = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(device)
    try:
        with torch.no_grad():
            called = _children_in_order(model, lambda: model(images[:1]))
            later = called[called.index(container) + 1 :]
            before_head = _children_in_order(model, lambda: model.forward_features(images[:1]))
            between = tuple(getattr(model, name) for name in later if name in before_head)
            last = WholeBlock(model.get_submodule(last_name))
            constants = last.constants_besides(lambda: model(images[:1]))
            split = SplitModel(model, replace(last, constants=constants), between, last_name, is_plain)
            perturbed = _perturbed(model, [last_name, *later])
            whole, received = functional_call(model, perturbed, (images[1:],)), split.prefix(images[1:])
            if not is_plain:
                make_fast(model)
            parts = split.tail_with(perturbed, received)
    except (RuntimeError, ValueError, TypeError, AssertionError, AttributeError) as error:
        raise _unsplittable(backbone, last_name, str(error)) from error
    if not _agree(whole, parts, 1e-4):
        raise _unsplittable(backbone, last_name, "its parts in sequence do not compute what the whole does")
    _freeze_all_but_trained(split, backbone)
    if is_plain:
        return split
    by_class_token = replace(split, block=ClassTokenBlock(last.module))
    return by_class_token if _compute_the_same(split, by_class_token, perturbed, received) else split


def _perturbed(model: nn.Module, parts: list[str]) -> dict[str, Tensor]:
    """The parameters of those parts with a little noise, so that none can hide behind an initial value at which it has
    no effect: a head of zeros, a LayerScale of 1e-5, a relative position."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: parameter.detach() + 0.05 * torch.randn(parameter.shape, generator=generator).to(parameter)
        for name, parameter in model.named_parameters()
        if name.startswith(tuple(f"{part}." for part in parts))
    }


def _agree(one: Tensor, two: Tensor, tolerance: float) -> bool:
    return one.shape == two.shape and bool((one - two).abs().max() <= tolerance * one.abs().max())


def _compute_the_same(split: SplitModel, other: SplitModel, tail: Mapping[str, Tensor], received: Tensor) -> bool:
    """Do both turn what the last block receives into the same logits, with the same gradient of every parameter?

    In double precision, where rounding cannot be an excuse.
    """
    received, tail = received.cpu().double(), {name: tensor.cpu().double() for name, tensor in tail.items()}
    try:
        one, two, fast = (
            _logits_and_gradients(model, tail, model.block.lay_out(received), way)
            for model, way in ((split, "__call__"), (other, "__call__"), (other, "fast"))
        )
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError):
        return False  # not a block that can be run this way
    return all(_agree(a, b, 1e-10) and _agree(a, c, 1e-10) for a, b, c in zip(one, two, fast, strict=True))


def _logits_and_gradients(
    model: SplitModel, parameters: Mapping[str, Tensor], cached: Tensor, way: str
) -> list[Tensor]:
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in parameters.items()}
    logits = model.tail_with(leaves, cached, way)
    gradients = torch.autograd.grad(
        logits.sin().sum(), list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    return [logits.detach(), *gradients]


def _unsplittable(backbone: Backbone, last_name: str, reason: str) -> LincBenchError:
    return LincBenchError(
        f"{backbone.name} at {backbone.image_size} px cannot be cut before {last_name} ({reason}). "
        "Try another image size, or another backbone (linc-bench list backbones)."
    )


def _children_in_order(model: nn.Module, call: Callable[[], object]) -> list[str]:
    """Names of the model's direct children in the order in which `call` runs them, or runs a part of them."""
    order: dict[str, None] = {}
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if name and name.count(".") <= 1:
                child = name.split(".")[0]
                hooks.enter_context(module.register_forward_pre_hook(lambda *_, child=child: order.setdefault(child)))
        call()
    return list(order)


def _freeze_all_but_trained(split: SplitModel, backbone: Backbone) -> None:
    split.model.requires_grad_(False)
    split.block.module.requires_grad_(True)
    classifier = split.model.get_classifier()  # type: ignore[operator]
    for head in classifier if isinstance(classifier, tuple) else (classifier,):
        head.requires_grad_(True)
    if backbone.train_final_norm:
        for module in split.between:
            module.requires_grad_(isinstance(module, NORMS))

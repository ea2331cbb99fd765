"""Any timm model as a frozen prefix and a trainable tail, with pretrained weights or none at all.

One rule says what is trained: the classifier and the last block or stage (timm's last `feature_info` entry), as the
paper does with its ViT. Everything else, the final norm included, keeps its pretrained values; BatchNorm keeps its
pretrained statistics. The prefix is then a constant function of the image and runs once per data set.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmark.errors import LincBenchError, unknown_name
from benchmark.identity import file_digest
from benchmark.weights import PACKAGED, fit_state_dict, read_state_dict

# Those the studies use and those people ask for first; any other timm name works as well.
SUGGESTED = {
    "tf_efficientnet_lite0": "EfficientNet-Lite0, ImageNet; weights come with the install (default)",
    "vit_small_patch8_224.dino": "ViT-S/8, DINO on ImageNet; the paper's; weights from the hub",
    "vit_small_patch14_dinov2": "ViT-S/14, DINOv2; weights from the hub or a file",
}

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)


@dataclass(frozen=True)
class Backbone:
    """Which network, at which size, with which weights: what a run's identity has to know of it."""

    version: ClassVar[int] = 1  # raise it when splitting or preprocessing changes numbers

    name: str = "tf_efficientnet_lite0"
    image_size: int = 64
    weights: str = ""  # what weights_identity says; the plan fills it in
    train_final_norm: bool = False
    feature_dtype: str = "float16"


def check_name(name: str) -> None:
    """A timm name, with a tag of pretrained weights that timm knows or without one."""
    import timm

    if not timm.is_model(name):
        raise unknown_name("backbone", name, SUGGESTED, timm.list_models())
    try:
        timm.get_pretrained_cfg(name)
    except RuntimeError:
        raise unknown_name("backbone", name, timm.list_pretrained(f"{name.partition('.')[0]}.*")) from None


def weights_identity(name: str, weights_file: Path | None) -> str:
    """A file's digest, also for weights that come with the install; `hub` for those that timm downloads under a tag."""
    file = weights_file or PACKAGED.get(name, lambda: None)()
    if file is None:
        return "hub"
    if not file.is_file():
        raise LincBenchError(f"The weights file {file} does not exist. Check --weights.")
    return f"sha256:{file_digest(file)}"


@dataclass(frozen=True)
class SplitModel:
    """`tail(prefix(images))` equals `model(images)`; every parameter keeps its timm name in `model`."""

    model: nn.Module
    last: nn.Module
    between: tuple[nn.Module, ...]  # what runs after the last stage and before the classifier's own part
    last_name: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def prefix(self, images: Tensor) -> Tensor:
        """What the last block or stage would receive."""
        images = _channels_last(images)
        received: list[Tensor] = []

        def stop(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            received.append(inputs[0])
            raise _ReachedLastBlockError

        hook = self.last.register_forward_pre_hook(stop)
        try:
            self.model(images)
        except _ReachedLastBlockError:
            return received[0]
        finally:
            hook.remove()
        raise AssertionError(f"{self.last_name} never ran")  # the probe in split_model makes this unreachable

    def tail(self, features: Tensor) -> Tensor:
        return self.as_laid_out(_channels_last(features))

    def as_laid_out(self, features: Tensor) -> Tensor:
        """The tail without a word on memory layout, which torch's per-sample gradients cannot change."""
        return self.model.forward_head(self._after_last(features))  # type: ignore[operator]

    def embed(self, features: Tensor) -> Tensor:
        """What the classifier sees."""
        return self.model.forward_head(self._after_last(_channels_last(features)), pre_logits=True)  # type: ignore[operator]

    def tail_with(self, parameters: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """The tail with other values of its trained parameters, by their timm names."""
        renamed = {f"model.{name}": tensor for name, tensor in parameters.items()}
        return functional_call(_Tail(self), renamed, (features,))

    def _after_last(self, features: Tensor) -> Tensor:
        features = self.last(features)
        for module in self.between:
            features = module(features)
        return features

    def trained(self) -> dict[str, nn.Parameter]:
        return {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}

    def summary(self) -> str:
        count = sum(parameter.numel() for parameter in self.trained().values())
        total = sum(parameter.numel() for parameter in self.model.parameters())
        return f"trains {self.last_name} and the classifier: {count:,} of {total:,} parameters; the rest is frozen"


def _channels_last(batch: Tensor) -> Tensor:
    """The layout in which convolutions on few positions are fastest: 0.6 instead of 1.0 ms for a step of Lite0."""
    return batch.contiguous(memory_format=torch.channels_last) if batch.ndim == 4 else batch


class _Tail(nn.Module):
    """The tail as a module, for torch's functional calls."""

    def __init__(self, split: SplitModel) -> None:
        super().__init__()
        self.model, self.call = split.model, split.as_laid_out

    def forward(self, features: Tensor) -> Tensor:
        return self.call(features)


class _ReachedLastBlockError(Exception):
    pass


def load_backbone(
    backbone: Backbone, num_classes: int, weights_file: Path | None, head_seed: int, device: torch.device
) -> SplitModel:
    """The pretrained model with a fresh classifier that depends on `head_seed` alone."""
    model = _pretrained(backbone, weights_file)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(head_seed)
        model.reset_classifier(num_classes)
    return split_model(model.to(device, memory_format=torch.channels_last).eval(), backbone)


def split_model(model: Any, backbone: Backbone) -> SplitModel:
    """Cuts the model before its last block or stage and proves on two images that nothing changed."""
    try:
        last_name = str(model.feature_info[-1]["module"])
    except (AttributeError, IndexError, KeyError):
        raise LincBenchError(
            f"timm does not say where the last stage of {backbone.name} begins; choose another."
        ) from None
    device = next(model.parameters()).device
    shape = (2, 3, backbone.image_size, backbone.image_size)
    images = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(device)
    container = last_name.split(".")[0]
    try:
        with torch.no_grad():
            called = _children_in_order(model, lambda: model.forward_features(images))
            between = tuple(getattr(model, name) for name in called[called.index(container) + 1 :])
            config = model.pretrained_cfg
            split = SplitModel(
                model, model.get_submodule(last_name), between, last_name, tuple(config["mean"]), tuple(config["std"])
            )
            whole, parts = model(images), split.tail(split.prefix(images))
    except (RuntimeError, ValueError, TypeError, AssertionError, AttributeError) as error:
        raise _unsplittable(backbone, last_name, str(error)) from error
    if whole.shape != parts.shape or not torch.allclose(whole, parts, rtol=1e-4, atol=1e-5):
        raise _unsplittable(backbone, last_name, "its parts in sequence do not compute what the whole does")
    _freeze_all_but_trained(split, backbone)
    return split


def _unsplittable(backbone: Backbone, last_name: str, reason: str) -> LincBenchError:
    return LincBenchError(
        f"{backbone.name} at {backbone.image_size} px cannot be cut before {last_name} ({reason}). "
        "Try another image size, or another backbone (linc-bench list)."
    )


def _children_in_order(model: nn.Module, call: Callable[[], object]) -> list[str]:
    """Names of the model's direct children in the order in which `call` runs them, or runs a part of them."""
    order: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_: order.append(name) if name not in order else None

    hooks = [
        module.register_forward_pre_hook(note(name.split(".")[0]))
        for name, module in model.named_modules()
        if name and name.count(".") <= 1
    ]
    try:
        call()
    finally:
        for hook in hooks:
            hook.remove()
    return order


def _freeze_all_but_trained(split: SplitModel, backbone: Backbone) -> None:
    split.model.requires_grad_(False)
    split.last.requires_grad_(True)
    classifier = split.model.get_classifier()  # type: ignore[operator]
    for head in classifier if isinstance(classifier, tuple) else (classifier,):
        head.requires_grad_(True)
    if backbone.train_final_norm:
        for module in split.between:
            module.requires_grad_(isinstance(module, NORMS))


def _pretrained(backbone: Backbone, weights_file: Path | None) -> Any:
    import timm

    check_name(backbone.name)
    file = weights_file or PACKAGED.get(backbone.name, lambda: None)()
    options = _size_options(backbone)
    if file is not None:
        model = timm.create_model(backbone.name, pretrained=False, **options)
        model.load_state_dict(fit_state_dict(model, read_state_dict(file), backbone.name, file), strict=False)
        return model
    try:
        return timm.create_model(backbone.name, pretrained=True, **options)
    except Exception as error:  # the hub's client raises whatever its transport raises
        raise LincBenchError(
            f"The pretrained weights of {backbone.name} cannot be had from the hub ({type(error).__name__}). "
            "Three ways: connect to the network and run again; give a safetensors or pth file with --weights FILE; "
            "or use the backbone whose weights come with the install: --backbone tf_efficientnet_lite0 --image-size 64."
        ) from error


def untrained_backbone(backbone: Backbone, num_classes: int) -> SplitModel:
    """The same network with random weights: enough to know shapes and times, and never used for results."""
    import timm

    check_name(backbone.name)
    model = timm.create_model(backbone.name, pretrained=False, num_classes=num_classes, **_size_options(backbone))
    return split_model(model.to(memory_format=torch.channels_last).eval(), backbone)


def _size_options(backbone: Backbone) -> dict[str, int]:
    """Models with position embeddings are told their image size; timm then resamples the embeddings."""
    import timm

    config = timm.get_pretrained_cfg(backbone.name)
    return {"img_size": backbone.image_size} if config and config.fixed_input_size else {}

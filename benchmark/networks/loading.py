"""Loads a timm model, with weights from a file or the hub or with random ones for measurements, and splits it."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from torch import Tensor, nn

from benchmark.disk import check_unpacked_size
from benchmark.errors import LincBenchError
from benchmark.networks.backbone import Backbone, HeadInit, architecture, check_name, weights_path
from benchmark.networks.split_model import SplitModel, split_model


def set_up_torch(threads: int) -> None:
    """Results depend on the number of threads, and nothing else may change them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # CUDA refuses to be deterministic without it
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    # Filling memory that is never read takes a tenth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.allow_tf32 = False  # convolutions as exact as everything else


def load_backbone(
    backbone: Backbone,
    num_classes: int,
    weights_file: Path | None,
    head_seed: int,
    device: torch.device | str,
    is_plain: bool = False,
    head_init: HeadInit = "torch",
) -> SplitModel:
    """The pretrained model with a fresh classifier that depends on `head_seed` alone."""
    model = _pretrained(backbone, weights_file)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(head_seed)
        model.reset_classifier(num_classes)
        classifiers = [model.get_submodule(name) for name in _classifiers(model)]
        if head_init == "small":
            for classifier in classifiers:
                nn.init.trunc_normal_(classifier.weight, std=0.02)
                nn.init.zeros_(classifier.bias)
        if head_init == "timm":
            fresh = _create(backbone, num_classes=num_classes)
            for name, classifier in zip(_classifiers(model), classifiers, strict=True):
                classifier.load_state_dict(fresh.get_submodule(name).state_dict())
    return split_model(model.to(device, memory_format=torch.channels_last).eval(), backbone, is_plain)


def untrained_backbone(backbone: Backbone, num_classes: int, is_plain: bool = False) -> SplitModel:
    """The same network with random weights: enough to know shapes and times, and never used for results."""
    model = _create(backbone, num_classes=num_classes)
    return split_model(model.to(memory_format=torch.channels_last).eval(), backbone, is_plain)


def _create(backbone: Backbone, **options: Any) -> Any:
    import timm

    check_name(backbone.name)
    name = architecture(backbone.name)
    config = timm.get_pretrained_cfg(name)
    if config and config.fixed_input_size:  # it has position embeddings, which timm resamples
        options["img_size"] = backbone.image_size
    return timm.create_model(name, **options)


def _pretrained(backbone: Backbone, weights_file: Path | None) -> Any:
    file = weights_path(backbone.name, weights_file)
    if file is not None:
        model = _create(backbone)
        model.load_state_dict(fit_state_dict(model, read_state_dict(file), backbone.name, file), strict=False)
        return model
    if architecture(backbone.name) != backbone.name:
        raise LincBenchError(f"The weights of {backbone.name} are not on timm's hub; give their file with --weights.")
    try:
        return _create(backbone, pretrained=True)
    except LincBenchError:
        raise
    except Exception as error:  # the hub's client raises whatever its transport raises
        raise LincBenchError(
            f"The pretrained weights of {backbone.name} cannot be downloaded from the hub ({type(error).__name__}). "
            "Three ways: connect to the network and run again; give a safetensors or pth file with --weights FILE; "
            "or use the backbone whose weights come with the install: --backbone tf_efficientnet_lite0 --image-size 64."
        ) from error


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors or .pth file; a pth may hold them under `state_dict` or `model`."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            if is_zipfile(path):
                check_unpacked_size(path)
            state = torch.load(path, map_location="cpu", weights_only=True)
    except LincBenchError:
        raise
    except Exception as error:  # safetensors and torch each raise several kinds for a damaged file
        raise LincBenchError(
            f"{path} cannot be read as weights ({type(error).__name__}). "
            "Expected a .safetensors file, or a .pth that holds tensors only (it is never unpickled as code)."
        ) from error
    for wrapper in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    named = isinstance(state, dict) and all(isinstance(name, str) for name in state)
    if not named or not state or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise LincBenchError(f"{path} holds no state dict: expected names with tensors.")
    return state


def fit_state_dict(model: Any, state: dict[str, Tensor], name: str, path: Path) -> dict[str, Tensor]:
    """`state` under the model's names and shapes, classifier left out; an error names what does not fit."""
    wanted = model.state_dict()
    if not state.keys() & wanted.keys():
        state = _renamed_in_order(state, wanted)
    refused = f"{path} does not hold the weights of {name}: "
    if state.keys() & wanted.keys():
        try:
            state = _converted(state, model)
        except (RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise LincBenchError(f"{refused}timm cannot convert it ({error}).") from error
    own_head = tuple(f"{name}." for name in _classifiers(model))
    body = {key: tensor.float() for key, tensor in state.items() if not key.startswith(own_head)}
    needed = {key: tensor for key, tensor in wanted.items() if not key.startswith(own_head)}
    misfits = list(_misfits(body, needed))
    if misfits:
        more = f"; and {len(misfits) - 5} more" if len(misfits) > 5 else ""
        raise LincBenchError(
            f"{refused}{'; '.join(misfits[:5])}{more}. Check --backbone and --weights against each other."
        )
    for key, tensor in body.items():
        if not tensor.isfinite().all():
            count = f"{int((~tensor.isfinite()).sum()):,} of {tensor.numel():,}"
            raise LincBenchError(
                f"{count} numbers of {key} in {path} are not finite (NaN or infinite): the file is damaged, or its "
                "training diverged. Choose another with --weights FILE."
            )
    return body


def _classifiers(model: Any) -> tuple[str, ...]:
    names = model.pretrained_cfg["classifier"]
    return (names,) if isinstance(names, str) else tuple(names or ())


def _converted(state: dict[str, Tensor], model: Any) -> dict[str, Tensor]:
    """timm's own conversion: renames older formats and resamples position embeddings to the image size.

    It would also resample patch embeddings and attention tables of another architecture; those stay, and do not fit.
    """
    convert = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    converted = dict(convert(dict(state), model)) if convert is not None else state
    for key in state.keys() & converted.keys():
        if "pos_embed" not in key and state[key].shape != converted[key].shape:
            converted[key] = state[key]
    return converted


def _misfits(body: Mapping[str, Tensor], needed: Mapping[str, Tensor]) -> Iterator[str]:
    for key in dict.fromkeys((*needed, *body)):
        if key not in body:
            yield f"{key} is missing"
        elif key not in needed:
            yield f"{key} is not part of the model"
        elif body[key].shape != needed[key].shape:
            yield f"{key} has shape {tuple(body[key].shape)} instead of {tuple(needed[key].shape)}"


def _renamed_in_order(state: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under other names: taken only if kind (weight, bias, …) and shape agree, in order."""

    def outline(tensors: Mapping[str, Tensor]) -> list[tuple[str, torch.Size]]:
        return [(key.split(".")[-1], tensor.shape) for key, tensor in tensors.items()]

    return dict(zip(wanted, state.values(), strict=True)) if outline(state) == outline(wanted) else state

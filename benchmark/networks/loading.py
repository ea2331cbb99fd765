"""Loads a timm model with pretrained weights, or with random ones for measurements, and splits it."""

import os
from pathlib import Path
from typing import Any

import torch

from benchmark.errors import LincBenchError
from benchmark.networks.backbone import Backbone, check_name, weights_path
from benchmark.networks.split_model import SplitModel, split_model
from benchmark.networks.weights import fit_state_dict, read_state_dict


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
) -> SplitModel:
    """The pretrained model with a fresh classifier that depends on `head_seed` alone."""
    model = _pretrained(backbone, weights_file)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(head_seed)
        model.reset_classifier(num_classes)
    return split_model(model.to(device, memory_format=torch.channels_last).eval(), backbone, is_plain)


def _pretrained(backbone: Backbone, weights_file: Path | None) -> Any:
    import timm

    check_name(backbone.name)
    file = weights_path(backbone.name, weights_file)
    options = _size_options(backbone)
    if file is not None:
        model = timm.create_model(backbone.name, pretrained=False, **options)
        model.load_state_dict(fit_state_dict(model, read_state_dict(file), backbone.name, file), strict=False)
        return model
    try:
        return timm.create_model(backbone.name, pretrained=True, **options)
    except Exception as error:  # the hub's client raises whatever its transport raises
        raise LincBenchError(
            f"The pretrained weights of {backbone.name} cannot be downloaded from the hub ({type(error).__name__}). "
            "Three ways: connect to the network and run again; give a safetensors or pth file with --weights FILE; "
            "or use the backbone whose weights come with the install: --backbone tf_efficientnet_lite0 --image-size 64."
        ) from error


def untrained_backbone(backbone: Backbone, num_classes: int, is_plain: bool = False) -> SplitModel:
    """The same network with random weights: enough to know shapes and times, and never used for results."""
    import timm

    check_name(backbone.name)
    model = timm.create_model(backbone.name, pretrained=False, num_classes=num_classes, **_size_options(backbone))
    return split_model(model.to(memory_format=torch.channels_last).eval(), backbone, is_plain)


def _size_options(backbone: Backbone) -> dict[str, int]:
    """Models with position embeddings need to know the image size; timm then resamples the embeddings."""
    import timm

    config = timm.get_pretrained_cfg(backbone.name)
    return {"img_size": backbone.image_size} if config and config.fixed_input_size else {}

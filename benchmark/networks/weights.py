"""Weight files: read without running code, fitted to a timm model, refused if they belong to another one."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from torch import Tensor

from benchmark.disk import check_unpacked_size
from benchmark.errors import LincBenchError


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
    if not set(state) & set(wanted):
        state = _renamed_in_order(state, wanted)
    convert = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    if convert is not None and set(state) & set(wanted):
        state = _converted(convert, state, model, name, path)
    heads = model.pretrained_cfg["classifier"]
    own_head = tuple(f"{head}." for head in ((heads,) if isinstance(heads, str) else heads or ()))
    body = {key: tensor.float() for key, tensor in state.items() if not key.startswith(own_head)}
    needed = {key: tensor for key, tensor in wanted.items() if not key.startswith(own_head)}
    problems = (
        [f"{key} is missing" for key in needed if key not in body]
        + [f"{key} is not part of the model" for key in body if key not in needed]
        + [
            f"{key} has shape {tuple(body[key].shape)} instead of {tuple(needed[key].shape)}"
            for key in needed
            if key in body and body[key].shape != needed[key].shape
        ]
    )
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise LincBenchError(
            f"{path} does not hold the weights of {name}: {'; '.join(problems[:5])}{more}. "
            "Check --backbone and --weights against each other."
        )
    return body


def _converted(
    convert: Callable[[dict[str, Tensor], Any], dict[str, Tensor]],
    state: dict[str, Tensor],
    model: Any,
    name: str,
    path: Path,
) -> dict[str, Tensor]:
    """timm's own conversion: renames older formats and resamples position embeddings to the image size.

    It would also resample patch embeddings and attention tables of another architecture; those are not taken.
    """
    try:
        converted = convert(dict(state), model)
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise LincBenchError(
            f"{path} does not hold the weights of {name}: timm cannot convert it ({error})."
        ) from error
    for key, tensor in converted.items():
        if "pos_embed" not in key and key in state and state[key].shape != tensor.shape:
            raise LincBenchError(
                f"{path} does not hold the weights of {name}: {key} has shape {tuple(state[key].shape)} instead of "
                f"{tuple(tensor.shape)}. Check --backbone and --weights against each other."
            )
    return converted


def _renamed_in_order(state: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under other names: taken only if kind (weight, bias, …) and shape agree, in order."""

    def outline(tensors: Mapping[str, Tensor]) -> list[tuple[str, torch.Size]]:
        return [(key.split(".")[-1], tensor.shape) for key, tensor in tensors.items()]

    return dict(zip(wanted, state.values(), strict=True)) if outline(state) == outline(wanted) else state

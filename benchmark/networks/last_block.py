"""How the trained last block runs on cached features: as it is, or, where that is exact, for the class token alone.

A head that reads the class token needs only that token's output of the last block. Its query is one vector per head, so
the key projection can be folded into the query (the key bias and the norm's bias shift all of a head's scores alike and
cancel in the softmax), and the value projection can follow the pooling (the weights sum to one, so that biases pass
through). Attention is then two thin products with the cached, normalised tokens: no projection and no MLP per token.
The parameters stay timm's own, under their own names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from benchmark.networks.fast_layers import channels_last

SCRATCH_BYTES = 3 * 2**20  # tokens in full precision at a time: about what a core's own cache holds


@dataclass(frozen=True)
class WholeBlock:
    """The block or stage as timm has it, on what it would receive."""

    module: nn.Module
    constants: Mapping[str, Any] = field(default_factory=dict)  # what it is given beside the features, by name

    def constants_besides(self, call: Callable[[], object]) -> dict[str, Any]:
        """What `call` gives the block beside the features, such as rotary positions; the same for every image."""
        given: dict[str, Any] = {}
        with self.module.register_forward_pre_hook(lambda _, __, named: given.update(named), with_kwargs=True):
            call()
        return given

    def lay_out(self, received: Tensor) -> Tensor:
        """What is cached, from what the block would receive."""
        return received

    def __call__(self, features: Tensor) -> Tensor:
        """The block's output from what is cached, in operations that torch can differentiate and batch in any way."""
        return self.module(features, **self.constants)

    def fast(self, features: Tensor) -> Tensor:
        """The same for training: gradients reach the parameters only; features may have half precision."""
        return self(channels_last(features.to(next(self.module.parameters()).dtype)))


@dataclass(frozen=True)
class ClassTokenBlock:
    """A pre-norm transformer block, with or without LayerScale, of which only the class token's output is wanted.

    Whether a block is of that kind is probed, not guessed: see `split_model`.
    """

    module: Any

    def lay_out(self, received: Tensor) -> Tensor:
        """The class token as it is, then all tokens normalised: 1 + tokens rows."""
        normalised = F.layer_norm(received, received.shape[-1:], eps=self.module.norm1.eps)
        return torch.cat([received[:, :1], normalised], dim=1)

    def __call__(self, features: Tensor) -> Tensor:
        return self._run(features, _pool)

    def fast(self, features: Tensor) -> Tensor:
        return self._run(features, _PoolInCache.apply)

    def _run(self, features_BTD: Tensor, pool: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        block, attention = self.module, self.module.attn
        weight, bias = block.norm1.weight, block.norm1.bias
        heads, width = attention.num_heads, features_BTD.shape[-1]
        class_token_BD, normalised_BTD = features_BTD[:, 0].to(weight.dtype), features_BTD[:, 1:]
        query_HED, key_HED, value_HED = attention.qkv.weight.view(3, heads, -1, width)
        biases = attention.qkv.bias
        query_bias_HE, _, value_bias_HE = biases.view(3, heads, -1) if biases is not None else (0.0, 0.0, 0.0)

        query_BHE = torch.einsum("bd,hed->bhe", normalised_BTD[:, 0].to(weight.dtype) * weight + bias, query_HED)
        query_BHE = (query_BHE + query_bias_HE) * attention.scale
        folded_BHD = torch.einsum("bhe,hed->bhd", query_BHE, key_HED) * weight
        pooled_BHD = pool(folded_BHD, normalised_BTD) * weight + bias
        attended_BHE = torch.einsum("bhd,hed->bhe", pooled_BHD, value_HED) + value_bias_HE
        token_BD = class_token_BD + block.ls1(attention.proj(attended_BHE.flatten(1)))
        token_BD = token_BD + block.ls2(block.mlp(block.norm2(token_BD)))
        return token_BD[:, None]


def _pool(query_BHD: Tensor, tokens_BTD: Tensor) -> Tensor:
    """Tokens averaged by the softmax of their products with each head's query."""
    tokens_BTD = tokens_BTD.to(query_BHD.dtype)
    return (query_BHD @ tokens_BTD.transpose(1, 2)).softmax(-1) @ tokens_BTD


class _PoolInCache(torch.autograd.Function):
    """`_pool` a few images at a time, so that their tokens are widened to full precision within the processor's cache.

    On a whole batch, the widened tokens would go to memory and back four times in a step.
    """

    @staticmethod
    def forward(ctx: Any, query_BHD: Tensor, tokens_BTD: Tensor) -> Tensor:
        pooled_BHD = torch.empty_like(query_BHD)
        weights_BHT = query_BHD.new_empty(*query_BHD.shape[:2], tokens_BTD.shape[1])
        for window, tokens in _widened(tokens_BTD, query_BHD.dtype):
            weights_BHT[window] = (query_BHD[window] @ tokens.transpose(1, 2)).softmax(-1)
            torch.bmm(weights_BHT[window], tokens, out=pooled_BHD[window])
        ctx.save_for_backward(weights_BHT, tokens_BTD)
        return pooled_BHD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BHD: Tensor) -> tuple[Tensor, None]:
        weights_BHT, tokens_BTD = ctx.saved_tensors
        query_gradient_BHD = torch.empty_like(gradient_BHD, memory_format=torch.contiguous_format)
        for window, tokens in _widened(tokens_BTD, gradient_BHD.dtype):
            weights, gradient = weights_BHT[window], gradient_BHD[window] @ tokens.transpose(1, 2)
            scores_gradient = weights * (gradient - (weights * gradient).sum(-1, keepdim=True))
            torch.bmm(scores_gradient, tokens, out=query_gradient_BHD[window])
        return query_gradient_BHD, None


def _widened(tokens_BTD: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Slices of the batch with their tokens in the wanted precision, each valid until the next."""
    count, rows, width = tokens_BTD.shape
    at_once = max(1, SCRATCH_BYTES // (rows * width * dtype.itemsize)) if tokens_BTD.device.type == "cpu" else count
    scratch = tokens_BTD.new_empty((min(at_once, count), rows, width), dtype=dtype)
    for start in range(0, count, at_once):
        window = slice(start, min(start + at_once, count))
        tokens = tokens_BTD[window]
        yield window, tokens if tokens.dtype == dtype else scratch[: len(tokens)].copy_(tokens)

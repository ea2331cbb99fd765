"""Six numbers in place of a sample's logits: all that most detectors read, in 24 bytes however many classes there are.

Where digits would cancel later, the difference itself is kept: the loss instead of the log-sum-exp, and the squared
probabilities of the other classes instead of those of all. So every number is good to the last digit of its 32 bits.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

NUMBERS = ("given", "best_other", "loss", "other_squares", "entropy")
SUMMARY = np.dtype([*((name, np.float32) for name in NUMBERS), ("predicted", np.int32)])
EXACT = np.dtype([*((name, np.float64) for name in NUMBERS), ("predicted", np.int32)])  # not rounded to be stored


def summarise(logits: Any, labels: Any, dtype: np.dtype = SUMMARY) -> np.ndarray:
    """Of … × samples × classes, tensors or arrays, and the labels of the samples: … × samples.

    given, best_other: the logits of the given label and the largest other one; loss: −log p of the given label;
    other_squares: Σ p² over the other classes; entropy: −Σ p log p; predicted: the class of the largest logit.
    """
    import torch

    z = _tensor(logits)
    z = (z.cpu() if z.device.type == "mps" else z).double()  # Apple's GPUs have no double precision
    given = _tensor(labels).to(z.device).long().expand(z.shape[:-1])[..., None]
    log_p = z.log_softmax(-1)
    columns = (
        z.gather(-1, given)[..., 0],
        z.scatter(-1, given, -torch.inf).amax(-1),
        -log_p.gather(-1, given)[..., 0],
        log_p.scatter(-1, given, -torch.inf).exp().square().sum(-1),
        torch.special.entr(log_p.exp()).sum(-1),
        z.argmax(-1),
    )
    summary = np.empty(z.shape[:-1], dtype)
    for name, column in zip(SUMMARY.names or (), columns, strict=True):
        summary[name] = column.cpu().numpy()
    return summary


def _tensor(values: Any) -> "Tensor":
    import torch

    return values.detach() if isinstance(values, torch.Tensor) else torch.from_numpy(np.array(values))

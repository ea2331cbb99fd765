"""How large a run is: what its arrays' shapes depend on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RunShape:
    epochs: int
    samples: int
    classes: int

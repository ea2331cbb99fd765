"""Auditing your own data: rank labels, review them on a page, apply the review."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from benchmark.audit.run_audit import Audit


def audit(path: Path | str, out: Path | str | None = None, **options: Any) -> "Audit":
    """Ranks every label of a folder, a CSV or an .npz; `run_audit.audit` has the options."""
    from benchmark.audit import run_audit  # loads torch

    return run_audit.audit(path, out, **options)


def audit_arrays(labels: "ArrayLike", **options: Any) -> "Audit":
    """Ranks labels by held-out probabilities, embeddings or images; `from_arrays.audit_arrays` has the options."""
    from benchmark.audit import from_arrays

    return from_arrays.audit_arrays(labels, **options)

"""Auditing your own data: rank labels, review them on a page, apply the review."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.audit.from_arrays import audit_arrays as audit_arrays
    from benchmark.audit.run_audit import audit as audit


def __getattr__(name: str) -> Any:
    """`audit` and `audit_arrays`, imported when they are asked for: they load torch."""
    if name == "audit":
        from benchmark.audit.run_audit import audit

        return audit
    if name == "audit_arrays":
        from benchmark.audit.from_arrays import audit_arrays

        return audit_arrays
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

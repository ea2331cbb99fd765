"""Auditing your own data: rank labels, review them on a page, apply the review, and trials of the audit."""

from benchmark.audit.run_audit import audit

__all__ = ["audit"]

"""Data sets by name or path, and batches of labelled features."""

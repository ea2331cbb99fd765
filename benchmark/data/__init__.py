"""Data sets by name or path, label noise, and batches of labelled features."""

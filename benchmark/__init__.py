"""The harness: from a study to tables and figures, one way, one stage per module."""

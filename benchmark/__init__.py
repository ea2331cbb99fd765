"""The harness: from a study to tables and figures, one way, one stage per module."""

try:
    import resource
except ImportError:
    raise SystemExit("error: LiNC-Bench runs on Linux and macOS; on Windows, use it in WSL.") from None

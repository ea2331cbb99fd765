"""Paths as users give them, and files that are safe to open."""

from pathlib import Path

from benchmark.errors import LincBenchError


def typed_path(text: str) -> Path:
    """What somebody typed as a path; `~` is a home folder."""
    if not text.strip():
        raise LincBenchError("A path is empty; name a file or a folder, or leave its option out.")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise LincBenchError(
            f"{text} begins with the home folder of a user that this machine does not know. Write the whole path, or "
            f"./{text} for a name that begins with ~."
        ) from error


def regular_file(path: Path, called: str = "", hint: str = "Check the path.") -> Path:
    """The path, if it is one of a file. To be called before one is read: opening a pipe waits for whoever writes."""
    if not path.is_file():
        problem = "is a folder, a pipe, a socket or a device" if path.exists() else "does not exist"
        raise LincBenchError(f"{called or path} {problem}; expected a file. {hint}")
    return path

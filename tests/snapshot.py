"""What is in a folder: to show that a command left it alone."""

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """`content` is the digest of a file, the target of a link, and empty for everything else."""

    mode: int
    size: int
    changed: int  # nanoseconds
    content: str


def snapshot(folder: Path, without: Collection[Path] = ()) -> dict[str, Entry]:
    """Everything below a folder, by its path; links are not followed. `without` are folders to leave out, with theirs.

    Of folders only the mode: what is written into one that is left out changes the times of those around it.
    """
    found, left_out = {}, {os.path.abspath(path) for path in without}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if os.path.abspath(os.path.join(place, name)) not in left_out]
        for name in (*folders, *files):
            path = os.path.join(place, name)
            if os.path.abspath(path) in left_out:
                continue
            about = os.lstat(path)
            content = ""
            if stat.S_ISLNK(about.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(about.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            is_folder = stat.S_ISDIR(about.st_mode)
            times = (0, 0) if is_folder else (about.st_size, about.st_mtime_ns)
            found[os.path.relpath(path, folder)] = Entry(about.st_mode, *times, content)
    return found


def differences(before: dict[str, Entry], after: dict[str, Entry]) -> list[str]:
    """What was removed, changed or added, in words."""
    removed = [f"removed: {path}" for path in before if path not in after]
    changed = [f"changed: {path}" for path, entry in before.items() if path in after and after[path] != entry]
    return removed + changed + [f"added: {path}" for path in after if path not in before]


def losses(before: dict[str, Entry], after: dict[str, Entry]) -> list[str]:
    """What was removed or changed; adding is no loss."""
    return [text for text in differences(before, after) if not text.startswith("added")]

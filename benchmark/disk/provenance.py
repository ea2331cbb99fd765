"""The machine, libraries and code that made a result."""

import platform
import resource
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

from benchmark.disk.schema import ORIGIN
from benchmark.identity import Json

CODE = ("benchmark", "detectors")
PROCESSOR = {"model name": "", "cpu family": "family ", "model": "model "}  # in /proc/cpuinfo
NOTED_LIBRARIES = ("torch", "timm", "numpy", "scikit-learn", "scipy", "pandas", "medmnist")


def provenance(code: str | None = None) -> Json:
    """`code` is the commit that the command noted at its start; without it, that of this process."""
    peak_unit = 1 if sys.platform == "darwin" else 1024  # what getrusage counts in
    return {
        "process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * peak_unit,
        "versions": {name: version(name) for name in NOTED_LIBRARIES} | {"python": platform.python_version()},
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit() if code is None else code,
    }


def provenance_columns(about: Json | None = None) -> dict[str, Json]:
    """The same in columns, for the rows of a table: of this process, or of the run that `about` was noted for."""
    known = about or provenance()
    return {column: known[column] if column in known else known["versions"][column] for column in ORIGIN}


@cache
def machine() -> str:
    """The architecture and, where Linux tells it, the processor's model: each model rounds in its own way."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    about = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    known = [f"{words}{about[name]}" for name, words in PROCESSOR.items() if about.get(name)]
    return ", ".join([platform.machine(), *known])


@cache
def commit() -> str:
    """The last commit that changed the code, and whether there are uncommitted changes; not part of any identity.

    Git is asked once, which commands do at their start: later, the code on disk may no longer be the one that runs.
    Only the code counts: a study writes into results/ and figures/.
    """
    release = f"release {version('linc-bench')}"
    try:
        known = _git("log", "-1", "--format=%h", "--", *CODE)  # none if the repository is somebody else's
        changed = _git("status", "--porcelain", "--", *CODE)
    except OSError:  # no git on this machine
        return release
    return f"{known}-dirty" if known and changed else known or release


def _git(*arguments: str) -> str:
    """Git's answer about the project's folder, to which it writes nothing; empty where it is no repository."""
    git = ("git", "--no-optional-locks", "-C", Path(__file__).parents[2])
    return subprocess.run([*git, *arguments], capture_output=True, text=True).stdout.strip()

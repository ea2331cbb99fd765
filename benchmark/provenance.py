"""What every result carries of the machine and the code that made it."""

import platform
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from benchmark.identity import Json

NOTED_LIBRARIES = ("torch", "timm", "numpy", "scikit-learn", "scipy", "pandas", "medmnist")


def provenance() -> Json:
    return {
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "versions": {name: version(name) for name in NOTED_LIBRARIES} | {"python": platform.python_version()},
        "machine": platform.machine(),
        "commit": commit(),
    }


def commit() -> str:
    """The code's commit: noted, not part of any identity."""
    here = Path(__file__).parent
    answer = subprocess.run(["git", "-C", here, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return answer.stdout.strip() or f"release {version('linc-bench')}"

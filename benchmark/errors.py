"""The one exception that users see: what was wrong, what was expected, what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches


class LincBenchError(Exception):
    """An error the user can fix. The command line prints the message alone and exits non-zero."""


def error_message(error: BaseException) -> str:
    """In words, whatever the exception is."""
    try:
        text = str(error)
    except Exception:  # its own __str__ fails
        text = ""
    return text if isinstance(error, LincBenchError) else f"{type(error).__name__}: {text}".removesuffix(": ")


def unknown_name(kind: str, name: str, known: Iterable[str], more: Iterable[str] = ()) -> LincBenchError:
    """Lists the `known` names and the closest of all; `more` are too many to list."""
    in_lower_case = {one.lower(): one for one in sorted(known)}
    everything = {one.lower(): one for one in more} | in_lower_case
    closest = get_close_matches(name.lower(), everything, n=1, cutoff=0.5)
    hint = f" Did you mean '{everything[closest[0]]}'?" if closest else ""
    return LincBenchError(f"There is no {kind} called '{name}'.{hint} Known: {', '.join(in_lower_case.values())}.")

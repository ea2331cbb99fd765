"""What both files of fuzzing share: how many cases there are, damaged bytes, and values of any kind."""

from collections import Counter
from collections.abc import Callable
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

CASES: Counter[str] = Counter()  # of this process, which runs all tests of a file
LOADERS, COMMANDS = 11, 8  # how many tests draw cases in test_fuzz.py and in test_fuzz_commands.py
cases_in_all = 3000  # `--fuzz` says how many


def fuzz(test: Callable[..., None]) -> Callable[..., None]:
    """A test that draws its share of all cases."""
    each = ceil(cases_in_all / (LOADERS + COMMANDS))
    no_shrinking = (Phase.explicit, Phase.generate)  # a case of many seconds would be repeated a hundred times
    chosen = settings(max_examples=each, suppress_health_check=list(HealthCheck), phases=no_shrinking)
    return pytest.mark.long(chosen(test))


def told(share: int) -> str:
    """How many cases there were; fails if they are fewer than this share of those that were asked for."""
    assert sum(CASES.values()) >= 0.95 * cases_in_all * share / (LOADERS + COMMANDS), CASES
    text = f"{sum(CASES.values()):,} cases ({', '.join(f'{count} {name}' for name, count in sorted(CASES.items()))})"
    CASES.clear()  # for the next file
    return text


@st.composite
def spoiled(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut, with bytes changed, put in, or taken out."""
    spoilt = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(spoilt) - 1)))
        what = draw(st.sampled_from(["flip", "cut", "insert", "remove", "zero"]))
        if what == "cut":
            del spoilt[at:]
        elif what == "insert":
            spoilt[at:at] = draw(st.binary(min_size=1, max_size=20))
        elif what == "remove":
            del spoilt[at : at + draw(st.integers(1, 50))]
        elif what == "zero":
            spoilt[at : at + 8] = bytes(len(spoilt[at : at + 8]))
        elif spoilt:
            spoilt[at] ^= draw(st.integers(1, 255))
    return bytes(spoilt)


any_value: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "1.0",
    "1e-9",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1_0",
    " 3",
    "٣",
    "0x10",
    "9" * 5000,
    "2147483649",
)
ODD = (
    "", " ", ".", "..", "../precious", "../../precious", "/nowhere", "/dev/null", "~", "~nosuchuser", "~nosuchuser/x",
    "a/b", "-", "--", "=", "a=b", "digits=", "=digits", "[/bold]", "[red]x", "{x}", "%s", "$(touch ran)", "=cmd()",
    "@SUM(1+1)", "x" * 300, "y" * 5000, "NA", "nan", "null", "007", "None", "True", "a\nb", "a\rb", "a\tb", "a\0b",
    "é", "\ud800", "\udcff.npz", "\u202e", "😀", "日本", "file.npz", "x.csv", "x.py:", ".py:X", "x.py:Y", "a,b", "a;b",
    '"', "'", "\\", "..\\precious", "demo ", "DEMO",
)  # fmt: skip
odd_text = st.one_of(st.sampled_from(ODD), st.sampled_from(NUMBERS), st.text(max_size=12))

"""Makes matplotlib's SVG files a third as large: styles as classes, relative paths, few decimals."""

import re

# What matplotlib writes and no viewer needs.
_DISPENSABLE = re.compile(
    r"<!DOCTYPE[^>]*>|<metadata>.*?</metadata>"
    r"| transform=\"rotate\(-0 [^\"]*\"|font-family: 'DejaVu Sans', sans-serif; ",
    re.DOTALL,
)
_LONG_NUMBER = re.compile(r'(?<=[ "(-])\d+\.\d{2,}(?=[ ")p])')
_LONELY = re.compile(r"<g>(<(?:path|text|use)[^<]*(?:/>|</text>))</g>")  # a group of one element
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b")
_STYLE = "*{stroke-linejoin: round; stroke-linecap: butt}"
_FONT = "text{font-family: 'DejaVu Sans', sans-serif}"


def minify(svg: str) -> str:
    """The same picture; positions are rounded to a tenth of a point, shapes of markers to a hundredth.

    Texts are put aside meanwhile, since a name may look like an attribute or a long number.
    """
    texts: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        texts.append(match[1])
        return f">{len(texts) - 1}</text>"

    svg = re.sub(r">([^<>\n]+)</text>", put_aside, svg)
    used = set(re.findall(r"#([\w.]+)[\")]", svg))
    classes: dict[str, str] = {}

    def as_class(match: re.Match[str]) -> str:
        return f' class="{classes.setdefault(match[1], f"s{len(classes)}")}"'

    svg = _DISPENSABLE.sub("", svg)
    svg = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", svg)
    svg = re.sub(r' style="([^"]*)"', as_class, svg)
    svg = re.sub(r' d="([^"]*)"', lambda match: f' d="{_shorter_path(match[1])}"', svg)
    svg = _LONG_NUMBER.sub(lambda match: _short(float(match[0]), 1), svg)
    svg = re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><")
    for _ in range(2):  # groups inside groups
        svg = _LONELY.sub(r"\1", svg.replace("<g></g>", ""))
    styles = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    svg = re.sub(r'="([^"\']*)"', r"='\1'", svg)  # single quotes need no escape in a page's attribute
    svg = re.sub(r">(\d+)</text>", lambda match: f">{texts[int(match[1])]}</text>", svg)
    return svg.replace(_STYLE, f"{_STYLE}{_FONT}{styles}", 1) + "\n"


def inline(svg: str, name: str, follows_theme: bool) -> str:
    """A minified picture as a part of a page: its classes and ids have the picture's name in front.

    One that follows the theme has greys between the page's paper and ink; its colours are made for both.
    """
    svg = svg[svg.index("<svg") :].replace(
        "<svg", f"<svg class='{name}' role='img' aria-labelledby='{name}-caption'", 1
    )
    svg = svg.replace(_STYLE, _STYLE.replace("*", f".{name} *")).replace(_FONT, f".{name} {_FONT}")
    svg = re.sub(r"\.(s\d+)\{", rf".{name}-\1{{", svg)
    svg = re.sub(r" class='(s\d+)'", rf" class='{name}-\1'", svg)
    svg = re.sub(r" id='([^']+)'", rf" id='{name}-\1'", svg)
    svg = re.sub(r"(href='|url\()#", rf"\1#{name}-", svg)
    return _GREY.sub(_between_paper_and_ink, svg) if follows_theme else svg


def _between_paper_and_ink(grey: re.Match[str]) -> str:
    share = 100 - round(int(grey[1], 16) / 2.55)
    return f"color-mix(in srgb, var(--ink) {share}%, var(--paper))"


def _shorter_path(path: str) -> str:
    """Lines become steps from the point before; of paths with curves, only the decimals go."""
    numbers = [float(number) for number in re.findall(r"-?\d[\d.]*", path)]
    digits = 2 if max(map(abs, numbers), default=0) < 10 else 1  # markers are drawn around zero, and are small
    if re.search("[CQ]", path):
        return re.sub(r"-?\d+\.\d+", lambda match: _short(float(match[0]), digits), " ".join(path.split()))
    steps, before = [], (0.0, 0.0)
    for command, x, y in re.findall(r"([MLz])(?: (\S+) (\S+))?", path):
        if command == "z":
            steps.append("z")
            continue
        here = (round(float(x), digits), round(float(y), digits))
        if command == "M":
            steps.append(f"M{_short(here[0], digits)} {_short(here[1], digits)}")
        elif here != before:
            steps.append(f"l{_short(here[0] - before[0], digits)} {_short(here[1] - before[1], digits)}")
        before = here
    return "".join(steps).replace(" -", "-")


def _short(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}".rstrip("0").removesuffix(".")
    return "0" if text in ("", "-0") else text

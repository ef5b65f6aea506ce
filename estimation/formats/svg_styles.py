"""Drawings that look right by themselves: styles as attributes, lengths as plain numbers.

The site's charts are styled by its style sheets, and measured in percents of the place where they
stand. Programs for papers know neither, and most of them no CSS at all. `standing_alone` looks up
every rule once and writes what it says into the drawing, in the light colors.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

NAMESPACE = "http://www.w3.org/2000/svg"
STYLED = {
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
    "font-size", "font-family", "font-weight", "text-anchor",
}  # fmt: skip
INHERITED = {"fill", "font-size", "font-family", "font-weight"}
FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"
FONT_SIZE = 12.0
ROOT_SIZE = 16.0
"""Pixels of 1rem."""
ACROSS = {"x", "x1", "x2", "cx", "width", "dx", "rx"}
DOWN = {"y", "y1", "y2", "cy", "height", "dy", "ry"}
_LENGTH = re.compile(r"\s*(-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*(%|px|rem|)\s*")
_VARIABLE = re.compile(r"var\(\s*(--[a-z0-9-]+)\s*\)")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_TAG = re.compile(r"<(/?)svg\b[^>]*?(/?)>")

ET.register_namespace("", NAMESPACE)


@dataclass(frozen=True)
class Room:
    """The place of a drawing, in pixels; ``left`` to ``bottom``: around it, for labels."""

    width: float
    height: float
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0


def standing_alone(drawing: str, styles: str, room: Room) -> str:
    """Return a drawing with its styles inside.

    Parameters
    ----------
    drawing : an ``<svg>`` element of our own templates, nested ones included.
    styles : the style sheets; rules under a condition (``@media``) do not count.
    room : its place; a drawing that has a width and height of its own keeps these.
    """
    rules = _rules(styles)
    root = ET.fromstring(_as_xml(drawing))  # noqa: S314 (our own templates, which escape)
    said: dict[ET.Element, dict[str, str]] = {}
    _look_up(root, rules, said)
    width = _number(root.get("width"), room.width, room.width)
    height = _number(root.get("height"), room.height, room.height)
    body = list(_plain(root, said, width, height))
    title = "".join(_told(root))
    box = (
        0.0 - room.left,
        0.0 - room.top,
        room.left + width + room.right,
        room.top + height + room.bottom,
    )
    frame = ET.Element(
        f"{{{NAMESPACE}}}svg",
        {
            "width": _shown(box[2]),
            "height": _shown(box[3]),
            "viewBox": " ".join(map(_shown, box)),
            "font-family": FONT,
            "font-size": _shown(FONT_SIZE),
        },
    )
    for each in body:
        frame.append(each)
    text = ET.tostring(frame, encoding="unicode")
    return text.replace(">", f">{title}", 1) if title else text


def drawings_in(page: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost ``<svg>`` elements of a page of our own begin and end."""
    depth, start = 0, 0
    for tag in _TAG.finditer(page):
        closing, empty = tag.groups()
        if not closing:
            if depth == 0:
                start = tag.start()
            depth += not empty
        else:
            depth -= 1
        if depth == 0:
            yield start, tag.end()


def _as_xml(drawing: str) -> str:
    """HTML has no namespaces, and names for what XML has not."""
    known = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", drawing)
    known = known.replace("&nbsp;", "\N{NO-BREAK SPACE}")
    return known if "xmlns=" in known else known.replace("<svg", f'<svg xmlns="{NAMESPACE}"', 1)


# ----------------------------------------------------------------------------- what the sheets say


@lru_cache(maxsize=4)
def _rules(styles: str) -> Any:
    """The rules for drawings: a `cssselect2.Matcher` of what each of them says."""
    import cssselect2  # noqa: PLC0415  (where a drawing is made alone)
    import tinycss2  # noqa: PLC0415

    variables: dict[str, str] = {}
    found: list[tuple[Any, dict[str, str]]] = []
    for rule in tinycss2.parse_stylesheet(styles, skip_comments=True, skip_whitespace=True):
        if rule.type != "qualified-rule":
            continue
        said = {
            each.lower_name if not each.name.startswith("--") else each.name: tinycss2.serialize(
                each.value
            ).strip()
            for each in tinycss2.parse_blocks_contents(rule.content)
            if each.type == "declaration"
        }
        variables |= {name: value for name, value in said.items() if name.startswith("--")}
        kept = {name: value for name, value in said.items() if name in STYLED}
        if not kept:
            continue
        try:
            selectors = cssselect2.compile_selector_list(rule.prelude)
        except cssselect2.SelectorError:
            continue
        found += [(each, kept) for each in selectors]
    matcher = cssselect2.Matcher()
    for selector, kept in found:
        resolved = {name: _resolved(value, variables) for name, value in kept.items()}
        matcher.add_selector(selector, resolved)
    return matcher


def _resolved(value: str, variables: Mapping[str, str]) -> str:
    for _ in range(4):  # variables of variables
        value = _VARIABLE.sub(lambda found: variables.get(found[1], ""), value)
    return value


def _look_up(root: ET.Element, rules: Any, said: dict[ET.Element, dict[str, str]]) -> None:
    """Of every element: what all its rules say, the strongest last."""
    import cssselect2  # noqa: PLC0415

    for wrapped in cssselect2.ElementWrapper.from_xml_root(root).iter_subtree():
        styles: dict[str, str] = {}
        for *_, kept in rules.match(wrapped):
            styles |= kept
        said[wrapped.etree_element] = styles


# ------------------------------------------------------------------------------ what is drawn then


def _plain(
    element: ET.Element, said: dict[ET.Element, dict[str, str]], width: float, height: float
) -> Iterator[ET.Element]:
    """The elements inside of an ``<svg>`` of a size; nested ones become groups."""
    box = element.get("viewBox", "").split()
    stretched = len(box) == 4 and element.get("preserveAspectRatio") == "none"
    over = (width / float(box[2]), height / float(box[3])) if stretched else (1.0, 1.0)
    outer = said[element]
    for child in element:
        name = child.tag.rsplit("}", 1)[-1]
        if name in ("title", "desc"):
            continue
        if name == "svg":
            yield _group(child, said, width, height)
        elif name == "a":
            yield from _plain_inside(child, said, width, height)
        else:
            yield _one(child, {**_passed_on(outer), **said[child]}, width, height, over)


def _plain_inside(
    link: ET.Element, said: dict[ET.Element, dict[str, str]], width: float, height: float
) -> Iterator[ET.Element]:
    for child in link:
        yield _one(child, said[child], width, height, (1.0, 1.0))


def _group(
    inner: ET.Element, said: dict[ET.Element, dict[str, str]], width: float, height: float
) -> ET.Element:
    x, y = _number(inner.get("x"), width, 0.0), _number(inner.get("y"), height, 0.0)
    wide, high = (
        _number(inner.get("width"), width, width),
        _number(inner.get("height"), height, height),
    )
    group = ET.Element(f"{{{NAMESPACE}}}g")
    if x or y:
        group.set("transform", f"translate({_shown(x)} {_shown(y)})")
    for each in _plain(inner, said, wide, high):
        group.append(each)
    return group


def _one(
    element: ET.Element,
    styles: Mapping[str, str],
    width: float,
    height: float,
    over: tuple[float, float],
) -> ET.Element:
    made = ET.Element(element.tag)
    for name, value in element.attrib.items():
        if name in ACROSS or name in DOWN:
            made.set(name, _shown(_number(value, width if name in ACROSS else height, 0.0)))
        elif name == "points":
            made.set(name, _moved(value, over))
        elif name not in ("class", "vector-effect", "aria-label", "role", "aria-hidden"):
            made.set(name, value)
    for name, value in styles.items():
        text = _shown(_number(value, FONT_SIZE, FONT_SIZE)) if name == "font-size" else value
        if text and not (name == "fill" and element.tag.endswith("line") and text != "none"):
            made.set(name, text)
    made.text = element.text
    made.extend(_titles(element) if element.tag.endswith("}text") else ())
    return made


def _passed_on(styles: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in styles.items() if name in INHERITED}


def _titles(element: ET.Element) -> Iterator[ET.Element]:
    """The whole of a word that is shortened."""
    for title in element.findall(f"{{{NAMESPACE}}}title"):
        made = ET.Element(title.tag)
        made.text = title.text
        yield made


def _told(root: ET.Element) -> Iterator[str]:
    for child in root:
        name = child.tag.rsplit("}", 1)[-1]
        if name in ("title", "desc") and child.text:
            made = ET.Element(name)
            made.text = child.text
            yield ET.tostring(made, encoding="unicode")


def _moved(points: str, over: tuple[float, float]) -> str:
    numbers = [float(each) for each in re.split(r"[\s,]+", points.strip()) if each]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return " ".join(f"{_shown(x * over[0])},{_shown(y * over[1])}" for x, y in pairs)


def _number(text: str | None, whole: float, otherwise: float) -> float:
    found = _LENGTH.fullmatch(text or "")
    if found is None:
        return otherwise
    number, unit = float(found[1]), found[2]
    return number * {"%": whole / 100, "rem": ROOT_SIZE}.get(unit, 1.0)


def _shown(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".") if number % 1 else f"{number:.0f}"

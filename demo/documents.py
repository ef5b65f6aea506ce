"""Make the demo's documents from the docstrings of Python's standard library."""

import importlib
import inspect
import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

MODULES_FILE = Path(__file__).with_name("modules.txt")
MIN_WORDS = 3
MAX_TEXT = 3000
MAX_TITLE = 110
ADDED_BY_SITE = frozenset({"copyright", "credits", "exit", "help", "license", "quit"})

_DOCNO = re.compile(r"[A-Za-z0-9._-]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
# Where this interpreter lives, which defaults of arguments quote; the longest path first.
_PATHS = {sys.executable: "/usr/bin/python3", sys.prefix: "/usr", sys.base_prefix: "/usr"}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# A list of living objects grows with every library that is imported; the first is Python's own.
_LIVE = re.compile(r"(\[<weakref; to [^>]*>)(?:, <weakref; to [^>]*>)+\]")
_MEMBER_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    staticmethod,
    classmethod,
    property,
)


@dataclass(frozen=True)
class Document:
    """One documented object: its dotted name, its signature, its cleaned docstring."""

    docno: str
    title: str
    text: str


def module_names() -> list[str]:
    """Names of the modules to read, in the file's order."""
    return [line for line in _module_lines() if not line.startswith("!")]


def left_out() -> list[str]:
    """Patterns of the docnos that the collection leaves out."""
    return [line[1:] for line in _module_lines() if line.startswith("!")]


def _module_lines() -> list[str]:
    lines = MODULES_FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def build_documents() -> list[Document]:
    """All documents in docno order; the same interpreter always gives the same list."""
    found: dict[str, Document] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in module_names():
            for document in _module_documents(name):
                found.setdefault(document.docno, document)
    unwanted = left_out()
    wanted = (d for d in found.values() if not any(fnmatchcase(d.docno, p) for p in unwanted))
    kept = _without_copies(wanted)
    return sorted(kept, key=lambda document: document.docno)


def _module_documents(name: str) -> Iterator[Document]:
    module = importlib.import_module(name)
    yield from _document(name, module)
    prefix = "" if name == "builtins" else f"{name}."
    for member, value in _public_members(module):
        docno = f"{prefix}{member}"
        yield from _document(docno, value)
        if inspect.isclass(value):
            yield from _class_documents(docno, value)


def _public_members(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    declared = getattr(module, "__all__", None)
    for member in sorted(set(declared if declared is not None else vars(module))):
        value = getattr(module, member, None)
        if member.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        if inspect.isclass(value) and value.__name__ != member:
            continue  # an alias: IOError, array.ArrayType
        # C accelerators of a module "name" live in a module "_name".
        home = str(getattr(value, "__module__", "")).removeprefix("_")
        own = declared is not None or home == module.__name__
        if own and not (module.__name__ == "builtins" and member in ADDED_BY_SITE):
            yield member, value


def _class_documents(prefix: str, cls: type) -> Iterator[Document]:
    for member, value in sorted(_class_members(cls).items()):
        yield from _document(f"{prefix}.{member}", value)


def _class_members(cls: type) -> dict[str, object]:
    """Members of the class itself and of the private bases that it hides."""
    members: dict[str, object] = {}
    for base in cls.__mro__:
        if base is cls or base.__name__.startswith("_") or base.__module__.startswith("_"):
            for member, value in vars(base).items():
                if not member.startswith("_") and isinstance(value, _MEMBER_TYPES):
                    members.setdefault(member, value)
    return members


def _document(docno: str, value: object) -> Iterator[Document]:
    text = _clean_text(value)
    enough = len(_WORD.findall(text)) >= MIN_WORDS
    if enough and _DOCNO.fullmatch(docno) and not _is_generated(value, text):
        yield Document(docno, _title(docno, value), text)


def _clean_text(value: object) -> str:
    doc = getattr(value, "__doc__", None)
    if not isinstance(doc, str):
        return ""
    text = _normalized(inspect.cleandoc(doc))
    if len(text) <= MAX_TEXT:
        return text
    cut = text.rfind("\n\n", 0, MAX_TEXT)
    return f"{text[: cut if cut > 0 else MAX_TEXT].rstrip()}\n\n[...]"


def _normalized(text: str) -> str:
    """Text without what differs from process to process or machine to machine."""
    for here, anywhere in _PATHS.items():
        text = text.replace(here, anywhere)
    text = _LIVE.sub(r"\1]", _ADDRESS.sub("", text))
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return "\n".join(line.rstrip() for line in printable.splitlines()).strip()


def _is_generated(value: object, text: str) -> bool:
    """Docstrings that dataclasses and named tuples write for themselves."""
    own = hasattr(value, "__dataclass_fields__") or hasattr(value, "_fields")
    return own and text.startswith(f"{getattr(value, '__name__', '')}(") and "\n" not in text


def _title(docno: str, value: object) -> str:
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if inspect.isclass(function) or not callable(function):
        return docno
    try:
        signature = _normalized(str(inspect.signature(function)))
    except (TypeError, ValueError):
        return docno
    bare = re.sub(r"^\((?:self|cls|\$self|type)(?:, /)?(?:, )?", "(", signature)
    title = f"{docno}{bare}"
    return title if len(title) <= MAX_TITLE else f"{docno}(...)"


def _without_copies(documents: Iterable[Document]) -> list[Document]:
    """Of documents with the same last name and text, the one with the shortest docno."""
    best: dict[tuple[str, str], Document] = {}
    for document in sorted(documents, key=lambda d: (len(d.docno), d.docno)):
        best.setdefault((document.docno.rpartition(".")[2], document.text), document)
    return list(best.values())

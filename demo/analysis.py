"""Turn text into terms: words, stems and character n-grams."""

import re

_FUNCTION_WORDS = (
    "a all an and any are as at be been but by can cannot do does for from given has have how i if"
    " in into is it its may me my no not of on one or other so some such than that the their them"
    " then there they this to was we when where which will with without you your"
)
STOPWORDS = frozenset(_FUNCTION_WORDS.split())

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[A-Z]")
_SUFFIXES = (("ations", ""), ("ation", ""), ("ings", ""), ("ing", ""), ("edly", ""), ("ed", ""))


def words(text: str) -> list[str]:
    """Lower-case words; identifiers are split at case changes and underscores."""
    parts = (part.lower() for part in _PART.findall(text))
    return [part for part in parts if len(part) > 1 and part not in STOPWORDS]


def stems(text: str) -> list[str]:
    """Words without their endings, by a few crude rules of English."""
    return [_stem(word) for word in words(text)]


def character_ngrams(text: str, *, size: int = 4) -> list[str]:
    """N-grams of every word, with a mark at its beginning and end."""
    marked = (f"_{word}_" for word in words(text))
    return [
        word[start : start + size]
        for word in marked
        for start in range(max(1, len(word) - size + 1))
    ]


def _stem(word: str) -> str:
    word = _singular(word)
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)] + replacement
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word

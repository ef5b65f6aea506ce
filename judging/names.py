"""User names that people can tell apart.

Two names are the same if they differ in case or in the way the same letters are encoded (NFKC and
case folding). Two names look alike if they are the same after letters of other alphabets have been
replaced by the Latin ones that are drawn like them. No two accounts may look alike, and a name
keeps to one script, so that a single strange letter cannot hide among familiar ones.

This follows Unicode's advice on identifiers (UAX 31, UTS 39: single script, recommended scripts,
skeletons) with the part of its tables that user names need. Digits and signs that resemble letters
(``1`` and ``l``) stay apart: many ordinary names differ in them alone.
"""

import re
import unicodedata

ALLOWED = re.compile(r"[\w.@+-]{1,150}")
EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"}  # written together
SCRIPTS = EAST_ASIAN | {
    *("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC", "THAANA"),
    *("DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA"),
    *("MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "ETHIOPIC", "KHMER"),
}
LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮԚԜаеѕіјкорсухүһԁԛԝӏ"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανικορυχ"  # Greek
    "ՍՕօսոհցզ"  # Armenian
    "ɑɡı",
    "ABESIJKMHOPCTYXYQWaesijkopcyxyhdqwlABEZHIKMNOPTYXavikopuxUOounhgqagi",
)
SMALL_CAPITAL = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])")


def plain(name: str) -> str:
    """The name as it is stored: every letter in its usual encoding."""
    return unicodedata.normalize("NFKC", name).strip()


def same(name: str) -> str:
    """Equal for names that are the same."""
    return _folded(plain(name))


def skeleton(name: str) -> str:
    """Equal for names that look alike, and so for all that are the same."""
    return _folded("".join(map(_small, plain(name))).translate(LOOKALIKES))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _small(letter: str) -> str:
    capital = SMALL_CAPITAL.fullmatch(unicodedata.name(letter, ""))
    return capital[1] if capital else letter


def problem(name: str) -> str | None:
    """What is wrong with a name for a new account, in a sentence; None if it is good."""
    letters = plain(name)
    if not ALLOWED.fullmatch(letters):
        return "Use letters, digits and . @ + - _ (at most 150) in a user name."
    scripts = {_script(letter) for letter in letters if letter.isalpha()}
    if strange := scripts - SCRIPTS:
        return f"Letters of {_told(strange)} cannot be used in a user name. Use another script."
    if len(scripts) > 1 and not scripts <= EAST_ASIAN:
        return f"This name mixes letters of {_told(scripts)}, which look alike. Use one script."
    return None


def _script(letter: str) -> str:
    """The script of a letter, from its name in Unicode; marks of no script have their own name."""
    return unicodedata.name(letter, "UNKNOWN").partition(" ")[0]


def _told(scripts: set[str]) -> str:
    return " and ".join(script.title() for script in sorted(scripts))

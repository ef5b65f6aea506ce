"""Arguments of commands."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence

from estimation.core.arrays import nearest


def named(known: Sequence[str]) -> Callable[[str], str]:
    """The type of an argument that is one of these names: another is told what may be meant."""

    def read(text: str) -> str:
        if text not in known:
            told = f"expected one of {', '.join(known)}, not {text!r}"
            raise ArgumentTypeError(told + nearest(text, known))
        return text

    return read

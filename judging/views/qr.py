"""A picture that apps read. It stands on white whatever the page looks like: apps need that."""

import segno


def picture(text: str) -> str:
    """As an address of its own kind, for an image."""
    drawn: str = segno.make(text, error="m").svg_data_uri(scale=4, border=4, light="#fff")
    return drawn

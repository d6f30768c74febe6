"""Words around numbers and texts."""


def plural(number: int, noun: str) -> str:
    """Return a noun, with an s unless the number is 1."""
    if number == 1:
        return noun
    return f"{noun}s"


def enclosed(before: str, text: object, after: str = "") -> str:
    """Return a text between two others, or nothing for no text."""
    if not text:
        return ""
    return f"{before}{text}{after}"

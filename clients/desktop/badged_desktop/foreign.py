# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of services, readers and links, which strangers have written: made safe to show in a line of a window."""

from __future__ import annotations

import unicodedata

#: How many combining marks one letter may have. More would grow into the lines above and below.
MAXIMUM_MARKS = 2
#: The longest paragraph in characters. The layout of a longer one takes too long.
LONGEST_PARAGRAPH = 2000
#: What a mark stands on that follows no letter.
CIRCLE = "\N{DOTTED CIRCLE}"


def lines(text: str) -> str:
    """The text with its line ends, and without what could change other text: control characters, direction controls,
    invisible characters, and marks without a letter."""
    kept: list[str] = []
    marks = 0
    length = 0
    has_letter = False
    for character in text.replace("\r\n", "\n"):
        if character in "\n\r\x0b\x0c\x85\u2028\u2029":
            kept.append("\n")
            length, has_letter, marks = 0, False, 0
            continue
        if character == "\t":
            character = " "
        category = unicodedata.category(character)
        if category[0] == "C":
            continue
        if category[0] == "M":
            marks += 1
            if marks > MAXIMUM_MARKS:
                continue
            if not has_letter:
                kept.append(CIRCLE)
                has_letter = True
        else:
            marks = 0
            has_letter = category[0] in "LN"
        kept.append(character)
        length += 1
        if length >= LONGEST_PARAGRAPH and character == " " or length >= 2 * LONGEST_PARAGRAPH:
            kept.append("\n")
            length, has_letter, marks = 0, False, 0
    return "".join(kept)


def line(text: str, longest: int = 200) -> str:
    """The text as one line, shortened to `longest` characters."""
    words = " ".join(lines(text[: 20 * longest]).split())
    if len(words) > longest or len(text) > 20 * longest:
        return words[:longest].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
    return words


def address(text: str, longest: int = 200) -> str:
    """A web address as one line. The end of the name of a host says whose it is, so a long one loses its middle."""
    words = "".join(lines(text).split())
    if len(words) > longest:
        return words[: longest // 2] + "\N{HORIZONTAL ELLIPSIS}" + words[-longest // 2 :]
    return words


def quoted(text: str, longest: int = 80) -> str:
    """The text as a part of a sentence of ours. Its writing direction ends with it."""
    return "\N{FIRST STRONG ISOLATE}" + line(text, longest) + "\N{POP DIRECTIONAL ISOLATE}"

# SPDX-License-Identifier: Apache-2.0
"""Texts of badged in another language. docs/protocol.md, Texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_MAXIMUM_DEPTH = 8
_MAXIMUM_VALUES = 64


def translated(message: Mapping[str, Any], member: str, look_up: Callable[[str], str]) -> str:
    """The text `member` of a message, such as `event.raw`, or of an object in it; empty if there is none.

    `look_up` gets a template such as `No connection to the phone: {0}`, and returns it in the other language, or as
    it is: `gettext.gettext` does so. A template whose translation has other placeholders is English.
    """
    text = message.get(member)
    if not isinstance(text, str):
        return ""
    words = message.get(member + "Words")
    # A phrase may be wrong, or say something else.
    if words is not None and _said(words, lambda template: template, [_MAXIMUM_VALUES]) == text:
        return _said(words, look_up, [_MAXIMUM_VALUES]) or text
    return look_up(text) if text else ""


def _said(words: object, look_up: Callable[[str], str], left: list[int], depth: int = 0) -> str | None:
    """What a phrase says; None if it is malformed. `left` counts the values of all levels."""
    if not isinstance(words, Mapping) or depth == _MAXIMUM_DEPTH:
        return None
    template, values = words.get("template"), words.get("values", [])
    if not isinstance(template, str) or not isinstance(values, list):
        return None
    left[0] -= len(values)
    if left[0] < 0:
        return None
    said = [value if isinstance(value, str) else _said(value, look_up, left, depth + 1) for value in values]
    texts = [text for text in said if text is not None]
    if len(texts) < len(said):
        return None
    english = _filled(template, texts)
    return english and (_filled(look_up(template), texts) or english)


def _filled(template: str, values: list[str]) -> str | None:
    """The template with its values; None unless it has each placeholder once."""
    parts = re.split(r"\{(\d{1,2})\}", template)
    if sorted(parts[1::2]) != sorted(str(number) for number in range(len(values))):
        return None
    return "".join(values[int(part)] if index % 2 else part for index, part in enumerate(parts))

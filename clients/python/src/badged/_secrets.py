# SPDX-License-Identifier: Apache-2.0
"""Lines with secrets: built in memory that is wiped, and never as a `str`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ESCAPED = bytes(range(0x20)) + b'"\\'
_HEX = b"0123456789abcdef"


def wipe(secret: bytearray) -> None:
    """Overwrites the bytes with zeros. The length stays."""
    for index in range(len(secret)):
        secret[index] = 0


def line(command: str, members: Mapping[str, Any], secret: bytearray | None = None) -> bytearray:
    """A command as a line. A secret becomes the member `value`, and is wiped.

    The line is made in its whole length at once, so that no copy of the secret is left when it grows.
    """
    secret_is_given = secret is not None
    secret = bytearray() if secret is None else secret
    try:
        if not isinstance(secret, bytearray):
            raise TypeError("a secret is a bytearray, because str and bytes cannot be wiped")
        text = json.dumps({"cmd": command, **members}, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        if not secret_is_given:
            return bytearray(text.encode() + b"\n")
        start, end = text[:-1].encode() + b',"value":"', b'"}\n'
        result = bytearray(len(start) + sum(6 if byte in _ESCAPED else 1 for byte in secret) + len(end))
        result[: len(start)] = start
        position = len(start)
        for byte in secret:
            if byte in _ESCAPED:
                result[position : position + 6] = b"\\u00" + _HEX[byte >> 4 : (byte >> 4) + 1] + _HEX[byte & 15 :][:1]
                position += 6
            else:
                result[position] = byte
                position += 1
        result[position:] = end
        return result
    finally:
        if isinstance(secret, bytearray):
            wipe(secret)

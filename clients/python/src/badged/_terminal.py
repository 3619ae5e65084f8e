# SPDX-License-Identifier: Apache-2.0
"""A user at a terminal, as a handler of workflows."""

from __future__ import annotations

import os
import sys
import termios

from ._records import Message
from ._secrets import wipe
from .messages import AccessRights, ConsentPrompt, EnterMrz, InsertCard, Pause, SecretPrompt

#: The longest line that is read, in bytes. A terminal gives 4095 at most.
_LIMIT = 4096


def _open_terminal() -> tuple[int, bool]:
    """The terminal, or standard input without one; whether the descriptor is to be closed."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY), True
    except OSError:
        return sys.stdin.fileno(), False


def _has_terminal() -> bool:
    descriptor, is_own = _open_terminal()
    try:
        return os.isatty(descriptor)
    finally:
        if is_own:
            os.close(descriptor)


def read_secret(prompt: str) -> bytearray:
    """Reads a line from the terminal without showing it, into a bytearray and no `str`.

    Without a terminal the line comes from standard input.
    """
    descriptor, is_own = _open_terminal()
    result = bytearray(_LIMIT)
    length = 0
    before = termios.tcgetattr(descriptor) if os.isatty(descriptor) else None
    try:
        if before is not None:
            hidden = list(before)
            hidden[3] &= ~termios.ECHO
            # What was typed before the question does not answer it.
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, hidden)
        os.write(descriptor if is_own else sys.stderr.fileno(), prompt.encode())
        with memoryview(result) as view:
            while length < _LIMIT and os.readv(descriptor, [view[length : length + 1]]) == 1:
                if result[length] == ord("\n"):
                    result[length] = 0
                    break
                length += 1
        return bytearray(memoryview(result)[:length])
    finally:
        if before is not None:
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
            os.write(descriptor if is_own else sys.stderr.fileno(), b"\n")
        for index in range(length):
            result[index] = 0
        if is_own:
            os.close(descriptor)


def ask_in_terminal(message: Message) -> object:
    """A handler for `run`: asks for secrets without showing them, and for consent with the whole request.

    An empty line cancels the workflow. Without a terminal a second prompt of the same kind cancels it, too: the next
    line of standard input was written for another one.
    """
    if isinstance(message, SecretPrompt | EnterMrz) and message.is_repeated and not _has_terminal():
        print(f"{message} is asked for again: give the right value, and start again.", file=sys.stderr)
        return None
    match message:
        case EnterMrz():
            if message.error:
                print(_shown(message.message or message.error), file=sys.stderr)
            return _read_zone(message)
        case SecretPrompt():
            if message.error:
                print(_shown(message.error), file=sys.stderr)
            if message.is_typed_at_reader:
                print(f"Type the {message.LABEL} at the reader.", file=sys.stderr)
                return None
            return read_secret(f"{message}: ") or None
        case InsertCard():
            print(_shown(message.error) if message.error else "Put in your card.", file=sys.stderr)
        case Pause():
            return _agrees("The card was lost repeatedly. Place it better. Go on?")
        case AccessRights():
            print("The service asks for:", _shown(list(message.chat.required)), file=sys.stderr)
            print("And, if you agree:", _shown(list(message.chat.optional)), file=sys.stderr)
            return _agrees("Agree to all of this?")
        case ConsentPrompt():
            for name, value in message.raw.items():
                if name not in ("msg", "question") and value is not None:
                    print(f"{name}: {_shown(value)}", file=sys.stderr)
            return _agrees("Go on?")
    return None


def _read_zone(prompt: EnterMrz) -> bytearray | None:
    """Reads the lines of a machine readable zone, or the CAN instead of the first one."""
    takes_can = "can" in prompt.passwords
    zone = read_secret(f"{prompt}, line by line{', or the CAN' if takes_can else ''}: ")
    if takes_can and len(zone) == 6 and zone.isdigit():
        prompt.answer_can(zone)
        return None
    for _ in range({44: 1, 36: 1, 30: 2}.get(len(zone), 0)):
        line = read_secret("next line: ")
        # An array that grows leaves a copy behind.
        longer = bytearray(len(zone) + len(line))
        longer[: len(zone)], longer[len(zone) :] = zone, line
        wipe(zone)
        wipe(line)
        zone = longer
    return zone or None


def _agrees(question: str) -> bool:
    print(f"{question} (yes) ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


def _shown(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    # No text of another program controls the terminal.
    return "".join(character if character.isprintable() else "?" for character in text)

# SPDX-License-Identifier: Apache-2.0
"""A user at a terminal, as a handler of workflows."""

from __future__ import annotations

import os
import sys
import termios

from ._both import Asynchronous
from ._records import Message
from ._secrets import wipe
from .messages import (
    AccessRights,
    Certificate,
    ConsentPrompt,
    EnterDuressPin,
    EnterMrz,
    EnterNewPin,
    EnterNewPuk,
    EnterPassphrase,
    EnterPin,
    InsertCard,
    Pause,
    SecretPrompt,
    ShowPaperWallet,
    ShowPuk,
    ShowSessionKey,
)

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
    return _read_line(prompt, is_hidden=True)


def _read_line(prompt: str, is_hidden: bool) -> bytearray:
    """Reads a line and no byte more, because the next line may be a secret."""
    descriptor, is_own = _open_terminal()
    result = bytearray(_LIMIT)
    length = 0
    before = termios.tcgetattr(descriptor) if os.isatty(descriptor) else None
    try:
        if before is not None:
            during = list(before)
            if is_hidden:
                during[3] &= ~termios.ECHO
            # What was typed before the question does not answer it.
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, during)
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
            if is_hidden:
                os.write(descriptor if is_own else sys.stderr.fileno(), b"\n")
        for index in range(length):
            result[index] = 0
        if is_own:
            os.close(descriptor)


def ask_in_terminal(message: Message) -> object:
    """A handler for `run`: asks for secrets without showing them, and for consent with the whole request.

    An empty line cancels the workflow, or says that the user has no second factor if that is possible. Without a
    terminal a second prompt of the same kind cancels it, too: the next line of standard input was written for another
    one. Without a terminal no words, PUK or key of a wallet are shown, because standard error may be kept: the workflow
    is cancelled. In a terminal a value that the user chooses is read twice.
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
                print(f"Type the {message.label} at the reader.", file=sys.stderr)
                return None
            is_optional = isinstance(message, EnterPin | EnterNewPin) and message.optional
            value = _read_value(message)
            return value if value or is_optional else None
        case InsertCard():
            print(_shown(message.error) if message.error else "Put in your card.", file=sys.stderr)
        case Pause():
            return _agrees("The card was lost repeatedly. Place it better. Go on?")
        case AccessRights():
            if isinstance(message._daemon, Asynchronous):
                return _agrees_later(message)
            return _agrees_to(message, message._daemon.get_certificate())
        case ShowPaperWallet() | ShowPuk() | ShowSessionKey():
            return _has_noted(message)
        case ConsentPrompt():
            for line in _members(message):
                print(line, file=sys.stderr)
            return _agrees("Go on?")
    return None


async def _agrees_later(rights: AccessRights) -> bool:
    return _agrees_to(rights, await rights._daemon.get_certificate())


#: What the card compares for a service: docs/protocol/eid.md.
_COMPARED = {
    "requiredAge": "Are you at least so many years old",
    "ageVerificationDate": "Were you born on this day or before",
    "validityDate": "Is the card valid on this day",
    "communityId": "Do you live in the place with this number",
}


def _agrees_to(rights: AccessRights, certificate: Certificate) -> bool:
    """Shows the whole request of a service, and who asks."""
    service = certificate.description
    rows: list[tuple[str, object]] = [
        ("Service", service.subject_name),
        ("Address", service.subject_url),
        ("Purpose", service.purpose),
        ("Transaction", rights.transaction_info),
        *((_COMPARED.get(name, _shown(name)), value) for name, value in rights.aux.items()),
        ("The service asks for", list(rights.chat.required)),
        ("And, if you agree", list(rights.chat.optional)),
    ]
    for name, value in rows:
        if value is not None:
            print(f"{name}: {_shown(value)}", file=sys.stderr)
    return _agrees("Agree to all of this?")


def _has_noted(message: ConsentPrompt) -> bool:
    """Shows a secret of a wallet where nothing is kept: on the other screen of the terminal."""
    descriptor, is_own = _open_terminal()
    try:
        if not os.isatty(descriptor):
            print("Secrets of a wallet are only shown in a terminal: start again in one.", file=sys.stderr)
            return False
        text = "\r\n".join(["\x1b[?1049h\x1b[H\x1b[2J", *_members(message), ""])
        try:
            os.write(descriptor, text.encode())
            return _agrees("Write this down; it is shown once. Go on?")
        finally:
            os.write(descriptor, b"\x1b[H\x1b[2J\x1b[?1049l")
    finally:
        if is_own:
            os.close(descriptor)


def _members(message: ConsentPrompt) -> list[str]:
    """What a question shows, a line for each member."""
    members = ((name, value) for name, value in message.raw.items() if name not in ("msg", "question"))
    return [f"{_shown(name)}: {_shown(value)}" for name, value in members if value is not None]


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


def _read_value(prompt: SecretPrompt) -> bytearray:
    """Reads a value; in a terminal twice if no card or server knows it yet, because a typing error would stay."""
    is_chosen = isinstance(prompt, EnterNewPin | EnterNewPuk | EnterDuressPin | EnterPassphrase)
    while True:
        value = read_secret(f"{prompt}: ")
        if not value or not is_chosen or not _has_terminal():
            return value
        again = read_secret(f"{prompt.label} again: ")
        is_same = value == again
        wipe(again)
        if is_same:
            return value
        wipe(value)
        print("The two values differ.", file=sys.stderr)


def _agrees(question: str) -> bool:
    return _read_line(f"{question} (yes) ", is_hidden=False).strip() == b"yes"


def _shown(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    # No text of another program controls the terminal, or looks like another line.
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)

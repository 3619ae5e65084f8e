# SPDX-License-Identifier: Apache-2.0
"""Questions for a secret, and questions that are only agreed to; several features share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._records import Prompt
from .readers import EIDCard, Keycard, Reader

__all__ = [
    "ConsentPrompt",
    "EnterCan",
    "EnterDuressPin",
    "EnterNewPin",
    "EnterNewPuk",
    "EnterPairingCode",
    "EnterPairingPassword",
    "EnterPassphrase",
    "EnterPin",
    "EnterPuk",
    "EnterWords",
    "SecretPrompt",
]


@dataclass(frozen=True, kw_only=True)
class SecretPrompt(Prompt):
    """Asks for a secret.

    `error` says why badged has not sent the value before to the card; or, if `unanswered`, that the card gave no answer
    to it: the value may have been right; or, if `wrong`, that it was tried with the card and was wrong. If the prompt
    comes again without `error`, the card has refused the value.
    """

    #: What is asked for, in words.
    LABEL: ClassVar[str] = ""
    COMMAND: ClassVar[str] = ""

    question: int | None = None
    error: str | None = None
    unanswered: bool = False
    wrong: bool = False
    reader: Reader | None = None
    user_id: str | None = None
    retry_counter: int | None = None

    @property
    def label(self) -> str:
        """What this prompt asks for, in words."""
        return self.LABEL

    @property
    def tries_left(self) -> int | None:
        """How many tries are left for the PIN; None where nobody knows."""
        return self.retry_counter

    @property
    def is_typed_at_reader(self) -> bool:
        """Whether the user types the value at the keypad of the reader: `answer` takes no value then."""
        return self.reader is not None and self.reader.keypad

    def answer(self, secret: bytearray | None = None, *, automatic: bool = False) -> None:
        """Answers this prompt. The secret, in UTF-8, is wiped.

        If the prompt is over in the meantime, because its card has left, badged discards the value. `automatic` says
        that no person gives the value: badged then takes a PIN only for an authentication, and protects the tries of
        the card.
        """
        if secret is None and not self.is_typed_at_reader:
            raise ValueError(f"{self.label} is missing")
        self._reply(self.COMMAND, {"automatic": True} if automatic else None, secret)

    def take(self, value: object) -> bool:
        if self.is_typed_at_reader and value is None:
            self.answer()
        elif value is None or value is False:
            return False
        elif isinstance(value, bytearray):
            self.answer(value)
        else:
            raise TypeError("a secret is a bytearray, because str and bytes cannot be wiped")
        return True

    def __str__(self) -> str:
        tries = self.tries_left
        left = "" if tries is None else f" ({tries} {'try' if tries == 1 else 'tries'} left)"
        return self.label + left


@dataclass(frozen=True, kw_only=True)
class EnterPin(SecretPrompt, msg="ENTER_PIN"):
    """Asks for the PIN. The members after `retry_counter` are those of M-Pin."""

    LABEL = "PIN"
    COMMAND = "SET_PIN"

    backend: str | None = None
    factor: int | None = None
    optional: bool = False
    pin_length: int | None = None

    @property
    def label(self) -> str:
        return "second factor" if self.factor == 1 else self.LABEL

    @property
    def tries_left(self) -> int | None:
        card = None if self.reader is None else self.reader.card
        if self.retry_counter is None and isinstance(card, EIDCard):
            return card.retry_counter
        if self.retry_counter is None and isinstance(card, Keycard):
            return card.pin_tries
        return self.retry_counter


@dataclass(frozen=True, kw_only=True)
class EnterNewPin(SecretPrompt, msg="ENTER_NEW_PIN"):
    """Asks for the PIN that the card or the user shall have. The members are those of `EnterPin`."""

    LABEL = "new PIN"
    COMMAND = "SET_NEW_PIN"

    backend: str | None = None
    factor: int | None = None
    optional: bool = False
    pin_length: int | None = None

    @property
    def label(self) -> str:
        return "new second factor" if self.factor == 1 else self.LABEL


@dataclass(frozen=True, kw_only=True)
class EnterCan(SecretPrompt, msg="ENTER_CAN"):
    """Asks for the CAN, the number on the card. `passwords` and `message` are those of `EnterMrz`."""

    LABEL = "CAN"
    COMMAND = "SET_CAN"

    passwords: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class EnterPuk(SecretPrompt, msg="ENTER_PUK"):
    """Asks for the PUK, which unblocks the PIN."""

    LABEL = "PUK"
    COMMAND = "SET_PUK"


@dataclass(frozen=True, kw_only=True)
class EnterNewPuk(SecretPrompt, msg="ENTER_NEW_PUK"):
    """Asks for the PUK that a new wallet card shall have."""

    LABEL = "new PUK"
    COMMAND = "SET_NEW_PUK"


@dataclass(frozen=True, kw_only=True)
class EnterDuressPin(SecretPrompt, msg="ENTER_DURESS_PIN"):
    """Asks for the PIN that opens another wallet of a new wallet card. It differs from the PIN."""

    LABEL = "duress PIN"
    COMMAND = "SET_DURESS_PIN"


@dataclass(frozen=True, kw_only=True)
class EnterPassphrase(SecretPrompt, msg="ENTER_PASSPHRASE"):
    """Asks for the passphrase that belongs to the words of a wallet: 1 to 256 printable ASCII characters."""

    LABEL = "passphrase"
    COMMAND = "SET_PASSPHRASE"


@dataclass(frozen=True, kw_only=True)
class EnterPairingPassword(SecretPrompt, msg="ENTER_PAIRING_PASSWORD"):
    """Asks for the pairing password of a wallet card of version 3."""

    LABEL = "pairing password"
    COMMAND = "SET_PAIRING_PASSWORD"


@dataclass(frozen=True, kw_only=True)
class EnterWords(SecretPrompt, msg="ENTER_WORDS"):
    """Asks for the words at `positions`, which count from 1, or for all `count` words; with spaces between them."""

    LABEL = "words"
    COMMAND = "SET_WORDS"

    positions: tuple[int, ...] = ()
    count: int | None = None

    def __str__(self) -> str:
        if self.positions:
            return "words " + ", ".join(map(str, self.positions))
        return f"all {self.count} words"


@dataclass(frozen=True, kw_only=True)
class EnterPairingCode(SecretPrompt, msg="ENTER_PAIRING_CODE"):
    """Asks for the four digits that the other device shows. Compare the fingerprints."""

    LABEL = "pairing code"
    COMMAND = "SET_PAIRING_CODE"

    name: str = ""
    fingerprint: str = ""
    own_fingerprint: str = ""


@dataclass(frozen=True, kw_only=True)
class ConsentPrompt(Prompt):
    """Shows something, and waits until the user agrees."""

    COMMAND: ClassVar[str] = "ACCEPT"

    question: int | None = None

    def accept(self) -> None:
        """Agrees."""
        self._reply(self.COMMAND)

    def take(self, value: object) -> bool:
        if value is True:
            self.accept()
        return value is True

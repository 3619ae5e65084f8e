# SPDX-License-Identifier: Apache-2.0
"""The commands of badged: each is a method with the name of the command in lower case."""

from .core import CoreCommands
from .documents import DocumentCommands
from .doors import CredentialCommands, DoorCommands, RemoteCommands
from .eid import EIDCommands
from .keys import KeyCommands
from .mdocs import MdocCommands
from .mpin import MPinCommands
from .wallet import WalletCommands

__all__ = ["Commands"]


class Commands(
    CoreCommands,
    EIDCommands,
    WalletCommands,
    MPinCommands,
    KeyCommands,
    DoorCommands,
    CredentialCommands,
    DocumentCommands,
    MdocCommands,
    RemoteCommands,
):
    """All commands."""

# SPDX-License-Identifier: Apache-2.0
"""Why badged cannot be reached, refused a command, or ended a workflow without success."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any


class BadgedError(Exception):
    """The base of all errors of this package.

    `code` names the reason for programs. `text` says what happened, and `advice` what to do next; it is empty where
    the protocol gives none.
    """

    def __init__(self, code: str, text: str, advice: str = "") -> None:
        super().__init__(text + (f"; {advice}" if advice else ""))
        self.code = code
        self.text = text
        self.advice = advice


class ConnectError(BadgedError):
    """There is no connection to badged. `code` is NOT_RUNNING, PERMISSION_DENIED, INVALID_PATH or UNREACHABLE."""


class ConnectionEnded(BadgedError):
    """The connection has ended. `code` is CLOSED, or NOT_SERVED if badged serves no more clients."""


class ProtocolError(BadgedError):
    """The other side does not speak the protocol of badged. The connection is closed."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            "MALFORMED",
            f"the program at this socket does not speak badged's protocol: {cause}",
            "check the path of the socket, and update badged and this package to the same version",
        )


class NoAnswer(BadgedError, TimeoutError):
    """What was waited for did not come in time. The connection stays open."""

    def __init__(self, text: str) -> None:
        super().__init__("NO_ANSWER", text, "check badged: systemctl status badged")


class WorkflowRunning(BadgedError):
    """A workflow of this connection runs already, so another one cannot start."""

    def __init__(self) -> None:
        super().__init__(
            "WORKFLOW_RUNNING",
            "a workflow of this connection runs already",
            "wait until it has ended, cancel it, or open a second connection",
        )


class CommandError(BadgedError):
    """badged refused a command. `message` is its answer, and `command` the name of the command."""

    def __init__(self, command: str, code: str, text: str, advice: str, message: Mapping[str, Any]) -> None:
        super().__init__(code, text, advice)
        self.command = command
        self.message = message


class AccessDenied(CommandError):
    """The configuration of badged does not allow this command to this user."""

    def __init__(self, command: str, message: Mapping[str, Any]) -> None:
        self.missing = _texts(message.get("missing"))
        self.granted = _texts(message.get("granted"))
        text = f"badged does not allow {command} to this user"
        if self.missing:
            text += f": the permission {' and '.join(self.missing)} is missing"
        advice = "ask the administrator to add this user or group to [access] in /etc/badged/badged.conf"
        super().__init__(command, "ACCESS_DENIED", text, advice, message)


class BadState(CommandError):
    """The command is not possible now."""

    def __init__(self, command: str, message: Mapping[str, Any]) -> None:
        advice = "wait until the running workflow has ended, or cancel it"
        super().__init__(command, "BAD_STATE", f"{command} is not possible now", advice, message)


class UnknownCommand(CommandError):
    """badged does not know the command, or not at this API level."""

    def __init__(self, command: str, message: Mapping[str, Any]) -> None:
        text = f"badged does not know {command}"
        super().__init__(command, "UNKNOWN_COMMAND", text, "update badged, or set API level 3", message)


class WorkflowFailed(BadgedError):
    """A workflow ended without success.

    `code` is the reason as the page of the workflow lists it, such as `User_Cancelled`, `CARD_BLOCKED` or
    `INCORRECT_PIN`. `message` is the final message: it also says what has happened before the failure, such as
    `sent` of AUTH.
    """

    def __init__(self, code: str, text: str, message: Mapping[str, Any]) -> None:
        super().__init__(code, text)
        self.message = message


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""


def refusal(command: str, message: Mapping[str, Any], error_is_refusal: bool = True) -> CommandError | None:
    """The error that a direct answer tells, or None."""
    match message.get("msg"):
        case "ACCESS_DENIED":
            return AccessDenied(command, message)
        case "BAD_STATE":
            return BadState(command, message)
        case "UNKNOWN_COMMAND":
            return UnknownCommand(command, message)
        case "INVALID" | "INTERNAL_ERROR" as name:
            return CommandError(command, name, f"badged refused {command}: {_text(message, 'error')}", "", message)
        case "MPIN_RESULT":
            if message.get("status") == 0:
                return None
            code = _text(message, "statusCodeAsString")
            return CommandError(command, code, f"{command}: {_text(message, 'errorMessage')}", "", message)
        case "WALLET_ERROR":
            text = _text(message, "description") or _text(message, "reason")
            return CommandError(command, _text(message, "reason"), f"{command}: {text}", "", message)
        # The errors of the radio have an age, those of the command have none.
        case "SCAN" if "errorAgo" in message:
            return None
    error = message.get("error")
    if not error_is_refusal or error is None:
        return None
    if "description" in message:
        return CommandError(command, str(error), f"{command}: {_text(message, 'description')}", "", message)
    return CommandError(command, "REFUSED", f"badged refused {command}: {error}", "", message)


def connect_error(path: str, error: OSError) -> ConnectError:
    """The reason why connecting to this path failed, and what helps."""
    if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR):
        text = f"badged is not running: no program listens on {path}"
        return ConnectError("NOT_RUNNING", text, "start it: systemctl start badged; or name another socket")
    if error.errno in (errno.EACCES, errno.EPERM):
        advice = "become a member of the group badged (adduser USER badged) and log in again"
        return ConnectError("PERMISSION_DENIED", f"permission to use {path} denied", advice)
    if isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
        cause = "it accepts no connection"
    else:
        cause = os.strerror(error.errno) if error.errno else str(error)
    return ConnectError("UNREACHABLE", f"cannot connect to {path}: {cause}", "check badged: systemctl status badged")

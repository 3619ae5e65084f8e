# SPDX-License-Identifier: Apache-2.0
"""How commands are sent and answered: the base of the classes in `commands`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from . import _secrets
from ._core import Raw, without_none
from ._errors import ProtocolError, WorkflowFailed, refusal
from ._links import Link
from ._records import Message, parse
from ._workflow import Dialogue

M = TypeVar("M", bound=Message)
R = TypeVar("R")


class Calls:
    """Sends commands over a link."""

    #: Seconds that badged has for the answer to a command. Some commands ask a server first, which has a minute.
    timeout: float = 90.0

    _link: Link

    async def _raw(
        self, command: str, members: Mapping[str, Any], secret: bytearray | None = None, error_is_refusal: bool = True
    ) -> Raw:
        """Sends a command and waits for its direct answer. Throws what the answer refuses."""
        answers: list[Raw] = []
        request = self._link.core.expect(answers.append)
        try:
            self._link.send(_secrets.line(command, {**without_none(members), "request": request}, secret))
            await self._link.wait(lambda: bool(answers), self.timeout, f"the answer to {command}")
        except BaseException:
            self._link.core.forget(request)
            raise
        if error := refusal(command, answers[0], error_is_refusal):
            raise error
        return answers[0]

    async def _ask(
        self,
        command: str,
        answer: type[M],
        members: Mapping[str, Any] | None = None,
        secret: bytearray | None = None,
        error_is_refusal: bool = True,
    ) -> M:
        """As `_raw`, for an answer of this type."""
        message = parse(await self._raw(command, members or {}, secret, error_is_refusal))
        if not isinstance(message, answer):
            raise ProtocolError(f"{command} was answered with {message.msg}")
        return message

    def _dialogue(
        self,
        command: str,
        members: Mapping[str, Any],
        final: str,
        finish: Callable[[Raw], R | None],
    ) -> Dialogue[R]:
        """A workflow that ends with one of the messages `final`, separated by spaces."""
        names = final.split()
        return Dialogue(
            self._link, command, without_none(members), lambda raw: finish(raw) if raw["msg"] in names else None, self
        )


def failed(raw: Raw, code: object, text: object) -> WorkflowFailed:
    """A workflow has failed, as its final message says."""
    code = code if isinstance(code, str) and code else "UNKNOWN"
    return WorkflowFailed(code, text if isinstance(text, str) and text else f"{raw['msg']}: {code}", raw)

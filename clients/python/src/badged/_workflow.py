# SPDX-License-Identifier: Apache-2.0
"""Workflows: a dialogue with badged that may wait for a user, a card or a server."""

from __future__ import annotations

import collections
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from . import _secrets
from ._both import Asynchronous, Blocking, run_to_end
from ._core import MAXIMUM_UNREAD, Raw
from ._errors import BadgedError, BadState, ProtocolError, WorkflowFailed, WorkflowRunning, refusal
from ._links import Link
from ._records import Message, Prompt, parse

R = TypeVar("R")
P = ParamSpec("P")
Self = TypeVar("Self", bound="_Base[Any]")


class Dialogue(Generic[R]):
    """A workflow without input and output. The connection gives it the messages, in order."""

    def __init__(
        self,
        link: Link,
        command: str,
        members: Mapping[str, Any],
        finish: Callable[[Raw], R | None],
        daemon: Any = None,
    ) -> None:
        """`finish` returns the result that a final message tells, and throws the failure; None: it is not final."""
        self._link = link
        self._command = command
        self._members = members
        self._finish = finish
        self._daemon = daemon
        self._queue: collections.deque[tuple[Message, int]] = collections.deque()
        self._unread = 0
        #: The prompts that were asked. M-Pin asks for the PIN of a card and for its own one.
        self._prompts: set[tuple[Any, ...]] = set()
        self._request = ""
        #: The result, or why there is none; both None while the workflow runs.
        self.result: R | None = None
        self.failure: BadgedError | None = None
        self.is_started = False
        self._is_cancelled = False

    @property
    def is_over(self) -> bool:
        return self.result is not None or self.failure is not None

    async def start(self) -> None:
        """Sends the command, unless it was sent before."""
        if self.is_started:
            return
        core = self._link.core
        if core.dialogue is not None and not core.dialogue._is_cancelled:
            raise WorkflowRunning
        self.is_started = True
        # A workflow that was cancelled ends when its card lets it.
        await self._link.wait(lambda: core.dialogue is None, None, "the end of the workflow before")
        if self.is_over:
            return
        self._request = core.expect(lambda raw: self.take(raw, 0))
        core.dialogue = self
        try:
            self._link.send(_secrets.line(self._command, {**self._members, "request": self._request}))
        except BaseException:
            core.dialogue = None
            raise

    def take(self, raw: Raw, size: int) -> None:
        """A message of badged while this workflow runs."""
        try:
            self._take(raw, size)
        except BadgedError as error:
            self._over(error)
            if isinstance(error, ProtocolError):
                raise

    def _take(self, raw: Raw, size: int) -> None:
        if raw["msg"] == "BAD_STATE" and raw.get("request") != self._request:
            # The answer to a prompt that was over already. The next prompt comes, or the end.
            return
        if raw["msg"] in ("ACCESS_DENIED", "BAD_STATE", "INVALID", "UNKNOWN_COMMAND"):
            raise refusal(self._command, raw) or ProtocolError("a refusal without a reason")
        result = self._finish(raw)
        message = parse(raw)
        if isinstance(message, Prompt):
            kind = (message.msg, raw.get("backend"), raw.get("factor"))
            message.attach(self._answer, self._daemon, is_repeated=kind in self._prompts)
            self._prompts.add(kind)
        self._queue.append((message, size))
        self._unread += size
        if self._unread > MAXIMUM_UNREAD:
            raise ProtocolError("a workflow has too many messages")
        if result is not None:
            self.result = result
            self._over(None)

    def _over(self, failure: BadgedError | None) -> None:
        self.failure = failure
        if self._link.core.dialogue is self:
            self._link.core.dialogue = None

    def _answer(self, command: str, members: Mapping[str, Any], secret: bytearray | None) -> None:
        if command != "SET_ACCESS_RIGHTS":
            self._link.send(_secrets.line(command, members, secret))
            return

        # Only a choice that badged has taken is agreed to.
        def chosen(raw: Raw) -> None:
            error = refusal(command, raw)
            if error is None:
                self._link.send(_secrets.line("ACCEPT", {}))
            elif not isinstance(error, BadState):
                self._over(error)
                self.cancel(even_if_over=True)

        request = self._link.core.expect(chosen)
        self._link.send(_secrets.line(command, {**members, "request": request}))

    async def next(self) -> Message | None:
        """The next message; None after the last one. Throws why the workflow failed."""
        try:
            await self.start()
            await self._link.wait(lambda: bool(self._queue) or self.is_over, None, "a message")
        except WorkflowRunning:
            raise
        except BadgedError as error:
            self._over(error)
            raise
        if self._queue:
            message, size = self._queue.popleft()
            self._unread -= size
            return message
        if self.failure is not None:
            raise self.failure
        return None

    def cancel(self, even_if_over: bool = False) -> None:
        if self._is_cancelled or (self.is_over and not even_if_over):
            return
        self._is_cancelled = True
        if not self.is_started:
            self.is_started = True
            self._over(WorkflowFailed("User_Cancelled", "the workflow was cancelled before it began", {}))
            return
        # The end of the connection ends the workflow, too.
        with contextlib.suppress(BadgedError):
            self._link.send(_secrets.line("CANCEL", {}))

    def apply(self, message: Message, value: object) -> None:
        """Answers a prompt with what a handler returned, unless the handler has answered by itself."""
        if isinstance(message, Prompt) and not message.is_answered and not message.take(value):
            self.cancel()


class _Base(Generic[R]):
    """What both kinds of workflows have."""

    def __init__(self, dialogue: Dialogue[R]) -> None:
        self._dialogue = dialogue

    @property
    def result(self) -> R:
        """The result, after the last event. Throws why there is none."""
        if self._dialogue.failure is not None:
            raise self._dialogue.failure
        if self._dialogue.result is None:
            raise ValueError("the workflow has not ended yet")
        return self._dialogue.result

    @property
    def is_over(self) -> bool:
        """Whether the workflow has ended."""
        return self._dialogue.is_over

    def cancel(self) -> None:
        """Sends CANCEL, once. The events go on to the end of the workflow, which says what has happened."""
        self._dialogue.cancel()

    def insert_card(
        self,
        reader: str = "Simulator",
        card: Mapping[str, Any] | None = None,
        simulator: Mapping[str, Any] | None = None,
    ) -> None:
        """Puts a card into a virtual reader: SET_CARD. A refusal is an `InsertCard` with `error`."""
        members: dict[str, Any] = {"name": reader}
        members |= {} if card is None else {"card": dict(card)}
        members |= {} if simulator is None else {"simulator": dict(simulator)}
        self._dialogue._link.send(_secrets.line("SET_CARD", members))

    def set_engagement(self, value: str) -> None:
        """Gives a reading of a phone the text of its QR code, at `InsertCard`: SET_ENGAGEMENT."""
        self._dialogue._link.send(_secrets.line("SET_ENGAGEMENT", {"value": value}))


class Workflow(_Base[R]):
    """A workflow of a `Daemon`. The loop over it gives its messages, and throws `WorkflowFailed` at the end.

    Leaving the loop early cancels the workflow, and so does the end of a `with` block.
    """

    def __iter__(self) -> Generator[Message, None, None]:
        try:
            while (message := run_to_end(self._dialogue.next())) is not None:
                yield message
        finally:
            self.cancel()

    def run(self, handler: Callable[[Message], object]) -> R:
        """Calls the handler with each message, answers the prompts with what it returns, and returns the result.

        A prompt for a secret is answered with a bytearray, one that shows something with True, and ACCESS_RIGHTS with
        True or the optional rights. None and False cancel the workflow. A handler may also answer by itself.
        """
        with self:
            for message in self:
                self._dialogue.apply(message, handler(message))
        return self.result

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


class AsyncWorkflow(_Base[R]):
    """A workflow of an `AsyncDaemon`. The loop over it gives its messages, and throws `WorkflowFailed` at the end.

    Leaving the loop early cancels the workflow, and so do the end of an `async with` block and the cancellation of the
    task.
    """

    async def __aiter__(self) -> AsyncIterator[Message]:
        try:
            while (message := await self._dialogue.next()) is not None:
                yield message
        finally:
            self.cancel()

    async def run(self, handler: Callable[[Message], object]) -> R:
        """As `Workflow.run`. The handler may be a coroutine function."""
        async with self:
            async for message in self:
                value = handler(message)
                self._dialogue.apply(message, await value if inspect.isawaitable(value) else value)
        return self.result

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()


class starts(Generic[P, R]):
    """Makes a method that starts a workflow: of `Workflow` in a `Blocking` class, of `AsyncWorkflow` in the other."""

    def __init__(self, function: Callable[Concatenate[Any, P], Dialogue[R]]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> starts[P, R]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, Workflow[R]]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, AsyncWorkflow[R]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        kind = AsyncWorkflow if isinstance(instance, Asynchronous) else Workflow

        def method(*arguments: P.args, **named: P.kwargs) -> Any:
            return cast(Any, kind)(self.function(instance, *arguments, **named))

        method.__doc__ = self.__doc__
        return method

# SPDX-License-Identifier: Apache-2.0
"""Methods that are written once and exist twice: blocking in `Daemon`, awaited in `AsyncDaemon`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")


class Blocking:
    """Marks a class whose methods block."""


class Asynchronous:
    """Marks a class whose methods are coroutines."""


def run_to_end(coroutine: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine that waits for nothing but blocking calls, so that it never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call has suspended")


class both(Generic[P, R]):
    """Makes a method of a coroutine function: as it is in `Asynchronous` classes, run to its end in `Blocking` ones."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> both[P, R]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Asynchronous, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        if isinstance(instance, Asynchronous):
            return functools.partial(self.function, instance)

        @functools.wraps(self.function)
        def method(*arguments: P.args, **named: P.kwargs) -> R:
            return run_to_end(self.function(instance, *arguments, **named))

        return self if instance is None else method

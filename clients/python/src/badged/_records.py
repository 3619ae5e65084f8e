# SPDX-License-Identifier: Apache-2.0
"""Messages of badged as typed objects: each is a dataclass whose fields are checked against the JSON."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from ._errors import ProtocolError

T = TypeVar("T", bound="Record")
F = TypeVar("F")

#: The class of each message.
MESSAGES: dict[str, type[Message]] = {}


def named(name: str, default: Any = dataclasses.MISSING, *, secret: bool = False) -> Any:
    """A field whose JSON name is not its name in camel case. A secret is not in the repr."""
    return dataclasses.field(default=default, repr=not secret, metadata={"json": name})


def hidden(default: Any = dataclasses.MISSING) -> Any:
    """A field that is a secret, and so not in the repr."""
    return dataclasses.field(default=default, repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """An object of the protocol. `raw` has all its members, also those that this package does not know."""

    raw: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)

    @classmethod
    def choose(cls: type[T], raw: Mapping[str, Any]) -> type[T]:
        """The class for this object: this one, or one below it."""
        return cls

    @classmethod
    def decode(cls: type[T], raw: object, where: str = "") -> T:
        """Reads the object. A missing member or one of a wrong type is a `ProtocolError`."""
        where = where or cls.__name__
        if not isinstance(raw, dict):
            raise ProtocolError(f"{where} is not an object")
        chosen = cls.choose(raw)
        values: dict[str, Any] = {}
        for name, key, type_, has_default in _fields(chosen):
            if key in raw:
                values[name] = _value(type_, raw[key], f"{where}.{key}")
            elif not has_default:
                raise ProtocolError(f"{where} has no member {key}")
        return chosen(raw=raw, **values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Message(Record):
    """A message of badged. Messages that this package does not know are of this class."""

    MSG: ClassVar[str] = ""

    def __init_subclass__(cls, msg: str = "") -> None:
        super().__init_subclass__()
        if msg:
            cls.MSG = msg
            MESSAGES[msg] = cls

    @property
    def msg(self) -> str:
        """The name of the message, such as ENTER_PIN."""
        return str(self.raw.get("msg", self.MSG))


class Event(Message):
    """A message that comes at any time, whether a workflow runs or not."""


class Step(Message):
    """A message of a workflow."""


class Prompt(Step):
    """A message with which a workflow waits for an answer of the program."""

    #: What the workflow does with the answer; the workflow sets it.
    _send: Callable[[str, Mapping[str, Any], bytearray | None], None] | None

    #: The connection of the workflow; the workflow sets it.
    _daemon: Any
    #: Whether this prompt was answered.
    is_answered: bool
    #: Whether the workflow has asked such a prompt before, for example because the PIN was wrong.
    is_repeated: bool

    def attach(
        self,
        send: Callable[[str, Mapping[str, Any], bytearray | None], None],
        daemon: Any,
        is_repeated: bool = False,
    ) -> None:
        """Tells the prompt where its answer goes. The workflow calls this."""
        object.__setattr__(self, "_send", send)
        object.__setattr__(self, "_daemon", daemon)
        object.__setattr__(self, "is_answered", False)
        object.__setattr__(self, "is_repeated", is_repeated)

    def _reply(self, command: str, members: Mapping[str, Any] | None = None, secret: bytearray | None = None) -> None:
        send = getattr(self, "_send", None)
        if send is None:
            raise ValueError(f"{self.msg} belongs to no workflow")
        number = self.raw.get("question")
        question = {} if number is None else {"question": number}
        send(command, {**(members or {}), **question}, secret)
        object.__setattr__(self, "is_answered", True)

    def take(self, value: object) -> bool:
        """Answers with what a handler returned. False: the handler does not want to answer."""
        raise NotImplementedError


def parse(raw: Mapping[str, Any]) -> Message:
    """The message as an object of its class."""
    name = str(raw.get("msg"))
    return MESSAGES.get(name, Message).decode(raw, name)


def camel(name: str) -> str:
    """The name in camel case, as members of the protocol have it."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


#: For each field its name, its JSON name, its type, and whether it has a default.
_Fields = tuple[tuple[str, str, Any, bool], ...]
_fields_of: dict[type, _Fields] = {}


def _fields(cls: type[Record]) -> _Fields:
    if cls not in _fields_of:
        _fields_of[cls] = tuple(_find_fields(cls))
    return _fields_of[cls]


def _find_fields(cls: type[Record]) -> Iterator[tuple[str, str, Any, bool]]:
    hints = typing.get_type_hints(cls)
    return (
        (field.name, field.metadata.get("json", camel(field.name)), hints[field.name], _has_default(field))
        for field in dataclasses.fields(cls)
        if field.name != "raw"
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _value(type_: Any, value: object, where: str) -> Any:
    if type_ is Any:
        return value
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        choices = [choice for choice in arguments if choice is not type(None)]
        # No union of this package has two types of objects.
        for choice in choices:
            if len(choices) == 1 or (isinstance(choice, type) and type(value) is choice):
                return _value(choice, value, where)
    elif origin is tuple:
        if isinstance(value, list):
            return tuple(_value(arguments[0], item, f"{where}[{n}]") for n, item in enumerate(value))
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(value, dict):
            return {key: _value(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    elif issubclass(type_, Record):
        return type_.decode(value, where)
    elif type(value) is type_:
        return value
    raise ProtocolError(f"{where} has a value of a wrong type")

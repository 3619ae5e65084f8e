# SPDX-License-Identifier: Apache-2.0
"""The package has every command and every message of docs/protocol.md and docs/protocol/."""

from __future__ import annotations

import inspect
import json
import re
import typing
import unittest
from collections.abc import Iterator, Mapping
from typing import Any

from support import ROOT, Conversation, Fake

import badged
from badged._both import both
from badged._workflow import starts

#: Only connections of the browser port may send it.
NOT_FOR_CLIENTS = {"ACTIVATE"}
#: Commands of a workflow, which are methods of it or of its prompts.
OF_WORKFLOWS = {"SET_CARD": badged.Workflow.insert_card, "CANCEL": badged.Workflow.cancel}
OF_WORKFLOWS["SET_ENGAGEMENT"] = badged.Workflow.set_engagement
#: The other name of these commands is sent.
SYNONYMS = {"WALLET_CHECK": "PASS_CHECK", "WALLET_PREPARE": "PASS_PREPARE", "WALLET_SAVE": "PASS_SAVE"}


def names(column: str) -> set[str]:
    """What the tables of the protocol have in the first column of this title."""
    found: set[str] = set()
    for page in [ROOT / "docs/protocol.md", *sorted((ROOT / "docs/protocol").glob("*.md"))]:
        inside = False
        for line in page.read_text().splitlines():
            first = line.split("|")[1].strip() if line.startswith("|") else ""
            inside = inside and bool(first) or first == column
            if inside and first != column:
                found |= set(re.findall(r"`([A-Z_]{2,})`", first))
    return found


def prompts() -> Iterator[type[badged.Prompt]]:
    return (cls for cls in badged.MESSAGES.values() if issubclass(cls, badged.Prompt))


def example(annotation: Any) -> Any:
    """A value for an argument of this type."""
    for choice in typing.get_args(annotation) or (annotation,):
        values: dict[Any, Any] = {str: "x", int: 1, bool: True}
        if choice in values:
            return values[choice]
        origin = typing.get_origin(choice) or choice
        if issubclass(origin, Mapping):
            return {"x": "y"}
    return ["x"]


class Commands(unittest.TestCase):
    def answers(self) -> dict[str, type[badged.Prompt]]:
        """The command that answers each prompt, as it is sent."""
        found: dict[str, type[badged.Prompt]] = {}

        def send(command: str, members: Mapping[str, Any], secret: bytearray | None) -> None:
            found[command] = cls

        raw: dict[str, Any] = {"question": 7, "cause": "", "chat": {"optional": ["Address"]}, "apiParams": {}}
        raw |= {"puk": "", "mnemonics": [], "address": "", "privateKey": "", "operation": "sign"}
        raw |= {"workflowContext": {}, "contextEntity": {"entityType": "", "entity": {}}}
        for cls in prompts():
            prompt = cls.decode({**raw, "msg": cls.MSG})
            prompt.attach(send, None)
            match prompt:
                case badged.SecretPrompt():
                    prompt.answer(bytearray(b"1"))
                case badged.RegisterDevice():
                    prompt.answer({})
                case badged.AccessRights():
                    prompt.accept(["Address"])
                    prompt.accept()
                case badged.ConsentPrompt() | badged.Pause():
                    prompt.accept()
                case _:
                    self.fail(f"{cls} has no answer")
            self.assertTrue(prompt.is_answered)
        return found

    def test_every_command_has_a_method(self) -> None:
        documented = names("Command")
        self.assertGreater(len(documented), 80)
        answers = self.answers()
        for name in sorted(documented - NOT_FOR_CLIENTS - OF_WORKFLOWS.keys() - answers.keys()):
            with self.subTest(name):
                self.assertTrue(hasattr(badged.Daemon, name.lower()), f"no method for {name}")

    def test_every_method_sends_its_command(self) -> None:
        """Each is called with an example of each argument; the daemon refuses it, and the error names the command."""
        methods = [(n, m) for n, m in inspect.getmembers(badged.Daemon) if isinstance(m, both | starts)]
        for name, method in methods:
            command = name.upper()
            aliases = {"AUTHENTICATE": "RUN_AUTH", "CHANGE_PIN": "RUN_CHANGE_PIN", **SYNONYMS}
            aliases["READ_DOCUMENT"] = "RUN_READ_DOCUMENT"
            aliases["READ_MDOC"] = "RUN_READ_MDOC"
            command = aliases.get(command, command)
            if command not in names("Command"):
                self.assertIn(name, ("request", "wait_for", "wait_for_card"))
                continue
            with self.subTest(name):
                hints = typing.get_type_hints(method.function)
                parameters = list(inspect.signature(method.function).parameters.values())[1:]
                values = {p.name: example(hints[p.name]) for p in parameters if p.name != "secret"}
                sent: dict[str, Any] = {}

                def serve(talk: Conversation, sent: dict[str, Any] = sent) -> None:
                    sent.update(talk.answer(msg="ACCESS_DENIED", error="X", missing=["cards"], granted=[]))

                with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
                    result = getattr(daemon, name)
                    with self.assertRaises(badged.AccessDenied) as caught:
                        done = result(**values)
                        list(done)
                self.assertEqual(caught.exception.command, command)
                self.assertEqual(caught.exception.missing, ("cards",))
                self.assertEqual(sent["cmd"], command)
                # Every argument arrives: beside cmd and request there is a member for each.
                self.assertEqual(len(sent) - 2, len(values), sent)

    def test_every_prompt_has_its_command(self) -> None:
        self.assertLessEqual(self.answers().keys(), names("Command"))


class Messages(unittest.TestCase):
    def test_every_message_has_a_class(self) -> None:
        documented = names("Message")
        self.assertGreater(len(documented), 70)
        refusals = {"ACCESS_DENIED", "BAD_STATE", "UNKNOWN_COMMAND", "INVALID", "INTERNAL_ERROR"}
        self.assertEqual(documented - badged.MESSAGES.keys() - refusals, set(), "messages without a class")
        self.assertEqual(badged.MESSAGES.keys() - documented, set(), "classes without a message")

    def test_every_class_can_be_imported(self) -> None:
        for cls in badged.MESSAGES.values():
            self.assertIn(cls.__name__, badged.__all__)
            self.assertIs(getattr(badged, cls.__name__), cls)

    def test_secrets_are_not_shown(self) -> None:
        raw: dict[str, Any] = {"msg": "SHOW_PUK", "puk": "314159265358", "question": 1}
        message = badged.ShowPuk.decode(raw)
        self.assertEqual(message.puk, "314159265358")
        self.assertNotIn("314159265358", repr(message))
        self.assertNotIn("314159265358", str(message))

    def test_unknown_members_and_messages_are_kept(self) -> None:
        from badged._records import parse

        message = parse({"msg": "NEWS", "text": "x"})
        self.assertEqual((type(message), message.msg, message.raw["text"]), (badged.Message, "NEWS", "x"))
        card = badged.Card.decode({"kind": "passport", "country": "UTO"})
        self.assertEqual((card.kind, card.raw["country"]), ("passport", "UTO"))

    def test_what_came_of_a_value_is_told(self) -> None:
        kinds: list[type[badged.SecretPrompt]] = [badged.EnterCan, badged.EnterPuk]
        for kind in kinds:
            self.assertTrue(kind.decode({"question": 1, "error": "E", "unanswered": True}).unanswered)
            self.assertFalse(kind.decode({"question": 1, "error": "E"}).unanswered)
        self.assertTrue(badged.EnterPairingPassword.decode({"question": 1, "error": "E", "wrong": True}).wrong)

    def test_wrong_types_are_errors(self) -> None:
        wrong: list[tuple[type[badged.Record], Any]] = [
            (badged.Reader, {"name": 5}),
            (badged.Reader, {}),
            (badged.Reader, {"name": "x", "attached": 1}),
            (badged.Reader, {"name": "x", "card": []}),
            (badged.Reader, {"name": "x", "card": {"kind": "eid", "retryCounter": "3"}}),
            (badged.Reader, {"name": "x", "card": {"kind": "eid", "retryCounter": True}}),
            (badged.ReaderList, {"readers": {}}),
            (badged.ReaderList, {"readers": [1]}),
            (badged.Info, {"VersionInfo": {"Name": None}}),
            (badged.AccessRights, {"chat": {"required": ["a", 1]}}),
            (badged.EnterPin, []),
        ]
        for cls, raw in wrong:
            with self.subTest(cls=cls.__name__, raw=json.dumps(raw)), self.assertRaises(badged.ProtocolError):
                cls.decode(raw)


if __name__ == "__main__":
    unittest.main()

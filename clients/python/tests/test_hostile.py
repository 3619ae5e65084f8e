# SPDX-License-Identifier: Apache-2.0
"""Daemons that send wrong things, and secrets on their way."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable
from typing import Any

from support import LIMIT, Conversation, Fake

import badged
from badged import _secrets
from badged._core import MAXIMUM_LINE, MAXIMUM_UNREAD

BAD_LINES: dict[str, bytes] = {
    "not JSON": b"hello\n",
    "an array": b"[1]\n",
    "no msg": b"{}\n",
    "msg is a number": b'{"msg":1}\n',
    "deep": b'{"msg":' + b"[" * 200_000 + b"\n",
    "a huge number": b'{"msg":"X","n":' + b"9" * 10_000 + b"}\n",
    "NaN": b'{"msg":"X","n":NaN}\n',
    "not UTF-8": b'{"msg":"\xff"}\n',
    "a long line": b'{"msg":"' + b"x" * MAXIMUM_LINE + b'"}\n',
    "an endless line": b"x" * (MAXIMUM_LINE + (1 << 17)),
    "a reader without a name": b'{"msg":"READER"}\n',
    "a bad event": b'{"msg":"CREDENTIAL","reader":1}\n',
}


class HostileDaemons(unittest.TestCase):
    def test_wrong_lines_end_the_connection_with_an_error(self) -> None:
        for name, line in BAD_LINES.items():

            def serve(talk: Conversation, line: bytes = line) -> None:
                talk.next()
                talk.send(line)
                talk.until_closed()

            with self.subTest(name), Fake(serve) as fake, badged.connect(fake.socket) as daemon:
                with self.assertRaises(badged.ProtocolError):
                    daemon.get_info()
                with self.assertRaises(badged.ProtocolError):
                    daemon.get_info()

    def test_wrong_lines_end_the_asynchronous_connection(self) -> None:
        async def ask(path: str) -> None:
            async with badged.connect_async(path) as daemon:
                with self.assertRaises(badged.ProtocolError):
                    await daemon.get_info()

        for name, line in BAD_LINES.items():

            def serve(talk: Conversation, line: bytes = line) -> None:
                talk.next()
                talk.send(line)
                talk.until_closed()

            with self.subTest(name), Fake(serve) as fake:
                asyncio.run(ask(fake.socket))

    def test_an_answer_of_another_kind_is_an_error(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.answer(msg="HEALTH", checks=[])
            talk.answer(msg="HEALTH", checks=[{"name": "x"}])
            talk.answer(msg="HEALTH", checks=[{"name": "x", "ok": False, "cause": "c"}])
            talk.until_closed()

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            with self.assertRaises(badged.ProtocolError):
                daemon.get_info()
            with self.assertRaises(badged.ProtocolError):
                daemon.get_health()
            self.assertEqual(daemon.get_health().checks[0].cause, "c")

    def test_wrong_messages_in_a_workflow_are_errors(self) -> None:
        messages: list[dict[str, Any]] = [
            {"msg": "AUTH", "result": 5},
            {"msg": "ENTER_PIN", "question": "x"},
            {"msg": "ACCESS_RIGHTS"},
            {"msg": "AUTH", "result": {"major": "x#error", "reason": 5}},
        ]
        for message in messages:

            def serve(talk: Conversation, message: dict[str, Any] = message) -> None:
                talk.next()
                talk.send({"msg": "AUTH"}, message)
                talk.until_closed()

            with (
                self.subTest(json.dumps(message)),
                Fake(serve) as fake,
                badged.connect(fake.socket) as daemon,
                self.assertRaises(badged.ProtocolError),
            ):
                list(daemon.authenticate("https://example.org"))

    def test_a_flood_of_events_is_bounded(self) -> None:
        text = "x" * 10_000
        count = MAXIMUM_UNREAD // 10_000 + 50

        def serve(talk: Conversation) -> None:
            talk.send(*({"msg": "SHOW_UI", "module": f"{n}-{text}"} for n in range(count)))
            talk.answer(msg="API_LEVEL", current=3)
            talk.until_closed()

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            daemon.get_api_level()
            self.assertGreater(daemon.lost_events, 0)
            first = daemon.wait_for(badged.ShowUI)
            self.assertEqual(int(first.module.split("-")[0]), daemon.lost_events)

    def test_a_flood_in_a_workflow_is_an_error(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.next()
            talk.send({"msg": "CHANGE_PIN"})
            talk.next()
            line = {"msg": "STATUS", "workflow": "x" * 100_000}
            talk.send(*(line for _ in range(MAXIMUM_UNREAD // 100_000 + 10)))
            talk.until_closed()

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            change = iter(daemon.change_pin())
            next(change)
            with self.assertRaises(badged.ProtocolError):
                daemon.get_info()

    def test_a_daemon_that_is_full_says_so(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.send({"msg": "INTERNAL_ERROR", "error": "too many clients"})

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            with self.assertRaises(badged.ConnectionEnded) as caught:
                daemon.get_info()
            self.assertEqual(caught.exception.code, "NOT_SERVED")
            self.assertIn("too many clients", caught.exception.text)

    def test_no_answer_is_an_error_and_the_late_answer_is_dropped(self) -> None:
        late = threading.Event()

        def serve(talk: Conversation) -> None:
            command = talk.next()
            late.wait(LIMIT)
            talk.send({"msg": "API_LEVEL", "current": 1, "request": command["request"]})
            talk.answer(msg="API_LEVEL", current=2)
            talk.until_closed()

        with Fake(serve) as fake, badged.connect(fake.socket, timeout=0.05) as daemon:
            with self.assertRaises(badged.NoAnswer):
                daemon.get_api_level()
            late.set()
            daemon.timeout = LIMIT
            self.assertEqual(daemon.get_api_level().current, 2)

    def test_another_thread_closes_the_connection(self) -> None:
        with Fake(lambda talk: talk.until_closed()) as fake, badged.connect(fake.socket) as daemon:
            threading.Timer(0.05, daemon.close).start()
            self.assertEqual(list(daemon.events()), [])


class Secrets(unittest.TestCase):
    def test_a_line_is_what_json_would_write(self) -> None:
        for text in ["123456", 'a"b\\c\n\x1f', "wörter ✓", ""]:
            secret = bytearray(text.encode())
            line = _secrets.line("SET_PIN", {"question": 3}, secret)
            self.assertEqual(json.loads(line), {"cmd": "SET_PIN", "question": 3, "value": text})
            self.assertTrue(line.endswith(b"\n"))
            self.assertEqual(secret, bytearray(len(secret)), "the secret is not wiped")

    def test_only_a_bytearray_is_a_secret(self) -> None:
        for value in ["123456", b"123456"]:
            with self.assertRaises(TypeError):
                _secrets.line("SET_PIN", {}, value)  # type: ignore[arg-type]

    def test_sent_lines_are_wiped(self) -> None:
        def serve(talk: Conversation) -> None:
            for _ in range(2):
                talk.answer(msg="KEY", id="1", protocol="otp")
            talk.until_closed()

        lines: list[bytearray] = []
        original = _secrets.line

        def watched(*arguments: Any) -> bytearray:
            lines.append(original(*arguments))
            return lines[-1]

        async def send(path: str) -> None:
            async with badged.connect_async(path) as daemon:
                await daemon.new_key(bytearray(b"MFRGGZDF"), protocol="otp")

        _secrets.line = watched  # type: ignore[assignment]
        try:
            with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
                secret = bytearray(b"MFRGGZDF")
                daemon.new_key(secret, protocol="otp")
                self.assertEqual(secret, bytearray(8))
            with Fake(serve) as fake:
                asyncio.run(send(fake.socket))
        finally:
            _secrets.line = original
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertEqual(line, bytearray(len(line)))

    def test_lines_that_badged_does_not_read_are_wiped_at_the_end(self) -> None:
        async def send(path: str) -> None:
            daemon = await badged.connect_async(path)
            # More than the socket takes.
            secrets = [bytearray(b"x" * 500_000) for _ in range(4)]
            for secret in secrets:
                daemon.send("SET_WORDS", {}, secret)
            unsent = list(daemon._link._unsent)  # type: ignore[attr-defined]
            self.assertGreater(len(unsent), 0)
            daemon.close()
            for line in unsent:
                self.assertEqual(line, bytearray(len(line)))

        done = threading.Event()
        with Fake(lambda talk: done.wait(LIMIT)) as fake:
            try:
                asyncio.run(send(fake.socket))
            finally:
                done.set()

    def test_without_a_terminal_a_line_answers_one_prompt(self) -> None:
        reader = {"name": "R", "insertable": False, "attached": True, "keypad": False, "card": None}

        def serve(talk: Conversation) -> None:
            talk.answer(msg="CHANGE_PIN")
            talk.send({"msg": "ENTER_PIN", "question": 1, "reader": reader})
            self.assertEqual(talk.next()["value"], "000000")
            talk.send({"msg": "ENTER_PIN", "question": 2, "reader": reader})
            self.assertEqual(talk.next()["cmd"], "CANCEL")
            talk.send({"msg": "CHANGE_PIN", "success": False, "reason": "User_Cancelled"})

        with Fake(serve) as fake:
            script = f"import badged\nbadged.connect({fake.socket!r}).change_pin().run(badged.ask_in_terminal)"
            said = self.run_without_terminal(script, b"000000\n654321\n")
        self.assertIn("PIN is asked for again", said)

    def run_without_terminal(self, script: str, lines: bytes) -> str:
        """Runs a script with these lines as standard input. Returns its standard error."""
        # A session of its own has no terminal.
        child = subprocess.run(
            [sys.executable, "-c", script],
            input=lines,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            check=False,
        )
        return child.stderr.decode()

    def test_consent_shows_who_asks_and_leaves_the_next_line(self) -> None:
        reader = {"name": "R", "insertable": False, "attached": True, "keypad": False, "card": None}
        description = {"subjectName": "A\u202e\x1b[2J\nAddress: x", "subjectUrl": "https://a.example", "purpose": "why"}

        def serve(talk: Conversation) -> None:
            talk.answer(msg="AUTH")
            chat = {"required": ["GivenNames"], "optional": [], "effective": ["GivenNames"]}
            talk.send(
                {"msg": "ACCESS_RIGHTS", "chat": chat, "aux": {"requiredAge": "18"}, "transactionInfo": "1\r2"},
            )
            talk.answer(msg="CERTIFICATE", description=description, validity={})
            self.assertEqual(talk.next()["cmd"], "ACCEPT")
            talk.send({"msg": "ENTER_PIN", "question": 1, "reader": reader})
            self.assertEqual(talk.next()["value"], "123456")
            talk.send({"msg": "AUTH", "result": {"major": "x#ok"}})

        blocking = "badged.connect({0!r}).authenticate('https://a.example').run(badged.ask_in_terminal)"
        later = (
            "import asyncio\nasync def run():\n async with badged.connect_async({0!r}) as daemon:\n"
            "  await daemon.authenticate('https://a.example').run(badged.ask_in_terminal)\nasyncio.run(run())"
        )
        for script in (blocking, later):
            with self.subTest(script), Fake(serve) as fake:
                script = "import badged\n" + script.format(fake.socket)
                said = self.run_without_terminal(script, b"yes\n123456\n").split("\n")
            self.assertIn("Service: A??[2J Address: x", said)
            self.assertIn("Address: https://a.example", said)
            self.assertIn("Transaction: 1 2", said)
            self.assertTrue(any(line.endswith("years old: 18") for line in said))

    def test_secrets_of_a_wallet_are_only_shown_in_a_terminal(self) -> None:
        def serve(talk: Conversation) -> None:
            talk.next()
            talk.send({"msg": "SHOW_PUK", "question": 1, "puk": "123456789012", "userId": "u"})
            self.assertEqual(talk.next()["cmd"], "CANCEL")

        with Fake(serve) as fake:
            run = f"badged.connect({fake.socket!r}).run_wallet('SETUP_DEVICE').run(badged.ask_in_terminal)"
            said = self.run_without_terminal("import badged\n" + run, b"yes\n")
        self.assertNotIn("123456789012", said)
        self.assertIn("only shown in a terminal", said)

    def test_a_change_is_told_once(self) -> None:
        context = {"workflowId": "1", "workflowType": "RESET_PIN"}
        error = {"code": "X", "message": "It failed. The PIN was changed.", "change": "The PIN was changed."}

        def serve(talk: Conversation) -> None:
            talk.next()
            talk.send({"msg": "FLOW_INTERRUPTED", "workflowContext": context, "error": error})

        with Fake(serve) as fake, badged.connect(fake.socket) as daemon:
            with self.assertRaises(badged.WorkflowFailed) as caught:
                daemon.run_wallet("RESET_PIN").run(badged.ask_in_terminal)
            self.assertEqual(caught.exception.text, error["message"])

    def run_in_terminal(self, body: Callable[[], bool], *dialogue: tuple[bytes, bytes]) -> bytes:
        """Runs the body in a terminal of its own, and answers each prompt. Returns what the terminal showed."""
        pid, terminal = pty.fork()
        if pid == 0:
            os._exit(0 if body() else 1)
        shown = b""
        for prompt, answer in dialogue:
            while not shown.endswith(prompt):
                shown += os.read(terminal, 100)
            os.write(terminal, answer)
        try:
            while chunk := os.read(terminal, 100):
                shown += chunk
        except OSError:  # the child has ended
            pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)
        return shown

    def test_a_secret_is_read_from_a_terminal_without_echo(self) -> None:
        shown = self.run_in_terminal(lambda: badged.read_secret("PIN: ") == bytearray(b"123456"), (b": ", b"123456\n"))
        self.assertNotIn(b"123456", shown)

    def ask_in_terminal(self, prompt: badged.SecretPrompt, wanted: bytes, *dialogue: tuple[bytes, bytes]) -> bytes:
        """Asks for a secret in a terminal, and expects this value. Returns what the terminal showed."""
        prompt.attach(lambda *_: None, None)
        return self.run_in_terminal(lambda: badged.ask_in_terminal(prompt) == bytearray(wanted), *dialogue)

    def test_a_value_that_the_user_chooses_is_read_twice(self) -> None:
        new = badged.EnterNewPin, badged.EnterNewPuk, badged.EnterDuressPin, badged.EnterPassphrase
        kinds: tuple[type[badged.SecretPrompt], ...] = new
        for kind in kinds:
            with self.subTest(kind.__name__):
                prompt = kind.decode({"msg": kind.MSG})
                first, again = f"{prompt}: ".encode(), f"{prompt} again: ".encode()
                answers = (first, b"1234\n"), (again, b"1243\n"), (first, b"1234\n"), (again, b"1234\n")
                shown = self.ask_in_terminal(prompt, b"1234", *answers)
                self.assertIn(b"The two values differ.", shown)
                self.assertNotIn(b"12", shown)

    def test_a_second_factor_is_called_so_and_may_be_none(self) -> None:
        new = badged.EnterNewPin.decode({"msg": "ENTER_NEW_PIN", "factor": 1})
        self.assertEqual((new.label, str(new)), ("new second factor", "new second factor"))
        self.assertEqual(badged.EnterPin.decode({"msg": "ENTER_PIN", "factor": 0}).label, "PIN")
        for optional, value in ((True, b"\n"), (True, b"card\n"), (False, b"card\n")):
            with self.subTest(optional=optional, value=value):
                prompt = badged.EnterPin.decode({"msg": "ENTER_PIN", "factor": 1, "optional": optional})
                self.ask_in_terminal(prompt, value[:-1], (b"second factor: ", value))

    def test_without_a_terminal_a_new_value_is_read_once(self) -> None:
        reader = {"name": "R", "insertable": False, "attached": True, "keypad": False, "card": None}

        def serve(talk: Conversation) -> None:
            talk.answer(msg="CHANGE_PIN")
            for number, kind in enumerate(("NEW_PIN", "NEW_PUK")):
                talk.send({"msg": f"ENTER_{kind}", "question": number, "reader": reader})
                self.assertEqual(talk.next()["value"], kind)
            talk.send({"msg": "CHANGE_PIN", "success": True})

        with Fake(serve) as fake:
            script = (
                f"import badged\nwith badged.connect({fake.socket!r}) as daemon:\n"
                "    daemon.change_pin().run(badged.ask_in_terminal)"
            )
            self.assertEqual(self.run_without_terminal(script, b"NEW_PIN\nNEW_PUK\n"), "new PIN: new PUK: ")

    def test_a_secret_of_a_wallet_does_not_stay_in_the_terminal(self) -> None:
        question = badged.ShowPuk.decode({"msg": "SHOW_PUK", "question": 1, "puk": "123456789012"})
        shown = self.run_in_terminal(lambda: badged.ask_in_terminal(question) is True, (b"(yes) ", b"yes\n"))
        start, end = shown.index(b"\x1b[?1049h"), shown.index(b"\x1b[2J\x1b[?1049l")
        self.assertTrue(start < shown.index(b"123456789012") < end)
        self.assertNotIn(b"123456789012", shown[end:])


if __name__ == "__main__":
    unittest.main()

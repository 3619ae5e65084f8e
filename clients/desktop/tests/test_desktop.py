# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of badged-desktop that need no display. Tests/System/desktop.sh runs them."""

import asyncio
import gettext
import os
import re
import struct
import subprocess
import tempfile
import unicodedata
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from badged_desktop import foreign, language, session, texts

import badged

ROOT = Path(__file__).resolve().parents[3]
EID = (ROOT / "docs/protocol/eid.md").read_text()


def catalogue(content: str) -> bytes:
    """A compiled catalogue."""
    done = subprocess.run(["msgfmt", "-o", "-", "-"], input=content.encode(), capture_output=True, check=True)
    return done.stdout


HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'


class Language(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(language.load, self.folder.name + "/none")
        self.path = Path(self.folder.name, "de/LC_MESSAGES/badged.mo")
        self.path.parent.mkdir(parents=True)
        environment = patch.dict(os.environ, {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"})
        environment.start()
        self.addCleanup(environment.stop)

    def load(self, content: bytes) -> None:
        self.path.write_bytes(content)
        # gettext keeps a catalogue that it has read.
        gettext._translations.clear()  # type: ignore[attr-defined]
        language.load(self.folder.name)

    def test_german(self) -> None:
        self.load(catalogue(HEAD + 'msgid "For: {service}"\nmsgstr "Für: {service}"\n'))
        self.assertEqual(language._("For: {service}", service="X"), "Für: X")
        self.assertEqual(language._("Another text"), "Another text")

    def test_preferred(self) -> None:
        """The languages are those of badgectl."""
        for environment, languages in (
            ({}, []),
            ({"LANG": "de_DE.UTF-8"}, ["de_DE.UTF-8"]),
            ({"LC_ALL": "", "LC_MESSAGES": "de_AT", "LANG": "fr_FR"}, ["de_AT"]),
            ({"LC_ALL": "C", "LANGUAGE": "de"}, []),
            ({"LC_ALL": "C.UTF-8", "LANG": "de_DE", "LANGUAGE": "de"}, []),
            ({"LANG": "de_DE.UTF-8", "LANGUAGE": "en_GB:en:de"}, []),
            ({"LANG": "en_GB.UTF-8", "LANGUAGE": "de:en"}, ["de"]),
            ({"LANG": "en_GB.UTF-8"}, []),
        ):
            self.assertEqual(language.preferred(environment), languages)

    def test_english_first(self) -> None:
        os.environ["LANGUAGE"] = "en_GB:en:de"
        self.load(catalogue(HEAD + 'msgid "Cancel"\nmsgstr "Abbrechen"\n'))
        self.assertEqual(language._("Cancel"), "Cancel")

    def test_broken(self) -> None:
        whole = catalogue((ROOT / "po/de.po").read_text())
        offsets = struct.pack("<I", 0xFFFFFFF0)
        for content in (
            b"",
            b"no catalogue",
            whole[:100],
            whole[: len(whole) // 2],
            whole[:12] + offsets + whole[16:],
            whole[:200] + b"\xff" * (len(whole) - 200),
        ):
            self.load(content)
            self.assertEqual(language._("Cancel"), "Cancel")

    def test_other_version(self) -> None:
        for german in ("Für: {name}", "Für: {0}", "Für: {service.x}", "Für: {", "Für: {service!z}"):
            self.load(catalogue(HEAD + f'msgid "For: {{service}}"\nmsgstr "{german}"\n'))
            self.assertEqual(language._("For: {service}", service="X"), "For: X")


class Foreign(unittest.TestCase):
    HOSTILE = (
        "a\u202eb\u202c",
        "a\u2066b\u2069\u200e\u200f\u061c",
        "\u0301\u0301\u0301a",
        "a" + "\u0301" * 4000,
        "a\x00\x1b[2J\x07",
        "\ud800a\ue000\U000e0041",
        "a\u2028b\u2029c\x85d\x0be",
        "\u0600a\u00ad\ufeff",
        ">" + "\u0489" * 10,
    )

    def test_controls(self) -> None:
        for text in self.HOSTILE:
            for shown in (foreign.lines(text), foreign.line(text), foreign.address(text)):
                self.assertNotRegex(shown.replace("\n", ""), r"[\x00-\x1f\x7f-\x9f]")
                self.assertFalse({unicodedata.category(one) for one in shown} & {"Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

    def test_marks(self) -> None:
        for text in self.HOSTILE:
            run = 0
            before = "\n"
            for one in foreign.lines(text):
                run = run + 1 if unicodedata.category(one)[0] == "M" else 0
                self.assertLessEqual(run, foreign.MAXIMUM_MARKS)
                if run == 1:
                    self.assertTrue(before == foreign.CIRCLE or unicodedata.category(before)[0] in "LN")
                before = one
        self.assertEqual(foreign.lines("Müller, Ngọc, हिन्दी"), "Müller, Ngọc, हिन्दी")
        self.assertEqual(foreign.lines(unicodedata.normalize("NFD", "Ngọc")), unicodedata.normalize("NFD", "Ngọc"))

    def test_length(self) -> None:
        self.assertEqual(len(foreign.line("n" * 4000)), 201)
        self.assertEqual(foreign.line(" a\n b\t c "), "a b c")
        self.assertTrue(foreign.address("https://" + "a" * 4000 + ".evil.example").endswith(".evil.example"))
        for unit in ("x", "word "):
            paragraphs = foreign.lines(unit * 100_000).split("\n")
            self.assertLessEqual(max(map(len, paragraphs)), 2 * foreign.LONGEST_PARAGRAPH)
            self.assertEqual("".join(paragraphs), unit * 100_000)

    def test_quoted(self) -> None:
        shown = foreign.quoted("\u2069 evil \u202e")
        self.assertEqual(shown, "\u2068evil\u2069")


class Texts(unittest.TestCase):
    def test_reasons(self) -> None:
        """Each reason of the protocol has a text of its own kind."""
        part = EID[EID.index("## Failure reasons") :]
        sent = "".join(line for line in part[: part.index("\n## ", 5)].splitlines() if "never sent" not in line)
        reasons = re.findall(r"`([A-Z][A-Za-z0-9]*[a-z0-9](?:_[A-Za-z0-9]+)+)`", sent)
        self.assertGreater(len(reasons), 60)
        for reason in [*reasons, "Browser_Send_Failed"]:
            for changes_pin in (True, False):
                ending = texts.failure(reason, changes_pin)
                self.assertTrue(ending.title and ending.text and ending.remedy)
                self.assertNotIn("unexpected", ending.text, reason)
        self.assertIn("\u2068A_New_Reason\u2069", texts.failure("A_New_Reason\u202e", False).remedy)

    def test_rights(self) -> None:
        """Each right of the protocol has words."""
        part = EID[EID.index("**Rights**") :]
        names = re.findall(r"`([A-Z][A-Za-z]+)`", part[: part.index("\n\n- Rights")])
        self.assertEqual(len(names), 24)
        for name in names:
            same = ("Address", "Nationality", "Pseudonym")
            self.assertTrue(name in same or texts.right(name, {}) != name, name)
        self.assertIn("18", texts.right("AgeVerification", {"requiredAge": "18"}))
        aux = {"requiredAge": "46", "ageVerificationDate": "1980-02-29"}
        self.assertIn("1980", texts.right("AgeVerification", aux))
        for age in ("٣", "9999", "1\n2", 18, None):
            self.assertNotIn(str(age), texts.right("AgeVerification", {"requiredAge": age}))

    def test_cards(self) -> None:
        """Each state of a card has words of its own."""
        states = [{"retryCounter": tries} for tries in range(4)]
        states += [{"retryCounter": 0, "deactivated": True}, {"retryCounter": 0, "inoperative": True}]
        shown = set()
        for state in states:
            reader = {"name": "R", "attached": True, "card": {"kind": "eid", **state}}
            shown.add(texts.card(badged.Reader.decode(reader)))
        for card in (None, {}, {"kind": "keycard"}, {"kind": "newer"}):
            shown.add(texts.card(badged.Reader.decode({"name": "R", "attached": True, "card": card})))
        self.assertEqual(len(shown), 9)

    def test_questions(self) -> None:
        """The digits are those that the protocol permits."""
        for prompt, transport, digits in (
            (badged.EnterPin, False, (6,)),
            (badged.EnterPin, True, (5, 6)),
            (badged.EnterCan, True, (6,)),
            (badged.EnterPuk, True, (10,)),
            (badged.EnterNewPin, True, (6,)),
        ):
            question = texts.question(prompt.decode({"question": 1}), False, transport)
            self.assertEqual(question.digits, digits)
            self.assertEqual("SET_" + question.kind, prompt.COMMAND)
            self.assertTrue(texts.checking(question.kind))

    def test_last_value(self) -> None:
        """After a wrong PIN it is said, whatever the card asks for next."""
        for kind, was_void, next_kind, said in (
            ("PIN", False, "PIN", "That PIN was wrong."),
            ("PIN", False, "CAN", "That PIN was wrong."),
            ("PIN", False, "PUK", "That PIN was wrong."),
            ("PIN", False, "NEW_PIN", ""),
            ("CAN", False, "PIN", ""),
            ("PIN", True, "CAN", "The card left before it answered. Please type the value again."),
            ("", False, "PIN", ""),
        ):
            self.assertEqual(texts.last_value(kind, was_void, next_kind), said)

    def test_certificates(self) -> None:
        """Certificates that are over are not called missing."""
        for more, said in (({}, "are missing"), ({"lastDay": "2026-11-27"}, "were valid until 2026-11-27")):
            check = {"name": "trustAnchors", "ok": False, **more}
            (fault,) = texts.faults(badged.Health.decode({"msg": "HEALTH", "checks": [check]}))
            self.assertIn(said, fault)

    def test_pcscd(self) -> None:
        """pcscd that hangs is to be restarted; installing it again changes nothing."""
        check = {"name": "pcscd", "ok": False, "advice": "pcscd at X does not answer"}
        (fault,) = texts.faults(badged.Health.decode({"msg": "HEALTH", "checks": [check]}))
        self.assertIn("systemctl restart pcscd", fault)

    def test_drivers(self) -> None:
        """badged says why a reader cannot be used; it may be another cause than a missing libccid."""
        for more, said in (
            ({"advice": "plug X\u202e in again"}, "A card reader cannot be used: plug X in again"),
            ({"cause": "no power", "advice": "use a hub"}, "cannot be used: no power: use a hub"),
            ({}, "A card reader cannot be used."),
        ):
            check = {"name": "drivers", "ok": False, **more}
            (fault,) = texts.faults(badged.Health.decode({"msg": "HEALTH", "checks": [check]}))
            self.assertTrue(fault.endswith(said), fault)

    def test_obstacles(self) -> None:
        """badged says why a card cannot be used: an ID card may be fine, and in use elsewhere."""
        for error, said in (
            ("Reader 'R' is busy: wait", "Reader 'R' is busy: wait."),
            ("Take it out.\u202e", "Take it out."),
            ("", "The card cannot be used here."),
        ):
            event = badged.InsertCard.decode({"msg": "INSERT_CARD", "error": error, "reader": "R"})
            self.assertEqual(texts.obstacle(event), said)

    def test_unknown_pin(self) -> None:
        """The card is said to have left only if it has."""
        for reason, left in (("Change_Pin_No_SetEidPinCommand_Response", True), ("Change_Pin_Unrecoverable", False)):
            ending = texts.failure(reason, True)
            self.assertEqual((ending.title, "left" in ending.text), ("Was the PIN changed?", left))


class Played:
    """A workflow of badged and the window. `steps` are messages of badged, the outcomes of pinentry, and errors."""

    def __init__(self, kind: str, *steps: Any) -> None:
        self.steps = list(steps)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.ending = texts.Ending("", "")
        self.succeeded = False
        self.is_cancelled = False
        self.delay = 0.0
        self.outcome: Any = None
        self.dialogue = session.Dialogue(self, self, self, kind)  # type: ignore[arg-type]

    # The session and the window

    @property
    def view(self) -> Any:
        return self

    def began(self, _dialogue: object) -> None: ...

    def ended(self) -> None: ...

    def begin(self, _title: str, _text: str) -> None: ...

    def progress(self, text: str, _percent: int | None, *, notify: bool = False) -> None:
        self.said.append(text)

    def end(self, ending: texts.Ending, _url: str | None, succeeded: bool) -> None:
        self.ending, self.succeeded = ending, succeeded

    # badged

    async def get_reader_list(self) -> Any:
        return badged.ReaderList.decode({"msg": "READER_LIST", "readers": []})

    async def request(self, _command: str, members: dict[str, Any]) -> Any:
        self.asked.append(members["description"])
        self.outcome = asyncio.get_running_loop().create_future()
        return SimpleNamespace(raw={"outcome": await self.outcome})

    def cancel(self) -> None:
        self.is_cancelled = True

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> badged.Message:
        # The question of the message before is asked meanwhile.
        for _ in range(10):
            await asyncio.sleep(0)
        if self.is_cancelled:
            raise badged.WorkflowFailed("User_Cancelled", "cancelled", {})
        step = self.steps.pop(0)
        if isinstance(step, str):
            # badgectl may tell the outcome after the next message of badged.
            asyncio.get_running_loop().call_later(self.delay, self.outcome.set_result, step)
            step = self.steps.pop(0)
        elif self.outcome is not None and not self.outcome.done():
            # The question is over, and pinentry is closed.
            self.outcome.set_result("void")
        if isinstance(step, Exception):
            raise step
        return step


def enter(kind: type[badged.SecretPrompt], **members: Any) -> badged.Message:
    return kind.decode({"question": 1, **members})


AWAY = badged.InsertCard.decode({"msg": "INSERT_CARD"})
GONE = badged.ConnectionEnded("CLOSED", "badged has ended", "")


class Dialogues(unittest.TestCase):
    """What the window says of a value depends on what has happened to it."""

    def play(self, kind: str, *steps: Any, delay: float = 0) -> Played:
        async def play() -> Played:
            played = Played(kind, *steps)
            played.delay = delay
            await asyncio.wait_for(played.dialogue.run(), 60)
            return played

        return asyncio.run(play())

    def test_unblocked(self) -> None:
        for delay in (0, 0.05):
            played = self.play("unblock", enter(badged.EnterPuk), "sent", enter(badged.EnterPin), delay=delay)
            self.assertEqual((played.ending.title, played.succeeded), ("The PIN is unblocked", True))

    def test_another_card(self) -> None:
        """A PIN is not called unblocked if no PUK was typed, or if the card left before it answered."""
        for outcome in ([], ["sent"]):
            played = self.play("unblock", enter(badged.EnterPuk), *outcome, AWAY, enter(badged.EnterPin))
            self.assertEqual((played.ending.title, played.succeeded), ("The PIN is not blocked", False))

    def test_obstacle(self) -> None:
        """A card that another workflow uses is not to be taken out."""
        busy = badged.InsertCard.decode({"msg": "INSERT_CARD", "error": "Reader 'R' is busy: wait", "reader": "R"})
        self.assertIn("Reader 'R' is busy: wait.", self.play("change", busy, GONE).said)

    def test_card_away(self) -> None:
        """A card that left before anything was typed owes no answer."""
        for outcome, is_said in (([], False), (["sent"], True)):
            steps = [enter(badged.EnterPin), *outcome, AWAY, AWAY, enter(badged.EnterPin), GONE]
            self.assertEqual("The card left" in self.play("change", *steps).asked[1], is_said)

    def test_unanswered(self) -> None:
        """A value that the card got is not called one that it did not get."""
        for unanswered, said in ((True, "The card gave no answer"), (False, "was not given to the card")):
            again = enter(badged.EnterCan, error="E", unanswered=unanswered)
            played = self.play("change", enter(badged.EnterCan), "sent", again, GONE)
            self.assertIn(said, played.asked[1])

    def test_badged_ends(self) -> None:
        """The PIN is uncertain if the new one was sent, and only then."""
        start = [enter(badged.EnterPin), "sent", enter(badged.EnterNewPin)]
        refused = enter(badged.EnterNewPin, error="You must provide 6 digits")
        for steps, title in (
            (["sent", GONE], "Was the PIN changed?"),
            ([GONE], "badged is not running"),
            (["sent", refused, GONE], "badged is not running"),
        ):
            self.assertEqual(self.play("change", *start, *steps).ending.title, title)

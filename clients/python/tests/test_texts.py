# SPDX-License-Identifier: Apache-2.0
"""Texts of badged in another language."""

from __future__ import annotations

import unittest
from typing import Any

import badged

GERMAN = {
    "{0}: {1}": "{0}; {1}",
    "No connection to {0}: {1}": "{1}, also keine Verbindung zu {0}",
    "{0} is away": "{0} ist weg",
    "begin again": "noch einmal beginnen",
    "it stopped: {0}": "es steht {1}",
    "": "a header",
}


def german(template: str) -> str:
    return GERMAN.get(template, template)


def away(name: str) -> dict[str, Any]:
    return {"template": "{0} is away", "values": [name]}


def nested(depth: int) -> Any:
    return {"template": "{0}.", "values": [nested(depth - 1)]} if depth else "x"


class Texts(unittest.TestCase):
    def told(self, text: object, words: object = None) -> str:
        return badged.translated({"error": text, "errorWords": words}, "error", german)

    def test_values(self) -> None:
        """A text is told with its values, nested ones, too."""
        reason = {"template": "No connection to {0}: {1}", "values": ["the {0}", away("vcan0")]}
        words = {"template": "{0}: {1}", "values": [reason, {"template": "begin again"}]}
        text = self.told("No connection to the {0}: vcan0 is away: begin again", words)
        self.assertEqual(text, "vcan0 ist weg, also keine Verbindung zu the {0}; noch einmal beginnen")

    def test_template(self) -> None:
        """A text without a phrase is its own template; what is no text is empty."""
        self.assertEqual(self.told("begin again"), "noch einmal beginnen")
        wrong: list[object] = [None, 7, [], {}, ""]
        for text in wrong:
            self.assertEqual(self.told(text, away("x")), "")
        self.assertEqual(badged.translated({}, "error", german), "")

    def test_other_placeholders(self) -> None:
        """A translation with other placeholders is not used."""
        words = {"template": "it stopped: {0}", "values": [away("x")]}
        self.assertEqual(self.told("it stopped: x is away", words), "it stopped: x ist weg")

    def test_hostile(self) -> None:
        """A phrase that is malformed, too large, or says something else leaves the English text."""
        wrong: list[object] = [
            7,
            "text",
            [],
            {},
            {"template": 7},
            {"values": ["x"]},
            {"template": "{0} is away"},
            {"template": "{0} is away", "values": ["x", "y"]},
            {"template": "{0}{0} is away", "values": ["x"]},
            {"template": "{0} is away", "values": [7]},
            {"template": "{0} is away", "values": "x"},
            away("y"),
            {"template": "begin again"},
            {"template": "{0} is away", "values": ["x" * 500_000]},
            {"template": "{9999999999999999} is away", "values": ["x"]},
            nested(9),
            nested(500),
        ]
        for index, words in enumerate(wrong):
            with self.subTest(index=index):
                self.assertEqual(self.told("x is away", words), "x is away")
        self.assertEqual(self.told("x" + "." * 9, nested(9)), "x" + "." * 9)
        self.assertEqual(self.told("x" + "." * 8, nested(8)), "x" + "." * 8)
        many = {"template": "".join(f"{{{index}}}" for index in range(65)), "values": ["x"] * 65}
        self.assertEqual(self.told("x" * 65, many), "x" * 65)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in the language of the user, by gettext. English stands in for what a catalogue lacks or has wrong."""

from __future__ import annotations

import gettext
import os

#: The catalogue, which all programs of badged share: po/ in the sources.
DOMAIN = "badged"

_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def load(folder: str | None = None) -> None:
    """Reads the catalogue of the user's language below `folder`; None stands for the folder of the system."""
    global _catalogue
    try:
        _catalogue = gettext.translation(DOMAIN, folder or os.environ.get("BADGED_LOCALES"))
    # A broken file fails in many ways: no file, no catalogue, wrong offsets, wrong encoding.
    except Exception:
        _catalogue = gettext.NullTranslations()


def _(english: str, **values: object) -> str:
    """The text in the user's language, with its placeholders filled in."""
    text = _catalogue.gettext(english)
    if not values:
        return text
    try:
        return text.format(**values)
    # A catalogue of another version may have other placeholders.
    except (KeyError, IndexError, ValueError, AttributeError):
        return english.format(**values)

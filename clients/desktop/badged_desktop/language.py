# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in the language of the user, by gettext. English stands in for what a catalogue lacks or has wrong."""

from __future__ import annotations

import gettext
import os
from collections.abc import Mapping

#: The catalogue, which all programs of badged share: po/ in the sources.
DOMAIN = "badged"

_catalogue: gettext.NullTranslations = gettext.NullTranslations()


def preferred(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The languages in the order of the user's wishes, up to English, which needs no catalogue.

    badgectl has the same rules, in Language.swift. gettext alone skips `en`, and takes LANGUAGE in the locale C, too.
    """
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "C")
    if locale in ("C", "POSIX") or locale.startswith("C."):
        return []
    names = []
    for name in (environment.get("LANGUAGE") or locale).split(":"):
        if not name:
            continue
        if name.split(".")[0].split("@")[0].split("_")[0] == "en":
            break
        names.append(name)
    return names


def load(folder: str | None = None) -> None:
    """Reads the catalogue of the user's language below `folder`; None stands for the folder of the system."""
    global _catalogue
    try:
        _catalogue = gettext.translation(DOMAIN, folder or os.environ.get("BADGED_LOCALES"), preferred())
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

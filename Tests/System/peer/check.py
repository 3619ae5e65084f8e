# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences that must be true."""

import sys


class Check:
    failures = 0

    @classmethod
    def that(cls, sentence, is_true, seen=None):
        print(f"  {'ok' if is_true else 'FAILED'}: {sentence}" + ("" if is_true else f"\n    seen: {seen}"), flush=True)
        cls.failures += not is_true

    @classmethod
    def end(cls):
        print(f"{cls.failures} failed" if cls.failures else "all passed", flush=True)
        sys.exit(1 if cls.failures else 0)

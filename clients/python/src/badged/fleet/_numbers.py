# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a stream have come."""

from __future__ import annotations

import bisect
from typing import Any, NamedTuple

#: The reason of numbers that are older than the first message of this consumer: they are no hole.
BEFORE = "before"

#: A stream with more holes forgets the oldest: it stays reported, and its numbers count as seen.
MOST_RANGES = 1000


class Range(NamedTuple):
    """Numbers that have not come."""

    first: int
    last: int
    reason: str | None


class Numbers:
    """The numbers of one epoch of a stream. Duplicates, holes and late numbers are found in bounded memory."""

    def __init__(self, highest: int = 0, missing: list[Range] | None = None) -> None:
        """All numbers up to `highest` have come but those in `missing`, which ascend."""
        self.highest = highest
        self.missing = missing or []

    @classmethod
    def beginning_at(cls, first: int) -> Numbers:
        """Nothing is known of the numbers before `first`."""
        return cls(first - 1, [Range(1, first - 1, BEFORE)] if first > 1 else [])

    def arrive(self, number: int) -> bool:
        """Notes a number. False: it has come before."""
        if number > self.highest:
            self.expect(number - 1)
            self.highest = number
            return True
        index = bisect.bisect_right(self.missing, number, key=lambda one: one.first) - 1
        if index < 0 or self.missing[index].last < number:
            return False
        self.missing[index : index + 1] = _cut(self.missing[index], number, number)
        return True

    def expect(self, number: int) -> None:
        """All numbers up to this one must have come."""
        if number > self.highest:
            self.missing.append(Range(self.highest + 1, number, None))
            self.highest = number

    def explain(self, first: int, last: int, reason: str) -> None:
        """The numbers of this range that have not come do not come any more. A reason that was given before stays."""
        found: list[Range] = []
        for one in self.missing:
            if one.reason not in (None, BEFORE) or one.last < first or last < one.first:
                found.append(one)
                continue
            inner = Range(max(first, one.first), min(last, one.last), reason)
            found += sorted([*_cut(one, inner.first, inner.last), inner])
        self.missing = found

    def holes(self) -> set[Range]:
        return {one for one in self.missing if one.reason != BEFORE}

    def forget(self) -> None:
        """Bounds the memory."""
        del self.missing[: max(0, len(self.missing) - MOST_RANGES)]

    def save(self) -> dict[str, Any]:
        return {"highest": self.highest, "missing": [list(one) for one in self.missing]}

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> Numbers:
        return cls(saved["highest"], [Range(*one) for one in saved["missing"]])


def _cut(one: Range, first: int, last: int) -> list[Range]:
    """What is left of a range without the numbers from `first` to `last`."""
    left = Range(one.first, first - 1, one.reason)
    right = Range(last + 1, one.last, one.reason)
    return [part for part in (left, right) if part.first <= part.last]

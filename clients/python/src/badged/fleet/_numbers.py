# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a stream have come."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

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
    def restore(cls, saved: Mapping[str, Any]) -> Numbers:
        """Goes on with what `save` has returned. Raises ValueError if it is not of that form."""
        highest, missing = saved.get("highest"), saved.get("missing")
        if not is_number(highest) or not isinstance(missing, list):
            raise ValueError("the numbers of a stream are damaged")
        ranges: list[Range] = []
        for one in missing:
            if not isinstance(one, list) or len(one) != 3 or not is_number(one[0]) or not is_number(one[1]):
                raise ValueError("a hole is damaged")
            ranges.append(Range(*one))
        ends = [0, *(one.last for one in ranges)]
        if not all(end < one.first <= one.last <= highest for end, one in zip(ends, ranges, strict=False)):
            raise ValueError("the holes of a stream contradict each other")
        if not all(one.reason is None or isinstance(one.reason, str) for one in ranges):
            raise ValueError("the reason of a hole is no text")
        return cls(highest, ranges)


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value is an integer from 0 to 2^53."""
    return type(value) is int and 0 <= value <= 1 << 53


def _cut(one: Range, first: int, last: int) -> list[Range]:
    """What is left of a range without the numbers from `first` to `last`."""
    left = Range(one.first, first - 1, one.reason)
    right = Range(last + 1, one.last, one.reason)
    return [part for part in (left, right) if part.first <= part.last]

# SPDX-License-Identifier: Apache-2.0
"""What belongs to no feature: docs/protocol.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Message, Record, Step, named

__all__ = ["APILevel", "Bucket", "Check", "Health", "Info", "Metric", "Metrics", "Sample", "Status"]


@dataclass(frozen=True, kw_only=True)
class Info(Message, msg="INFO"):
    """The versions of badged. `badged` has `protocol`, `drivers` and `scanners`."""

    version_info: Mapping[str, str] = named("VersionInfo")
    badged: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version of badged."""
        return self.version_info.get("Implementation-Version", "")


@dataclass(frozen=True, kw_only=True)
class APILevel(Message, msg="API_LEVEL"):
    """The API level of the connection."""

    current: int
    available: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Status(Step, msg="STATUS"):
    """What the workflow does: its name, its progress in percent, and the message that badged waits for."""

    workflow: str | None = None
    progress: int | None = None
    state: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check(Record):
    """One check of `Health`. If `ok` is False, `cause` says what is wrong and `advice` what to do."""

    name: str
    ok: bool
    unknown: bool = False
    optional: bool = False
    cause: str | None = None
    advice: str | None = None
    error_ago: int | None = None
    missing_package: str | None = None


@dataclass(frozen=True, kw_only=True)
class Health(Message, msg="HEALTH"):
    """What works, and what does not."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, kw_only=True)
class Bucket(Record):
    """The events of a histogram up to `le`, which is +Inf in the last bucket."""

    le: Any
    count: int


@dataclass(frozen=True, kw_only=True)
class Sample(Record):
    """One value of a metric. A histogram has `buckets`, `sum` and `count` instead of `value`."""

    labels: Mapping[str, str] = field(default_factory=dict)
    value: Any = None
    buckets: tuple[Bucket, ...] = ()
    sum: Any = None
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Metric(Record):
    """A counter, a gauge or a histogram."""

    name: str
    type: str
    help: str
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Metrics(Message, msg="METRICS"):
    """What badged has counted since it started."""

    metrics: tuple[Metric, ...]

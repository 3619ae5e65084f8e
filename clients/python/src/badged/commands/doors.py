# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/door-readers.md, credentials.md and remote.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._errors import ProtocolError
from .._records import parse
from .._workflow import Dialogue, starts
from ..messages import (
    AutoOpen,
    Challenged,
    ClosestDoorReader,
    Credentials,
    DoorPanels,
    DoorReaderList,
    Opening,
    OpeningResult,
    Openings,
    OpenPairing,
    PairReader,
    ReaderKeys,
    Remote,
    Reported,
    Scan,
    Timeouts,
)


class DoorCommands(Calls):
    @both
    async def start_scan(
        self,
        *,
        mode: str | None = None,
        opening_types: Sequence[str] | None = None,
        lock_service_codes: Sequence[int] | None = None,
        profiles: Sequence[str] | None = None,
        updates: int | None = None,
        adverts: str | None = None,
    ) -> Scan:
        """Scans for door readers, which are the events `DoorReaderFound` and `DoorReaderLost`."""
        members = {"mode": mode, "openingTypes": opening_types, "lockServiceCodes": lock_service_codes}
        return await self._ask(
            "START_SCAN", Scan, {**members, "profiles": profiles, "updates": updates, "adverts": adverts}
        )

    @both
    async def stop_scan(self) -> Scan:
        """Ends the scan of this client."""
        return await self._ask("STOP_SCAN", Scan)

    @both
    async def get_scan(self) -> Scan:
        """The state of the scan."""
        return await self._ask("GET_SCAN", Scan)

    @both
    async def get_door_reader_list(self, *, active_only: bool | None = None) -> DoorReaderList:
        """The door readers, strongest first."""
        return await self._ask("GET_DOOR_READER_LIST", DoorReaderList, {"activeOnly": active_only})

    @both
    async def get_closest_door_reader(self, opening_type: str) -> ClosestDoorReader:
        """The reader that `trigger` would open."""
        return await self._ask("GET_CLOSEST_DOOR_READER", ClosestDoorReader, {"openingType": opening_type})

    @both
    async def open_reader(self, reader: str, opening_type: str, *, key: str | None = None) -> Opening | OpeningResult:
        """Opens the door reader with this id. The end is the event `OpeningResult`, unless it is the answer."""
        return await self._open("OPEN_READER", {"reader": reader, "openingType": opening_type, "key": key})

    @both
    async def trigger(self, opening_type: str, *, key: str | None = None) -> Opening | OpeningResult:
        """Opens the closest reader, if it is in range."""
        return await self._open("TRIGGER", {"openingType": opening_type, "key": key})

    @both
    async def allow_open(self, token: int, allow: bool) -> Opening | OpeningResult | AutoOpen:
        """Answers the event `AskOpen`."""
        message = parse(await self._raw("ALLOW_OPEN", {"token": token, "allow": allow}))
        if not isinstance(message, Opening | OpeningResult | AutoOpen):
            raise ProtocolError(f"ALLOW_OPEN was answered with {message.msg}")
        return message

    @both
    async def start_openings(self) -> Openings:
        """Asks for `OpeningReport`: the openings of all clients. Needs the permission openings."""
        return await self._ask("START_OPENINGS", Openings)

    @both
    async def stop_openings(self) -> Openings:
        """Ends that."""
        return await self._ask("STOP_OPENINGS", Openings)

    @both
    async def set_timeouts(
        self, *, fragment_ms: int | None = None, apdu_ms: int | None = None, connect_ms: int | None = None
    ) -> Timeouts:
        """Sets the time limits of openings, in milliseconds."""
        members = {"fragmentMs": fragment_ms, "apduMs": apdu_ms, "connectMs": connect_ms}
        return await self._ask("SET_TIMEOUTS", Timeouts, members)

    @both
    async def set_auto_open(self, mode: str, *, opening_type: str | None = None, key: str | None = None) -> AutoOpen:
        """Opens readers that come into range: off, ask or on."""
        return await self._ask("SET_AUTO_OPEN", AutoOpen, {"mode": mode, "openingType": opening_type, "key": key})

    @both
    async def add_reader_key(self, name: str, *, secret: bytearray | None = None) -> ReaderKeys:
        """Keeps the identity resolving key of a reader whose address changes; the reader has the name in its id.

        The secret has 32 hexadecimal digits, in either order of the bytes; it is wiped. Needs the permission admin.
        """
        return await self._ask("ADD_READER_KEY", ReaderKeys, {"name": name}, secret)

    @both
    async def remove_reader_key(self, name: str) -> ReaderKeys:
        """Deletes an identity resolving key."""
        return await self._ask("REMOVE_READER_KEY", ReaderKeys, {"name": name})

    @both
    async def get_reader_keys(self) -> ReaderKeys:
        """The names of the identity resolving keys, and the order of their bytes where it is known."""
        return await self._ask("GET_READER_KEYS", ReaderKeys)

    async def _open(self, command: str, members: Mapping[str, Any]) -> Opening | OpeningResult:
        message = parse(await self._raw(command, members))
        if not isinstance(message, Opening | OpeningResult):
            raise ProtocolError(f"{command} was answered with {message.msg}")
        return message


class CredentialCommands(Calls):
    @both
    async def start_credentials(self, *, ndef: bool | None = None) -> Credentials:
        """Receives the event `Credential` for each card or phone that is put on a reader.

        With `ndef` the text or address in a tag is read, too.
        """
        return await self._ask("START_CREDENTIALS", Credentials, {"ndef": ndef})

    @both
    async def stop_credentials(self) -> Credentials:
        """Receives `Credential` no more."""
        return await self._ask("STOP_CREDENTIALS", Credentials)

    @both
    async def start_door_panels(self) -> DoorPanels:
        """Receives the event `DoorPanel`: what each door panel shows now, and each change."""
        return await self._ask("START_DOOR_PANELS", DoorPanels)

    @both
    async def stop_door_panels(self) -> DoorPanels:
        """Receives `DoorPanel` no more."""
        return await self._ask("STOP_DOOR_PANELS", DoorPanels)

    @both
    async def report_panel(
        self,
        panel: str,
        link: str,
        *,
        leds: Sequence[Mapping[str, Any]] | None = None,
        text: Sequence[str] | None = None,
        outputs: Sequence[bool] | None = None,
        beep: Mapping[str, Any] | None = None,
        confirmed: int | None = None,
        dropped: int | None = None,
        unconfirmed: int | None = None,
        faults: int | None = None,
    ) -> Reported:
        """Reports what a door panel shows. Needs the permission report."""
        members = {"leds": leds, "text": text, "outputs": outputs, "beep": beep, "confirmed": confirmed}
        counts = {"dropped": dropped, "unconfirmed": unconfirmed, "faults": faults}
        return await self._ask("REPORT_PANEL", Reported, {"panel": panel, "link": link, **members, **counts})

    @both
    async def report_tap(self, reader: str, bits: int, data: str, format: str) -> Reported:
        """Reports what a reader in the wall has read. Needs the permission report."""
        members = {"reader": reader, "bits": bits, "data": data, "format": format}
        return await self._ask("REPORT_TAP", Reported, members)

    @both
    async def challenge_card(self, number: int, transaction: str) -> Challenged:
        """Has the card of a tap sign 16 bytes, for a door panel. Needs the permissions credentials and report."""
        return await self._ask("CHALLENGE_CARD", Challenged, {"number": number, "transaction": transaction})


def finish_pairing(raw: Raw) -> PairReader | None:
    """The result of PAIR_READER; None if it has just begun."""
    message = PairReader.decode(raw, "PAIR_READER")
    if message.success is False or (message.error is not None and not message.success):
        raise failed(raw, "PAIRING_FAILED", message.error)
    return message if message.success else None


def finish_pairing_mode(raw: Raw) -> OpenPairing | None:
    """The result of OPEN_PAIRING; None if it has just begun."""
    message = OpenPairing.decode(raw, "OPEN_PAIRING")
    if message.success is False or (message.error is not None and not message.success):
        raise failed(raw, "PAIRING_FAILED", message.error)
    return message if message.success else None


class RemoteCommands(Calls):
    @both
    async def get_remote(self) -> Remote:
        """The devices with which readers are shared. `error` of the answer says what does not work."""
        return await self._ask("GET_REMOTE", Remote, error_is_refusal=False)

    @both
    async def remove_remote(self, fingerprint: str) -> Remote:
        """Forgets the pairing with this device."""
        return await self._ask("REMOVE_REMOTE", Remote, {"fingerprint": fingerprint})

    @starts
    def pair_reader(self, fingerprint: str, *, status: bool = True) -> Dialogue[PairReader]:
        """Pairs with a device that lends its reader."""
        members = {"fingerprint": fingerprint, "status": status}
        return self._dialogue("PAIR_READER", members, "PAIR_READER", finish_pairing)

    @starts
    def open_pairing(self, *, status: bool = True) -> Dialogue[OpenPairing]:
        """Lets another device pair with this host; `PairingCode` tells the code to type there."""
        return self._dialogue("OPEN_PAIRING", {"status": status}, "OPEN_PAIRING", finish_pairing_mode)

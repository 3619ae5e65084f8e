# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/keys.md."""

from __future__ import annotations

from typing import Any

from .._both import both
from .._calls import Calls
from ..messages import (
    Data,
    Endpoint,
    EndpointSetup,
    EndpointTerminated,
    EndpointUpdated,
    Key,
    KeyDeleted,
    KeyExport,
    Keys,
    LastAuth,
    OneTimeCode,
    OneTimeCodeCounter,
    SiteImported,
    Started,
    WalletBlob,
    WalletEligible,
    WalletSaved,
)


class KeyCommands(Calls):
    @both
    async def start(self) -> Started:
        """Whether the endpoint is set up."""
        return await self._ask("START", Started)

    @both
    async def get_endpoint(self) -> Endpoint:
        """The vault of this user."""
        return await self._ask("GET_ENDPOINT", Endpoint)

    @both
    async def setup_endpoint(self, invitation: str | None = None) -> EndpointSetup:
        """Makes the vault of this user, with the key of an invitation if there is one."""
        return await self._ask("SETUP_ENDPOINT", EndpointSetup, {"invitation": invitation})

    @both
    async def update_endpoint(self) -> EndpointUpdated:
        """Asks the issuer for the newest files of the keys."""
        return await self._ask("UPDATE_ENDPOINT", EndpointUpdated)

    @both
    async def remove_endpoint(self, confirm: bool) -> EndpointTerminated:
        """Deletes all keys of this user. `confirm` must be True."""
        return await self._ask("REMOVE_ENDPOINT", EndpointTerminated, {"confirm": confirm})

    @both
    async def get_keys(self) -> Keys:
        """The keys of this user."""
        return await self._ask("GET_KEYS", Keys)

    @both
    async def new_key(
        self,
        secret: bytearray | None = None,
        *,
        protocol: str | None = None,
        label: str | None = None,
        card_number: str | None = None,
        active: bool | None = None,
        type: str | None = None,
        digits: int | None = None,
        algorithm: str | None = None,
        period: int | None = None,
        counter: int | None = None,
    ) -> Key:
        """Makes a key pair, or with `protocol` otp keeps a secret for one-time codes.

        The secret is in base 32, or `hex:` and hexadecimal digits; it is wiped.
        """
        members: dict[str, Any] = {
            "protocol": protocol,
            "label": label,
            "cardNumber": card_number,
            "active": active,
            "type": type,
        }
        members |= {"digits": digits, "algorithm": algorithm, "period": period, "counter": counter}
        return await self._ask("NEW_KEY", Key, members, secret)

    @both
    async def activate_key(self, key: str) -> Key:
        """Uses the key with this id again."""
        return await self._ask("ACTIVATE_KEY", Key, {"key": key})

    @both
    async def deactivate_key(self, key: str) -> Key:
        """Does not use the key any more."""
        return await self._ask("DEACTIVATE_KEY", Key, {"key": key})

    @both
    async def delete_key(self, key: str) -> KeyDeleted:
        """Deletes the key."""
        return await self._ask("DELETE_KEY", KeyDeleted, {"key": key})

    @both
    async def export_key(self, key: str) -> KeyExport:
        """The public part of the key."""
        return await self._ask("EXPORT_KEY", KeyExport, {"key": key})

    @both
    async def import_site(self, qr: str, *, key: str | None = None) -> SiteImported:
        """Tells a key the site of a reader, from the text of its QR code."""
        return await self._ask("IMPORT_SITE", SiteImported, {"qr": qr, "key": key})

    @both
    async def get_last_auth(self) -> LastAuth:
        """Which key was used last."""
        return await self._ask("GET_LAST_AUTH", LastAuth)

    @both
    async def get_otp(self, key: str) -> OneTimeCode:
        """A one-time code."""
        return await self._ask("GET_OTP", OneTimeCode, {"key": key})

    @both
    async def get_otp_counter(self, key: str) -> OneTimeCodeCounter:
        """The counter of the next code."""
        return await self._ask("GET_OTP_COUNTER", OneTimeCodeCounter, {"key": key})

    @both
    async def get_data(self, oid: str, tag: str) -> Data:
        """A data object of a key."""
        return await self._ask("GET_DATA", Data, {"oid": oid, "tag": tag})

    @both
    async def put_data(self, oid: str, tag: str, data: str) -> Data:
        """Keeps a data object of a key, in hexadecimal; an empty text removes it."""
        return await self._ask("PUT_DATA", Data, {"oid": oid, "tag": tag, "data": data})

    @both
    async def pass_check(self) -> WalletEligible:
        """Whether passes can be made."""
        return await self._ask("PASS_CHECK", WalletEligible)

    @both
    async def pass_prepare(self, *, label: str | None = None, nonce: str | None = None) -> WalletBlob:
        """Makes a key for a pass, and what the backend needs to issue the pass."""
        return await self._ask("PASS_PREPARE", WalletBlob, {"label": label, "nonce": nonce})

    @both
    async def pass_save(self, reference: str, *, display_name: str | None = None) -> WalletSaved:
        """Saves the pass that a backend has issued."""
        members: dict[str, Any] = {"reference": reference}
        if display_name is not None:
            members["display"] = {"displayName": display_name}
        return await self._ask("PASS_SAVE", WalletSaved, members)

    #: The other names of these commands in the protocol.
    wallet_check = pass_check
    wallet_prepare = pass_prepare
    wallet_save = pass_save

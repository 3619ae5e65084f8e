# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/mpin.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._workflow import Dialogue, starts
from ..messages import MPinResult


def finish(raw: Raw) -> MPinResult:
    """The result of a workflow of M-Pin."""
    result = MPinResult.decode(raw, "MPIN_RESULT")
    if result.status != 0:
        raise failed(raw, result.status_code, result.error_message)
    return result


class MPinCommands(Calls):
    @both
    async def mpin_init(self, *, headers: Mapping[str, str] | None = None, flavour: str | None = None) -> MPinResult:
        """Begins. `flavour` is MPIN, the default, or MFA."""
        return await self._result("MPIN_INIT", {"headers": headers, "flavour": flavour})

    @both
    async def mpin_destroy(self) -> MPinResult:
        """Forgets what this connection has set up."""
        return await self._result("MPIN_DESTROY", {})

    @both
    async def mpin_set_headers(self, add: Mapping[str, str] | None = None, *, clear: bool | None = None) -> MPinResult:
        """Headers of all requests."""
        return await self._result("MPIN_SET_HEADERS", {"add": add, "clear": clear})

    @both
    async def mpin_trusted_domains(self, add: Iterable[str] | None = None, *, clear: bool | None = None) -> MPinResult:
        """Domains to which requests may go."""
        return await self._result("MPIN_TRUSTED_DOMAINS", {"add": None if add is None else list(add), "clear": clear})

    @both
    async def mpin_client_param(self, key: str) -> MPinResult:
        """A setting of the service, as `value`."""
        return await self._result("MPIN_CLIENT_PARAM", {"key": key})

    @both
    async def mpin_make_user(self, user_id: str, *, device_name: str | None = None) -> MPinResult:
        """Makes a user."""
        return await self._result("MPIN_MAKE_USER", {"userId": user_id, "deviceName": device_name})

    @both
    async def mpin_users(
        self, user_id: str | None = None, *, url: str | None = None, rps_prefix: str | None = None
    ) -> MPinResult:
        """The users, of one backend or of all."""
        return await self._result("MPIN_USERS", {"userId": user_id, "url": url, "rpsPrefix": rps_prefix})

    @both
    async def mpin_backends(self) -> MPinResult:
        """The backends that have users."""
        return await self._result("MPIN_BACKENDS", {})

    @both
    async def mpin_delete_user(
        self,
        user_id: str,
        *,
        url: str | None = None,
        rps_prefix: str | None = None,
        customer_id: str | None = None,
    ) -> MPinResult:
        """Deletes a user and the token."""
        members = {"userId": user_id, "url": url, "rpsPrefix": rps_prefix, "customerId": customer_id}
        return await self._result("MPIN_DELETE_USER", members)

    @both
    async def mpin_check_access_number(self, access_number: str) -> MPinResult:
        """Checks the digits of an access number."""
        return await self._result("MPIN_CHECK_ACCESS_NUMBER", {"accessNumber": access_number})

    @both
    async def mpin_set_client_id(self, client_id: str) -> MPinResult:
        """MFA: the customer to which users belong."""
        return await self._result("MPIN_SET_CLIENT_ID", {"clientId": client_id})

    @both
    async def mpin_verify_document(self, document: str, hash: str) -> MPinResult:
        """MFA: whether the document has this hash, as `verified`."""
        return await self._result("MPIN_VERIFY_DOCUMENT", {"document": document, "hash": hash})

    # Workflows

    @starts
    def mpin_test_backend(self, url: str, *, rps_prefix: str | None = None) -> Dialogue[MPinResult]:
        """Asks a service for its settings."""
        return self._mpin("MPIN_TEST_BACKEND", {"url": url, "rpsPrefix": rps_prefix})

    @starts
    def mpin_set_backend(self, url: str, *, rps_prefix: str | None = None) -> Dialogue[MPinResult]:
        """Sets the service of this connection."""
        return self._mpin("MPIN_SET_BACKEND", {"url": url, "rpsPrefix": rps_prefix})

    @starts
    def mpin_start_registration(
        self,
        user_id: str,
        *,
        user_data: str | None = None,
        activate_code: str | None = None,
        access_code: str | None = None,
        push_notification_identifier: str | None = None,
    ) -> Dialogue[MPinResult]:
        """Begins a registration. The last two arguments are for MFA."""
        members = {"userId": user_id, "userData": user_data, "activateCode": activate_code, "accessCode": access_code}
        members["pushNotificationIdentifier"] = push_notification_identifier
        return self._mpin("MPIN_START_REGISTRATION", members)

    @starts
    def mpin_restart_registration(
        self, user_id: str, *, user_data: str | None = None, activate_code: str | None = None
    ) -> Dialogue[MPinResult]:
        """Begins a registration again."""
        members = {"userId": user_id, "userData": user_data, "activateCode": activate_code}
        return self._mpin("MPIN_RESTART_REGISTRATION", members)

    @starts
    def mpin_confirm_registration(
        self, user_id: str, *, push_notification_identifier: str | None = None
    ) -> Dialogue[MPinResult]:
        """Fetches the client secret, after the identity was confirmed."""
        members = {"userId": user_id, "pushNotificationIdentifier": push_notification_identifier}
        return self._mpin("MPIN_CONFIRM_REGISTRATION", members)

    @starts
    def mpin_finish_registration(
        self, user_id: str, *, card: bool | None = None, reader: str | None = None, pin1: bool | None = None
    ) -> Dialogue[MPinResult]:
        """Asks for the new PIN, and keeps the token; with `card` under a Keycard."""
        members = {"userId": user_id, "card": card, "reader": reader, "pin1": pin1}
        return self._mpin("MPIN_FINISH_REGISTRATION", members)

    @starts
    def mpin_start_authentication(self, user_id: str, *, access_code: str | None = None) -> Dialogue[MPinResult]:
        """Begins a login."""
        return self._mpin("MPIN_START_AUTHENTICATION", {"userId": user_id, "accessCode": access_code})

    @starts
    def mpin_finish_authentication(
        self,
        user_id: str,
        *,
        mode: str | None = None,
        access_number: str | None = None,
        access_code: str | None = None,
        pin1: bool | None = None,
    ) -> Dialogue[MPinResult]:
        """Asks for the PIN, and logs in."""
        members = {"userId": user_id, "mode": mode, "accessNumber": access_number, "accessCode": access_code}
        return self._mpin("MPIN_FINISH_AUTHENTICATION", {**members, "pin1": pin1})

    @starts
    def mpin_logout(self, user_id: str) -> Dialogue[MPinResult]:
        """Ends a login with an access number."""
        return self._mpin("MPIN_LOGOUT", {"userId": user_id})

    @starts
    def mpin_service_details(self, url: str) -> Dialogue[MPinResult]:
        """MFA: what a service says about itself."""
        return self._mpin("MPIN_SERVICE_DETAILS", {"url": url})

    @starts
    def mpin_session_details(self, access_code: str) -> Dialogue[MPinResult]:
        """MFA: for what session the access code is."""
        return self._mpin("MPIN_SESSION_DETAILS", {"accessCode": access_code})

    @starts
    def mpin_abort_session(self, access_code: str) -> Dialogue[MPinResult]:
        """MFA: aborts the session."""
        return self._mpin("MPIN_ABORT_SESSION", {"accessCode": access_code})

    @starts
    def mpin_access_code(self, url: str) -> Dialogue[MPinResult]:
        """MFA: an access code for this authorization URL."""
        return self._mpin("MPIN_ACCESS_CODE", {"url": url})

    @starts
    def mpin_start_dvs(self, user_id: str, token: str) -> Dialogue[MPinResult]:
        """MFA: begins a registration for signatures."""
        return self._mpin("MPIN_START_DVS", {"userId": user_id, "token": token})

    @starts
    def mpin_finish_dvs(self, user_id: str, *, nfc: bool | None = None) -> Dialogue[MPinResult]:
        """MFA: asks for the PIN of signatures."""
        return self._mpin("MPIN_FINISH_DVS", {"userId": user_id, "nfc": nfc})

    @starts
    def mpin_sign(
        self,
        user_id: str,
        document_hash: str,
        epoch_time: int,
        *,
        authz_token: str | None = None,
        pin1: bool | None = None,
    ) -> Dialogue[MPinResult]:
        """MFA: signs a document."""
        members = {"userId": user_id, "documentHash": document_hash, "epochTime": epoch_time}
        return self._mpin("MPIN_SIGN", {**members, "authZToken": authz_token, "pin1": pin1})

    async def _result(self, command: str, members: Mapping[str, Any]) -> MPinResult:
        return await self._ask(command, MPinResult, members)

    def _mpin(self, command: str, members: Mapping[str, Any]) -> Dialogue[MPinResult]:
        return self._dialogue(command, members, "MPIN_RESULT", finish)

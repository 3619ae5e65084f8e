# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/eid.md and docs/protocol/browsers.md."""

from __future__ import annotations

from collections.abc import Iterable

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._errors import refusal
from .._workflow import Dialogue, starts
from ..messages import AccessRights, Auth, Certificate, ChangePin, UserInterface


def finish_auth(raw: Raw) -> Auth | None:
    """The result of AUTH; None if the authentication has just begun."""
    if error := refusal("RUN_AUTH", raw):
        raise error
    auth = Auth.decode(raw, "AUTH")
    if auth.result is None:
        return None
    if auth.result.major.endswith("#ok"):
        return auth
    result = auth.result
    raise failed(raw, result.reason or result.minor, result.message or result.description)


def finish_change_pin(raw: Raw) -> ChangePin | None:
    """The result of CHANGE_PIN; None if the change has just begun."""
    if error := refusal("RUN_CHANGE_PIN", raw):
        raise error
    change = ChangePin.decode(raw, "CHANGE_PIN")
    if change.success is False:
        raise failed(raw, change.reason, f"the PIN was not changed: {change.reason}")
    return change if change.success else None


class EIDCommands(Calls):
    @starts
    def run_auth(
        self, tc_token_url: str, *, reader: str | None = None, developer_mode: bool | None = None, status: bool = True
    ) -> Dialogue[Auth]:
        """An online authentication. `url` of the result is where the browser continues."""
        members = {"tcTokenURL": tc_token_url, "reader": reader, "developerMode": developer_mode, "status": status}
        return self._dialogue("RUN_AUTH", members, "AUTH", finish_auth)

    @starts
    def run_change_pin(self, *, reader: str | None = None, status: bool = True) -> Dialogue[ChangePin]:
        """Changes the PIN of an eID card, or unblocks it."""
        members = {"reader": reader, "status": status}
        return self._dialogue("RUN_CHANGE_PIN", members, "CHANGE_PIN", finish_change_pin)

    #: The same under the names of what they do.
    authenticate = run_auth
    change_pin = run_change_pin

    @both
    async def get_access_rights(self) -> AccessRights:
        """The rights as they are chosen now, while `AccessRights` waits."""
        return await self._ask("GET_ACCESS_RIGHTS", AccessRights)

    @both
    async def set_access_rights(self, chat: Iterable[str]) -> AccessRights:
        """Chooses the optional rights, while `AccessRights` waits. `AccessRights.accept` does the same, and agrees."""
        return await self._ask("SET_ACCESS_RIGHTS", AccessRights, {"chat": list(chat)})

    @both
    async def get_certificate(self) -> Certificate:
        """Who asks, while `AccessRights` waits."""
        return await self._ask("GET_CERTIFICATE", Certificate)

    @both
    async def set_user_interface(self, active: bool = True) -> UserInterface:
        """Makes this client the user interface for the browsers of its user. Then `next_authentication` serves them."""
        return await self._ask("SET_USER_INTERFACE", UserInterface, {"active": active})

# SPDX-License-Identifier: Apache-2.0
"""Commands of docs/protocol/wallet.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._both import both
from .._calls import Calls, failed
from .._core import Raw
from .._workflow import Dialogue, starts
from ..messages import FlowComplete, FlowInterrupted, WalletReady, WalletResult, WalletUnbound


def finish_flow(raw: Raw) -> FlowComplete:
    """The result of a workflow of RUN_WALLET."""
    if raw["msg"] == "FLOW_INTERRUPTED":
        error = FlowInterrupted.decode(raw, "FLOW_INTERRUPTED").error
        raise failed(raw, error.code, error.message)
    return FlowComplete.decode(raw, "FLOW_COMPLETE")


def finish_operation(raw: Raw) -> WalletResult:
    """The result of an operation of an account."""
    result = WalletResult.decode(raw, "WALLET_RESULT")
    if result.code != 1:
        raise failed(raw, str(result.code), result.message)
    return result


class WalletCommands(Calls):
    @starts
    def run_wallet(
        self, workflow: str, members: Mapping[str, Any] | None = None, *, status: bool = True
    ) -> Dialogue[FlowComplete]:
        """A workflow such as SETUP_DEVICE. `members` are those of the page, in its spelling, such as `userId`."""
        all_members = {**(members or {}), "workflow": workflow, "status": status}
        return self._dialogue("RUN_WALLET", all_members, "FLOW_COMPLETE FLOW_INTERRUPTED", finish_flow)

    @both
    async def wallet_init(
        self,
        mode: str,
        dapp_name: str,
        *,
        app_key: str | None = None,
        uuid: str | None = None,
        dapp_icon: str | None = None,
        scheme: str | None = None,
        disable_install: bool | None = None,
    ) -> WalletReady:
        """Says which dapp this connection is. `mode` is MYKEY, with `app_key` and `uuid`, or MYKEYSimple."""
        members = {"mode": mode, "dappName": dapp_name, "appKey": app_key, "UUID": uuid, "dappIcon": dapp_icon}
        return await self._ask(
            "WALLET_INIT", WalletReady, {**members, "scheme": scheme, "disableInstall": disable_install}
        )

    @both
    async def wallet_unbind(self) -> WalletUnbound:
        """Forgets the binding."""
        return await self._ask("WALLET_UNBIND", WalletUnbound)

    @starts
    def wallet_authorize(
        self,
        account: str,
        *,
        permission: str | None = None,
        user_name: str | None = None,
        info: str | None = None,
        callback_url: str | None = None,
        reader: str | None = None,
        status: bool = True,
    ) -> Dialogue[WalletResult]:
        """Logs an account in, and binds it in mode MYKEY."""
        members = {"account": account, "permission": permission, "userName": user_name, "info": info}
        members |= {"callbackUrl": callback_url, "reader": reader}
        return self._operation("WALLET_AUTHORIZE", members, status)

    @starts
    def wallet_sign(
        self,
        message: str,
        *,
        account: str | None = None,
        info: str | None = None,
        callback_url: str | None = None,
        reader: str | None = None,
        status: bool = True,
    ) -> Dialogue[WalletResult]:
        """Signs a text."""
        members = {"message": message, "account": account, "info": info}
        return self._operation("WALLET_SIGN", {**members, "callbackUrl": callback_url, "reader": reader}, status)

    @starts
    def wallet_transfer(
        self,
        to: str,
        amount: str | int,
        symbol: str,
        contract_name: str,
        *,
        sender: str | None = None,
        decimal: int | None = None,
        memo: str | None = None,
        info: str | None = None,
        order_id: str | None = None,
        callback_url: str | None = None,
        permission: str | None = None,
        reader: str | None = None,
        status: bool = True,
    ) -> Dialogue[WalletResult]:
        """Sends tokens. `sender` is the member `from`."""
        members = {"to": to, "amount": amount, "symbol": symbol, "contractName": contract_name, "from": sender}
        members |= {"decimal": decimal, "memo": memo, "info": info, "orderId": order_id}
        members |= {"callbackUrl": callback_url, "permission": permission, "reader": reader}
        return self._operation("WALLET_TRANSFER", members, status)

    @starts
    def wallet_contract(
        self,
        actions: Sequence[Mapping[str, Any]],
        *,
        account: str | None = None,
        permission: str | None = None,
        info: str | None = None,
        order_id: str | None = None,
        callback_url: str | None = None,
        reader: str | None = None,
        status: bool = True,
    ) -> Dialogue[WalletResult]:
        """Calls contracts: each action has `account`, `name`, `data` and perhaps `info`."""
        members: dict[str, Any] = {"actions": list(actions), "account": account}
        members |= {"permission": permission, "info": info, "orderId": order_id}
        return self._operation("WALLET_CONTRACT", {**members, "callbackUrl": callback_url, "reader": reader}, status)

    @starts
    def wallet_simplewallet(
        self,
        param: str | Mapping[str, Any],
        *,
        account: str | None = None,
        permission: str | None = None,
        reader: str | None = None,
        status: bool = True,
    ) -> Dialogue[WalletResult]:
        """Does what a QR code or link of SimpleWallet asks for."""
        members: dict[str, Any] = {"param": param if isinstance(param, str) else dict(param), "account": account}
        return self._operation("WALLET_SIMPLEWALLET", {**members, "permission": permission, "reader": reader}, status)

    def _operation(self, command: str, members: Mapping[str, Any], status: bool) -> Dialogue[WalletResult]:
        return self._dialogue(command, {**members, "status": status}, "WALLET_RESULT", finish_operation)

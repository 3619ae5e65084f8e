# SPDX-License-Identifier: Apache-2.0
"""Wallet cards: docs/protocol/wallet.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._records import Message, Prompt, Record, Step, hidden
from .prompts import ConsentPrompt

__all__ = [
    "ContextEntity",
    "FlowComplete",
    "FlowError",
    "FlowInterrupted",
    "FlowStarted",
    "InvalidPin",
    "InvalidPuk",
    "PinValidated",
    "RegisterDevice",
    "RequestAcknowledged",
    "ShowPaperWallet",
    "ShowPuk",
    "ShowSessionKey",
    "VerifyData",
    "WalletReady",
    "WalletRequest",
    "WalletResult",
    "WalletStarted",
    "WalletUnbound",
    "WorkflowContext",
]


@dataclass(frozen=True, kw_only=True)
class WorkflowContext(Record):
    """The workflow that a message belongs to. `workflow_id` is None if no workflow was started."""

    workflow_id: str | None = None
    workflow_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class ContextEntity(Record):
    """What a workflow is about: the page lists the members of `entity` for each `entity_type`."""

    entity_type: str
    entity: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FlowStarted(Step, msg="FLOW_STARTED"):
    """A workflow of RUN_WALLET has begun."""

    workflow_context: WorkflowContext
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class FlowComplete(Step, msg="FLOW_COMPLETE"):
    """A workflow of RUN_WALLET has ended with success."""

    workflow_context: WorkflowContext
    context_entity: ContextEntity


@dataclass(frozen=True, kw_only=True)
class FlowError(Record):
    """Why a workflow has failed. `change` says what it has changed on the card, or may have changed; `message` ends
    with it."""

    code: str
    message: str
    internal_code: str = ""
    change: str | None = None


@dataclass(frozen=True, kw_only=True)
class FlowInterrupted(Step, msg="FLOW_INTERRUPTED"):
    """A workflow of RUN_WALLET has failed."""

    workflow_context: WorkflowContext
    error: FlowError


@dataclass(frozen=True, kw_only=True)
class InvalidPin(Step, msg="INVALID_PIN"):
    """The card has refused the PIN; the next prompt follows."""

    retry_counter: int
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class InvalidPuk(Step, msg="INVALID_PUK"):
    """The card has refused the PUK; the next prompt follows."""

    retry_counter: int
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class PinValidated(Step, msg="PIN_VALIDATED"):
    """The card has accepted the PIN."""

    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowPuk(ConsentPrompt, msg="SHOW_PUK"):
    """Tells the PUK that badged has drawn, once."""

    puk: str = hidden()
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowPaperWallet(ConsentPrompt, msg="SHOW_PAPER_WALLET"):
    """Tells the words of the wallet, once."""

    mnemonics: tuple[str, ...] = hidden()
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowSessionKey(ConsentPrompt, msg="SHOW_SESSION_KEY"):
    """Tells the private key of a new session, once."""

    address: str
    private_key: str = hidden()
    user_id: str = ""


@dataclass(frozen=True, kw_only=True)
class VerifyData(ConsentPrompt, msg="VERIFY_DATA"):
    """Shows what will be signed; `accept` signs."""

    COMMAND = "DATA_VERIFIED"

    workflow_context: WorkflowContext
    context_entity: ContextEntity
    signing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RegisterDevice(Prompt, msg="REGISTER_DEVICE"):
    """The program registers the device at its own server, and answers with what the server said."""

    api_params: Mapping[str, Any]
    user_id: str = ""
    question: int | None = None
    error: str | None = None

    def answer(self, api_response: Mapping[str, Any]) -> None:
        """The device is registered. The response has the same `address`."""
        self._reply("DEVICE_REGISTERED", {"apiResponse": dict(api_response)})

    def take(self, value: object) -> bool:
        if not isinstance(value, Mapping):
            return False
        self.answer(value)
        return True


@dataclass(frozen=True, kw_only=True)
class RequestAcknowledged(Step, msg="REQUEST_ACKNOWLEDGED"):
    """The answer to REGISTER_DEVICE was accepted."""

    workflow_context: WorkflowContext
    context_entity: ContextEntity


@dataclass(frozen=True, kw_only=True)
class WalletReady(Message, msg="WALLET_READY"):
    """What WALLET_INIT has set up for this connection."""

    mode: str
    dapp_name: str = ""
    chain_id: str | None = None
    node: bool = False
    account: str | None = None
    public_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class WalletUnbound(Message, msg="WALLET_UNBOUND"):
    """The account that was bound, or None."""

    account: str | None = None


@dataclass(frozen=True, kw_only=True)
class WalletStarted(Step, msg="WALLET_STARTED"):
    """An operation of an account has begun: authorize, sign, transfer or contract."""

    operation: str


@dataclass(frozen=True, kw_only=True)
class WalletRequest(ConsentPrompt, msg="WALLET_REQUEST"):
    """Exactly what will be signed; `error` says why it is shown again."""

    operation: str
    digest: str = ""
    error: str | None = None
    info: str | None = None
    user_name: str | None = None
    callback: str | None = None
    dapp: Mapping[str, Any] = field(default_factory=dict)
    chain_id: str | None = None
    account: str | None = None
    permission: str | None = None
    text: str | None = None
    actions: tuple[Mapping[str, Any], ...] | None = None
    expiration: str | None = None


@dataclass(frozen=True, kw_only=True)
class WalletResult(Step, msg="WALLET_RESULT"):
    """How an operation ended: `code` 1 is success."""

    code: int
    message: str = ""
    operation: str | None = None
    account: str | None = None
    public_key: str | None = None
    tx_id: str | None = None
    sign: str | None = None
    callback: str | None = None
    callback_error: str | None = None
    change: str | None = None
    setting: str | None = None

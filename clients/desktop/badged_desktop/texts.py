# SPDX-License-Identifier: GPL-3.0-or-later
"""The words for data, cards, questions, steps and failures. The protocol has codes; people get sentences."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import badged

from . import foreign
from .language import _


class Ending(NamedTuple):
    """How something ended: what has happened, and what to do next."""

    title: str
    text: str
    remedy: str = ""


# Data


def right(name: str, aux: Mapping[str, Any]) -> str:
    """The name of a datum or of a right of the service."""
    names = {
        "GivenNames": _("Given names"),
        "FamilyName": _("Family name"),
        "BirthName": _("Name at birth"),
        "DoctoralDegree": _("Doctoral degree"),
        "ArtisticName": _("Religious or artistic name"),
        "DateOfBirth": _("Date of birth"),
        "PlaceOfBirth": _("Place of birth"),
        "Nationality": _("Nationality"),
        "Address": _("Address"),
        "DocumentType": _("Type of document"),
        "IssuingCountry": _("Issuing country"),
        "ValidUntil": _("Valid until"),
        "CommunityID": _("Municipality of residence"),
        "ResidencePermitI": _("Residence permit I"),
        "ResidencePermitII": _("Residence permit II"),
        "Pseudonym": _("Pseudonym: a number that only this service gets"),
        "AddressVerification": _("Whether you live in a certain place"),
        "AgeVerification": _("Whether you have reached a certain age"),
        "CanAllowed": _("Access with the card access number (CAN) instead of the PIN"),
        "PinManagement": _("Change of the PIN"),
        "WriteAddress": _("Change of the address on the card"),
        "WriteCommunityID": _("Change of the municipality on the card"),
        "WriteResidencePermitI": _("Change of residence permit I on the card"),
        "WriteResidencePermitII": _("Change of residence permit II on the card"),
    }
    age = aux.get("requiredAge")
    if name == "AgeVerification" and isinstance(age, str) and age.isascii() and age.isdigit() and len(age) <= 3:
        # The card compares the day, which need not be that of the age.
        day = aux.get("ageVerificationDate")
        if isinstance(day, str) and day:
            return _("Whether you are at least {age} years old: born on {day} or before", age=age, day=date(day))
        return _("Whether you are at least {age} years old", age=age)
    place = aux.get("communityId")
    if name == "AddressVerification" and isinstance(place, str) and place:
        return _("Whether you live in the place with the number {place}", place=foreign.quoted(place, 20))
    return names.get(name) or foreign.line(name, 60)


def data(names: Iterable[str]) -> str:
    """Names of data as a list in a sentence."""
    return ", ".join(right(name, {}) for name in names)


# Cards and readers


def card(reader: badged.Reader) -> str:
    """What is in a reader."""
    if isinstance(reader.card, badged.EIDCard):
        return eid_card(reader.card)
    if reader.busy:
        return _("In use by another program")
    if reader.card is None:
        return _("No card")
    if reader.card.kind is None:
        return _("A card that is not recognised. Is it placed correctly?")
    return _("A card that is not an ID card")


def eid_card(card: badged.EIDCard) -> str:
    """The state of the PIN of an ID card."""
    if card.inoperative:
        return _("ID card: the PUK is used up. Your citizens' office can set a new PIN.")
    if card.deactivated:
        return _("ID card: the online function is switched off. Your citizens' office can switch it on.")
    if card.retry_counter >= 3:
        return _("ID card: the PIN is ready, three tries are left.")
    if card.retry_counter == 2:
        return _("ID card: the PIN was wrong once, two tries are left.")
    if card.retry_counter == 1:
        return _("ID card: the PIN was wrong twice. For the last try you also need the card access number (CAN).")
    return _("ID card: the PIN is blocked. The unblocking number (PUK) unblocks it.")


def obstacle(event: badged.InsertCard) -> str:
    """Why a workflow cannot use the card in a reader, and what helps, in the words of badged."""
    # Only badged knows: another workflow, another program, the service or the reader may be in the way.
    reason = foreign.line(badged.translated(event.raw, "error", _), 400)
    if not reason:
        return _("The card cannot be used here.")
    return reason if reason.endswith((".", "\N{HORIZONTAL ELLIPSIS}")) else reason + "."


# Questions for a secret


class Question(NamedTuple):
    """A question for pinentry: docs/man/badgectl.1, send."""

    kind: str
    digits: tuple[int, ...]
    label: str
    need: str
    advice: str


def question(prompt: badged.SecretPrompt, can_open: bool, takes_transport_pin: bool) -> Question:
    """The words for a prompt. `can_open`: whether the CAN opens the card instead of the PIN."""
    left = prompt.tries_left
    if isinstance(prompt, badged.EnterCan):
        where = _("It has six digits, and is on the front of the card at the bottom right.")
        if can_open:
            need = _("The service reads the card with the card access number (CAN).") + " " + where
        else:
            need = _("Only one try for the PIN is left. First type the card access number (CAN).") + " " + where
        advice = _("The card access number (CAN) has six digits.")
        return Question("CAN", (6,), _("Card access number (CAN)"), need, advice)
    if isinstance(prompt, badged.EnterPuk):
        need = _(
            "The PIN is blocked. The unblocking number (PUK) unblocks it. It has ten digits, and is in the letter "
            "that you got with the card."
        )
        advice = _("The unblocking number (PUK) has ten digits.")
        return Question("PUK", (10,), _("Unblocking number (PUK)"), need, advice)
    if isinstance(prompt, badged.EnterNewPin):
        need = _("Choose a new PIN of six digits. Keep it to yourself, and do not note it on the card.")
        return Question("NEW_PIN", (6,), _("New PIN"), need, _("The PIN has six digits."))
    if takes_transport_pin:
        need = _(
            "Type the PIN of the card: six digits, or the five digits of the transport PIN in the letter that you "
            "got with the card."
        )
        advice = _("The PIN has six digits, the transport PIN has five.")
    else:
        need = _("Type the six-digit PIN of the card.")
        advice = _("The PIN has six digits.")
    if left == 2:
        need += " " + _("Two tries are left.")
    elif left == 1:
        need += " " + _("This is the last try. Another wrong PIN blocks the PIN.")
    return Question("PIN", (5, 6) if takes_transport_pin else (6,), _("PIN"), need, advice)


def last_value(kind: str, was_void: bool, next_kind: str) -> str:
    """What has happened to the value that was typed before; empty when there is nothing to say."""
    if was_void:
        return _("The card left before it answered. Please type the value again.")
    if not kind:
        return ""
    # After the PIN, the card asks for another number only if the PIN was wrong.
    if kind == next_kind or kind == "PIN" and next_kind in ("CAN", "PUK"):
        return {
            "PIN": _("That PIN was wrong."),
            "CAN": _("That card access number (CAN) was wrong."),
            "PUK": _("That unblocking number (PUK) was wrong."),
        }.get(kind, _("The card did not take that value."))
    return _("The PIN is unblocked, and has three tries again.") if kind == "PUK" else ""


def unjudged(is_unanswered: bool) -> str:
    """What has happened to a value that the card has neither accepted nor refused."""
    if is_unanswered:
        return _("The card gave no answer, so the value may have been right. Please type it again.")
    return _("The value was not given to the card.")


def checking(kind: str) -> str:
    """What the card does with a value."""
    return {
        "PIN": _("The card checks the PIN. Leave it on the reader."),
        "CAN": _("The card checks the card access number (CAN). Leave it on the reader."),
        "PUK": _("The card unblocks the PIN. Leave it on the reader."),
        "NEW_PIN": _("The card changes the PIN. Leave it on the reader."),
    }[kind]


def step(percent: int) -> str:
    """What an authentication does, by its progress."""
    if percent < 20:
        return _("The service is being asked what it needs.")
    if percent < 40:
        return _("The card begins. Leave it on the reader.")
    if percent < 60:
        return _("The card and the service prove to each other that they are genuine.")
    if percent < 80:
        return _("The service reads the data that you have agreed to. Leave the card on the reader.")
    return _("The service prepares the page on which you continue.")


# Endings


def sent(state: str | None, rights: Iterable[str], has_agreed: bool) -> str:
    """What the service may have of the card's data."""
    names = data(rights)
    if state == "read":
        if names:
            return _("The service has received data, at most: {data}.", data=names)
        return _("The service has received answers of the card.")
    if state == "possible":
        if names:
            return _("The service may have received data, at most: {data}.", data=names)
        return _("The service may have received answers of the card.")
    if state is None:
        return ""
    return _("The service got none of the data.") if has_agreed else _("The service got no data.")


def unblocked() -> Ending:
    """The PUK has been accepted, and nothing else was wanted."""
    text = _("The PIN is unblocked, and has three tries again.")
    return Ending(_("The PIN is unblocked"), text, _("You can take the card off the reader."))


def not_blocked() -> Ending:
    """The card in the reader, perhaps not the one before, needs no PUK."""
    text = _("The PIN of the card that is in the reader now is not blocked, so no PUK is needed.")
    return Ending(_("The PIN is not blocked"), text, _("You can take the card off the reader."))


def unknown_pin(cause: str) -> Ending:
    """Nobody knows whether the card has changed its PIN."""
    text = cause + " " + _("The card has the old PIN or the new one.")
    return Ending(_("Was the PIN changed?"), text, _("Try the new PIN first. If it is wrong, use the old one."))


def authenticated(auth: badged.Auth) -> Ending:
    """A login that has succeeded."""
    if auth.sent == "none":
        text = _("The service has read no data from the card.")
    else:
        text = _("The service has received the data that you have agreed to.")
    return Ending(_("Done"), text, _("You can take the card off the reader. The page of the service continues."))


_GROUPS = {
    "cancelled": "User_Cancelled Establish_Pace_Channel_User_Cancelled Change_Pin_User_Cancelled "
    "Change_Pin_Card_User_Cancelled",
    "denied": "Access_Denied",
    "late": "Prompt_Timeout Change_Pin_Input_Timeout",
    "removed": "Card_Removed",
    "puk": "Establish_Pace_Channel_Puk_Inoperative",
    "card": "Maintain_Card_Connection_Pace_Unrecoverable Connect_Card_Connection_Failed",
    "refused": "Did_Authenticate_Eac1_Card_Command_Failed Did_Authenticate_Eac2_Card_Command_Failed "
    "Transmit_Card_Command_Failed",
    "left-in-change": "Change_Pin_No_SetEidPinCommand_Response",
    "wrong-in-change": "Change_Pin_Unrecoverable",
    "old-pin": "Change_Pin_Unexpected_Transmit_Status",
    "keypad": "Change_Pin_New_Pin_Mismatch Change_Pin_New_Pin_Invalid_Length",
    "link": "Parse_TcToken_Missing_Url Parse_TcToken_Invalid_Url Get_TcToken_Invalid_Url",
    "network": "Get_TcToken_Network_Error Generic_Send_Receive_Network_Error "
    "Check_Refresh_Address_Unknown_Network_Error Check_Refresh_Address_Service_Timeout "
    "Check_Refresh_Address_Proxy_Error",
    "busy": "Get_TcToken_ServiceUnavailable Get_TcToken_Server_Error Generic_Send_Receive_Service_Unavailable "
    "Generic_Send_Receive_Server_Error Check_Refresh_Address_Service_Unavailable Check_Refresh_Address_Server_Error",
    "gone": "Get_TcToken_Client_Error Get_TcToken_Empty_Data",
    "authority": "Pre_Verification_Invalid_Certificate_Chain",
    "expired": "Pre_Verification_Certificate_Expired",
    "card-authority": "Process_Certificates_From_Eac2_Cvc_Chain_Missing",
    "browser": "Browser_Send_Failed",
    "test": "Pre_Verification_No_Test_Environment",
}
_GROUP = {reason: group for group, reasons in _GROUPS.items() for reason in reasons.split()}
#: Faults in what the service sends, by the beginning of the reason.
_SERVICE = (
    "Get_TcToken_",
    "Extract_Cvcs_",
    "Pre_Verification_",
    "Certificate_Check_",
    "Generic_Send_",
    "Start_Paos_",
    "Check_Refresh_",
)


def failure(reason: str, changes_pin: bool) -> Ending:
    """A workflow that has failed, by the reason of the protocol."""
    title = _("The PIN was not changed") if changes_pin else _("The login has failed")
    again = _("Start again on the page of the service.") if not changes_pin else _("Start again.")
    group = _GROUP.get(reason, "service" if reason.startswith(_SERVICE) else "")
    if group == "cancelled":
        return Ending(_("Cancelled"), _("It was ended before it was complete."), again)
    if group == "left-in-change":
        return unknown_pin(_("The card left during the change."))
    if group == "wrong-in-change":
        return unknown_pin(_("The answer of the card to the change was not valid."))
    texts = {
        "denied": (
            _("You are not allowed to use the card reader."),
            _('Ask the administrator of this computer for the permission "cards".'),
        ),
        "late": (_("A question was not answered in time."), again),
        "removed": (
            _("The card was taken off the reader too early."),
            _("Leave the card on the reader until the end, and start again."),
        ),
        "puk": (
            _("The unblocking number (PUK) of this card is used up."),
            _("Your citizens' office can set a new PIN."),
        ),
        "card": (
            _("The card or the reader did not answer as expected."),
            _("Place the card anew, and start again."),
        ),
        "refused": (
            _("The card has refused what the service asked of it."),
            _("Place the card anew, and start again. If it happens once more, tell the service."),
        ),
        "old-pin": (_("The card did not take the new PIN. The old PIN is still valid."), again),
        "keypad": (_("The new PIN was not typed twice in the same way, or not with six digits."), again),
        "link": (_("The link of the service is not valid."), _("Open the page of the service, and start there again.")),
        "network": (
            _("The service cannot be reached."),
            _("Check the connection to the internet, and start again on the page of the service."),
        ),
        "busy": (_("The service is not available at the moment."), _("Try again later.")),
        "gone": (_("The service does not know this login any more."), again),
        "authority": (
            _("The certificate of the service is not known to this computer."),
            _("New certificates may be needed. The administrator imports them: sudo badgectl anchors import"),
        ),
        "expired": (
            _("The certificate of the service is not valid today."),
            _("Check the date of this computer. If it is right, tell the service."),
        ),
        "card-authority": (
            _("The service cannot prove to this card that it may read it."),
            _("Tell the service. If the card is for tests, the service must be one for tests, too."),
        ),
        "browser": (_("The browser has ended the login."), again),
        "test": (_("This is not a service for tests."), again),
        "service": (
            _("The service has made a mistake, so the login was ended for your protection."),
            _("Tell the service. It helps to name this reason: {reason}", reason=foreign.quoted(reason)),
        ),
    }
    unknown = (
        _("Something unexpected has happened."),
        _("Start again. If it happens once more, name this reason: {reason}", reason=foreign.quoted(reason)),
    )
    return Ending(title, *texts.get(group, unknown))


def no_pinentry() -> Ending:
    """No window can ask for a secret."""
    return Ending(
        _("The PIN cannot be asked for"),
        _("The program pinentry, which asks for the PIN, cannot be used here."),
        _("The administrator installs it: sudo apt install pinentry-gnome3"),
    )


def no_connection(status: int | None) -> Ending:
    """badgectl has ended with this exit status; None: it could not be started."""
    if status is None:
        remedy = _("The administrator installs it: sudo apt install badged")
        return Ending(_("badged is missing"), _("The program badgectl cannot be started."), remedy)
    if status == 4:
        return Ending(
            _("You may not use badged yet"),
            _("badged, which owns the card readers, only serves members of the group badged."),
            _(
                "The administrator adds you to it: sudo adduser {user} badged. Then log in to this computer again.",
                user=getpass.getuser(),
            ),
        )
    return Ending(
        _("badged is not running"),
        _("badged, which owns the card readers, does not answer. As soon as it does, this window continues."),
        _("The administrator starts it: sudo systemctl start badged.socket"),
    )


def date(day: str) -> str:
    """A day of the protocol in the form of the user's language."""
    parts = day.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return foreign.line(day, 20)
    year, month, number = parts
    return _("{year}-{month}-{day}", year=year, month=month, day=number)


def anchors(last_day: object) -> str:
    """Why no service is trusted. `last_day`: of the newest certificate, if there is one."""
    if not isinstance(last_day, str):
        return _(
            "Certificates are missing, without which no service is trusted. The administrator imports "
            "them: sudo badgectl anchors import"
        )
    return _(
        "The certificates by which this computer recognises services were valid until {day}. The administrator "
        "installs a newer AusweisApp (https://www.ausweisapp.bund.de/download), and imports its certificates: "
        "sudo badgectl anchors import",
        day=date(last_day),
    )


def drivers(check: badged.Check | None) -> str:
    """Why a card reader that is connected cannot be used, in the words of badged."""
    parts = [badged.translated(check.raw, member, _) for member in ("cause", "advice")] if check else []
    reason = foreign.line(": ".join(part for part in parts if part), 400)
    if not reason:
        return _("A card reader cannot be used.")
    return _("A card reader cannot be used: {reason}", reason=reason)


def faults(health: badged.Health) -> list[str]:
    """What is missing on this computer, and who can change that."""
    last_day = next((check.raw.get("lastDay") for check in health.checks if check.name == "trustAnchors"), None)
    texts = {
        "trustAnchors": anchors(last_day),
        "network": _("The part of badged that talks to services cannot be started."),
        "pcscd": _(
            "The service for card readers cannot be used. The administrator restarts it: sudo systemctl restart "
            "pcscd.socket pcscd. If it is missing, the administrator installs it: sudo apt install pcscd"
        ),
        "pcscdAccess": _("badged may not use the service for card readers."),
        "drivers": drivers(next((check for check in health.checks if check.name == "drivers"), None)),
    }
    return [
        texts[check.name]
        for check in health.checks
        if not check.ok and not check.raw.get("unknown") and check.name in texts
    ]

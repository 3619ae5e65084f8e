# SPDX-License-Identifier: GPL-3.0-or-later
"""What the workflows of docs/protocol/wallet.md must do with a Keycard, whoever made it."""

import json

from harness import check
from wallet import PIN, PUK, WORDS
from wallet_keys import address, derive, keccak, key_uid, recover, times

NEW_PIN, WRONG = "654321", "000000"
PATH = "m/44'/60'/0'/0/0"
API_PATH = "m/44'/60'/0'/1/0"
KNOWN = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
ADDRESSES = ["0x" + "11" * 20, "0x" + "ab" * 20]


def names(messages):
    return [message["msg"] for message in messages]


def last(messages):
    """The entity of FLOW_COMPLETE; the code of FLOW_INTERRUPTED."""
    message = messages[-1]
    if message["msg"] == "FLOW_COMPLETE":
        return message["contextEntity"]["entity"]
    return message.get("error", {}).get("code") if message["msg"] == "FLOW_INTERRUPTED" else message


def personal(text):
    """The digest of EIP-191, version 0x45."""
    data = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n" + str(len(data)).encode() + data)


def signer(digest, entity):
    point = recover(digest, bytes.fromhex(entity["signature"][2:]))
    return point and address(point)


class Words:
    """Writes down the words that are shown, and answers the three that are asked back."""

    def __init__(self):
        self.words = []

    def see(self, message):
        if message["msg"] == "SHOW_PAPER_WALLET":
            self.words = message["mnemonics"]

    def answer(self, message):
        return " ".join(self.words[position - 1] for position in message["positions"])


def set_up(wallet, count=12):
    """SETUP_DEVICE of a new card. Returns the messages and the words."""
    words = Words()
    answers = {"ENTER_NEW_PIN": [PIN], "ENTER_NEW_PUK": [PUK], "ENTER_PIN": lambda message: PIN, "ENTER_WORDS": words.answer}
    messages = wallet.run("SETUP_DEVICE", answers, words.see, userId="user", tokenId="7", words=count)
    return messages, " ".join(words.words)


def setup(wallet, name):
    """A new card gets PIN, PUK and keys. Returns its words."""
    messages, words = set_up(wallet)
    entity = last(messages)
    check(f"{name}: SETUP_DEVICE tells each step", names(messages) == [
        "FLOW_STARTED", "ENTER_NEW_PIN", "ENTER_NEW_PUK", "PIN_VALIDATED", "SHOW_PAPER_WALLET", "ENTER_WORDS", "REGISTER_DEVICE",
        "REQUEST_ACKNOWLEDGED", "FLOW_COMPLETE"], messages[-3:])
    if not isinstance(entity, dict):
        return words
    own = address(times(derive(words, PATH)))
    check("the device has the address of BIP-32", entity.get("address") == own, (entity, own))
    check("and the second address", entity.get("api_signer_address") == address(times(derive(words, API_PATH))), entity)
    check("the key UID is that of the words", (entity.get("keyUID"), entity.get("created")) == (key_uid(words), True), entity)
    told = wallet.card()
    facts = [told.get(key) for key in ("initialised", "keyUID", "pinTries", "pukTries")]
    check("READER tells keys and counters", facts == [True, key_uid(words), 3, 5], told)
    return words


def sign(wallet, name, words):
    """Each workflow that signs, and each payload. Every signature is checked with the key of BIP-32."""
    own = address(times(derive(words, PATH)))
    answers = {"ENTER_PIN": [PIN]}

    def signed(workflow, digest, **members):
        messages = wallet.run(workflow, answers, userId="user", **members)
        shown = next((message for message in messages if message["msg"] == "VERIFY_DATA"), None)
        entity = last(messages)
        text = f"{name}: {workflow} {members.get('payload', '')[:12]}"
        check(f"{text}shows what it signs", shown is not None and shown["signing"]["digest"] == digest.hex(), messages[-2:])
        check("the signature is that of the key",
              isinstance(entity, dict) and entity.get("signer") == own and signer(digest, entity) == own, messages[-1])
        return messages

    signed("ACTIVATE_USER", personal("a challenge"), challenge="a challenge")
    message = "what the app wants"
    transaction = {"dd": "TX", "ddv": "1.1.0", "d": {"rn": "Direct Transfer", "ads": ADDRESSES, "ams": ["1", "20"], "tid": "7"},
                   "m": {"tn": "coffee", "tt": "user_to_user", "td": "thanks"}}
    session = {"da": ADDRESSES[0], "sa": ADDRESSES[1], "sl": "1000", "et": "1893456000"}
    signature = "0x" + "22" * 65
    line = "|".join(["AS", "2", ADDRESSES[0][2:], ADDRESSES[1][2:], "1000", "1893456000", signature[2:]])
    for payload in [json.dumps({"dd": "AD", "ddv": "1.1.0", "d": {"da": ADDRESSES[0]}}),
                    json.dumps({"dd": "RD", "ddv": "1.1.0", "d": {"da": ADDRESSES[0]}}),
                    json.dumps(transaction),
                    json.dumps({"dd": "AS", "ddv": "1.1.0", "d": {"sd": session, "sig": signature}}), line]:
        signed("PERFORM_QR_ACTION", personal(message), payload=payload, message=message, tokenId="7")
    preimage = "0x1901" + "77" * 64
    signed("PERFORM_QR_ACTION", keccak(bytes.fromhex(preimage[2:])), preimage=preimage, tokenId="7",
           payload=json.dumps(transaction))

    messages = wallet.run("ADD_SESSION", answers, userId="user", spendingLimit="1000", expirationTime=1893456000)
    entity = last(messages)
    shown = next((message for message in messages if message["msg"] == "SHOW_SESSION_KEY"), {})
    key = int(shown.get("privateKey") or "1", 16)
    check(f"{name}: ADD_SESSION shows the key of its address", shown.get("address") == address(times(key)), messages[-2:])
    if isinstance(entity, dict):
        text = f"AS|2|{own[2:].lower()}|{shown['address'][2:].lower()}|1000|1893456000"
        check("the card has signed the limits of the session", signer(personal(text), entity) == own, entity)
        check("its line is a QR code", entity.get("payload", "").startswith(text), entity)


def pins(wallet, name, tries):
    """PIN and PUK. `tries` returns the counters of the card."""
    messages = wallet.run("RESET_PIN", {"ENTER_PIN": [WRONG, PIN], "ENTER_NEW_PIN": [NEW_PIN]})
    check(f"{name}: RESET_PIN after a wrong PIN", names(messages) == [
        "FLOW_STARTED", "ENTER_PIN", "INVALID_PIN", "ENTER_PIN", "PIN_VALIDATED", "ENTER_NEW_PIN", "FLOW_COMPLETE"], messages)
    shown = [message.get("retryCounter") for message in messages if message["msg"] in ("ENTER_PIN", "INVALID_PIN")]
    check("the questions tell the tries that are left", shown == [3, 2, 2], shown)
    messages = wallet.run("RESET_PIN", {"ENTER_PIN": [PIN, WRONG, WRONG], "ENTER_PUK": ["000000000000", PUK],
                                        "ENTER_NEW_PIN": lambda message: PIN})
    check("a blocked PIN gets a new one by the PUK", names(messages)[-1] == "FLOW_COMPLETE", messages[-2:])
    check("a wrong PUK is told", names(messages).count("INVALID_PIN") == 3 and "INVALID_PUK" in names(messages), names(messages))
    check("the card has all its tries again", tries() == (3, 5), tries())
    messages = wallet.run("ACTIVATE_USER", {"ENTER_PIN": [NEW_PIN, PIN]}, challenge="x")
    check("the old PIN is wrong, and the new one opens the wallet",
          names(messages)[-1] == "FLOW_COMPLETE" and names(messages).count("INVALID_PIN") == 1, messages[-2:])
    check("the card has all its tries", tries() == (3, 5), tries())


def refused(wallet, name):
    """What badged says of workflows that a card cannot do."""
    for workflow, code in [("GET_DEVICE_MNEMONICS", "MNEMONICS_NOT_STORED"), ("INITIATE_DEVICE_RECOVERY", "UNSUPPORTED_WORKFLOW"),
                           ("LOGOUT_ALL_SESSIONS", "UNSUPPORTED_WORKFLOW"), ("NO_SUCH", "INVALID_WORKFLOW")]:
        got = last(wallet.run(workflow, {}))
        check(f"{name}: {workflow} is refused with {code}", got == code, got)


def restore(wallet, name, uid):
    """RESET_CARD, then known words on the new card."""
    check(f"{name}: RESET_CARD ends with an empty card", last(wallet.run("RESET_CARD", {}, keyUID=uid)).get("initialised") is False)
    messages = wallet.run("AUTHORIZE_DEVICE_WITH_MNEMONICS", {"ENTER_WORDS": ["abandon " * 12, WORDS], "ENTER_NEW_PIN": [PIN],
                                                              "ENTER_NEW_PUK": [PUK]}, userId="user")
    entity = last(messages)
    check("words restore the wallet", isinstance(entity, dict) and entity.get("address") == KNOWN, messages[-2:])
    check("words with a wrong checksum are refused", any(
        message["msg"] == "ENTER_WORDS" and "error" in message for message in messages), names(messages))


def unpair(wallet, name):
    messages = wallet.run("UNPAIR", {"ENTER_PIN": [PIN]})
    check(f"{name}: UNPAIR gives the slot back", names(messages)[-1] == "FLOW_COMPLETE", messages)
    told = wallet.card()
    check("READER does not know the counters then", (told.get("paired"), told.get("pinTries")) == (False, None), told)
    messages = wallet.run("PAIR", {})
    check("PAIR pairs again", names(messages)[-1] == "FLOW_COMPLETE", messages)


def all_of_them(wallet, name, tries, is_paired=True):
    """Runs everything on a card that is new from the factory and in the reader."""
    refused(wallet, name)
    words = setup(wallet, name)
    sign(wallet, name, words)
    if is_paired:
        unpair(wallet, name)
    pins(wallet, name, tries)
    restore(wallet, name, key_uid(words))

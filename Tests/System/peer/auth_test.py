# SPDX-License-Identifier: GPL-3.0-or-later
"""AusweisApp2 authenticates with our virtual card to our eID-Server, through real pcscd and vpcd. Called by run.sh."""

import sys

import programs
from check import Check

PIN, CAN = "123456", "500540"
HOLDER = {"GivenNames": "JÖRDIS AMALIA", "FamilyName": "WEIẞENBÖCK"}

# name, parameters of the token's URL, how the user acts when it is not a PIN and consent
GOOD = [
    ("TLS-PSK", {}, {}),
    ("attached", {"mode": "attached"}, {}),
    ("attached, each message on a connection of its own", {"mode": "attached", "keepalive": 0}, {}),
    ("InitializeFramework", {"init": 1}, {}),
    ("EACAdditionalInputType", {"additional": 1}, {}),
    ("a command in each Transmit, short reads", {"batch": 1, "le": 16}, {}),
    ("certificates in another order, with the root", {"reverse": 1, "cvca": 1}, {}),
    ("EC certificate", {"listener": "web-ec"}, {}),
    ("acceptable status codes", {"accept": "90,62,63,6a"}, {}),
    ("no RequiredCHAT", {"requiredchat": 0}, {}),
    ("transaction, accepted eID types", {"transaction": "Order 4711", "eidtypes": "CardCertified"}, {}),
    ("everything optional, all dropped", {"required": "", "optional": "GivenNames,Address"}, {"chat": []}),
    ("three redirects", {"fault": "tctoken-redirect"}, {}),
    ("refresh address of another origin", {"fault": "refresh-other-origin"}, {}),
    ("another terminal certificate in EAC2", {"fault": "eac2-other-at"}, {}),
    ("CAN instead of PIN", {"can": 1}, {"answers": {"ENTER_CAN": [CAN]}}),
    ("a wrong PIN first", {}, {"answers": {"ENTER_PIN": ["000000", PIN]}}),
    # From here on the card has the new root, too, and the peer has kept the link certificate.
    ("link certificate in EAC2", {"chain": "late"}, {}),
    ("link certificate in EAC1", {"chain": "link"}, {}),
]
# After these the card must still be as it was.
BAD = ["tctoken-binding", "tctoken-psk-odd", "tls-psk-wrong", "tls-unlisted", "tls-expired", "start-malformed",
       "start-server-error", "eac1-no-dv", "eac1-cert-signature", "eac1-rogue-root", "eac1-at-expired",
       "eac1-description-hash", "eac1-chat-more", "eac1-500", "eac2-signature", "eac2-challenge", "eac2-no-key",
       "transmit-mac", "transmit-status", "final-error", "final-malformed", "refresh-http"]


def good(terminal, card, server, name, parameters, more):
    parameters = dict(parameters)
    listener = parameters.pop("listener", None)
    last, seen = terminal.authenticate(server.url(parameters, listener), more.get("answers", {"ENTER_PIN": [PIN]}),
                                       more.get("chat"))
    report = server.report()
    what = f"{terminal.name}: {name}"
    Check.that(f"{what}: it reports success", last.get("result", {}).get("major", "").endswith("#ok"), last)
    Check.that(f"{what}: the server agrees, the card is genuine, nothing was odd",
               report["outcome"] == "ok" and report["card"]["passiveAuthentication"] and not report["notes"], report)
    if "required" not in parameters and "requiredchat" not in parameters:
        Check.that(f"{what}: the data of the card arrived",
                   all(report["data"].get(key) == value for key, value in HOLDER.items())
                   and report["data"]["AgeVerification"] is True and len(report["data"]["Pseudonym"]) == 64,
                   report["data"])
    Check.that(f"{what}: it names the refresh address", report["session"] in last.get("url", ""), last)
    return report


def bad(terminal, card, server, fault):
    last, _ = terminal.authenticate(server.url({"fault": fault}), {"ENTER_PIN": [PIN]})
    result = last.get("result", {})
    minor = result.get("minor", "").rsplit("resultminor", 1)[-1]
    Check.that(f"{terminal.name}: {fault}: ends with an error ({minor})",
               result.get("major", "").endswith("#error"), last)
    Check.that(f"{terminal.name}: {fault}: no try of the PIN is lost", card.state()["retryCounter"] == 3, card.state())


def main():
    binaries, folder = sys.argv[1:3]
    server = programs.EIDServer(f"{binaries}/badged-eidserver", folder)

    card = programs.Card(f"{binaries}/badged-virtual-card", folder, {})
    terminal = programs.start_peer(folder, 24727, server.roots)
    terminal.wait_for_card(True)
    for entry in GOOD:
        good(terminal, card, server, *entry)
    for fault in BAD:
        bad(terminal, card, server, fault)
    terminal.stop()
    card.remove()
    server.stop()
    Check.end()


main()

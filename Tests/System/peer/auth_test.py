# SPDX-License-Identifier: GPL-3.0-or-later
"""AusweisApp2 authenticates with our virtual card to our eID-Server, through a real pcscd and vpcd. Started by run.sh."""

import sys

from cards import Card
from harness import check, finish
from programs import CAN, PIN, EIDServer, start_peer

HOLDER = {"GivenNames": "JÖRDIS AMALIA", "FamilyName": "WEIẞENBÖCK"}

# name, parameters of the URL, what the user does other than to consent and to enter the PIN
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
    ("all rights optional, none granted", {"required": "", "optional": "GivenNames,Address"}, {"chat": []}),
    ("three redirects", {"fault": "tctoken-redirect"}, {}),
    ("refresh address of another origin", {"fault": "refresh-other-origin"}, {}),
    ("another terminal certificate in EAC2", {"fault": "eac2-other-at"}, {}),
    ("CAN instead of PIN", {"can": 1}, {"answers": {"ENTER_CAN": CAN}}),
    ("a wrong PIN first", {}, {"answers": {"ENTER_PIN": ["000000", PIN]}}),
    # From here on the card trusts the new root, and AusweisApp2 has kept the link certificate.
    ("link certificate in EAC2", {"chain": "late"}, {}),
    ("link certificate in EAC1", {"chain": "link"}, {}),
]
# Each ends with an error and leaves the card unchanged.
BAD = ["tctoken-binding", "tctoken-psk-odd", "tls-psk-wrong", "tls-unlisted", "tls-expired", "start-malformed",
       "start-server-error", "eac1-no-dv", "eac1-cert-signature", "eac1-rogue-root", "eac1-at-expired",
       "eac1-description-hash", "eac1-chat-more", "eac1-500", "eac2-signature", "eac2-challenge", "eac2-no-key",
       "transmit-mac", "transmit-status", "final-error", "final-malformed", "refresh-http"]


def good(terminal, server, name, parameters, more):
    parameters = dict(parameters)
    listener = parameters.pop("listener", None)
    last = terminal.authenticate(server.url(parameters, listener), more.get("answers", {"ENTER_PIN": PIN}),
                                 more.get("chat"))
    report = server.report()
    what = f"{terminal.name}: {name}"
    check(f"{what}: it reports success", last.get("result", {}).get("major", "").endswith("#ok"), last)
    check(f"{what}: the server reports success, a genuine card, and no oddity",
          report["outcome"] == "ok" and report["card"]["passiveAuthentication"] and not report["notes"], report)
    if "required" not in parameters and "requiredchat" not in parameters:
        check(f"{what}: the data of the card arrived",
              all(report["data"].get(key) == value for key, value in HOLDER.items())
              and report["data"]["AgeVerification"] is True and len(report["data"]["Pseudonym"]) == 64, report["data"])
    check(f"{what}: it names the refresh address", report["session"] in last.get("url", ""), last)


def bad(terminal, card, server, fault):
    result = terminal.authenticate(server.url({"fault": fault}), {"ENTER_PIN": PIN}).get("result", {})
    minor = result.get("minor", "").rsplit("resultminor", 1)[-1]
    check(f"{terminal.name}: {fault}: it ends with an error ({minor})", result.get("major", "").endswith("#error"), result)
    check(f"{terminal.name}: {fault}: no try of the PIN is lost", card.state()["retryCounter"] == 3, card.state())


def main():
    binaries, folder = sys.argv[1:3]
    server = EIDServer(f"{binaries}/badged-eidserver", folder)
    card = Card(f"{binaries}/badged-virtual-card", folder, {})
    terminal = start_peer(folder, roots=server.roots)
    terminal.wait_for_card(True)
    for entry in GOOD:
        good(terminal, server, *entry)
    for fault in BAD:
        bad(terminal, card, server, fault)
    terminal.stop()
    card.remove()
    server.stop()
    finish()


main()

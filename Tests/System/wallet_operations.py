# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operations of MYKEY must do with a Keycard that has the words WORDS, whoever made it."""

import hashlib
import json

from antelope import name, public_key, signer
from harness import check
from wallet import PIN

PATH = "m/44'/194'/0'/0/0"
ACCOUNT = "bobbobbobbob"


def operation(wallet, command, answers=None, **members):
    """Runs an operation, and returns WALLET_REQUEST and WALLET_RESULT."""
    messages = wallet.dialogue({"cmd": command, **members}, {"ENTER_PIN": [PIN]} if answers is None else answers)
    return next((message for message in messages if message["msg"] == "WALLET_REQUEST"), {}), messages[-1]


def all_of_them(wallet, who, node, tries):
    """Each operation, against the node and the dapp of antelope.py. Every signature is checked there or here."""
    callback = f"{node.url}/callback"

    def signed(what, text, result):
        digest = hashlib.sha256(text.encode()).digest()
        check(f"{who}: {what}", result.get("code") == 1 and signer(digest, result["sign"]) == node.point, result)

    ready = wallet.client.ask("WALLET_READY", cmd="WALLET_INIT", mode="MYKEY", appKey="key", UUID="u-1", dappName="Shop")
    check(f"{who}: WALLET_INIT tells the chain", ready.get("chainId") == node.CHAIN.hex() and ready.get("node") is True, ready)
    _, result = operation(wallet, "WALLET_SIGN", message="x")
    check("without a binding the code is 10007", result.get("code") == 10007, result)
    request, result = operation(wallet, "WALLET_AUTHORIZE", account=ACCOUNT, userName="bob", callbackUrl=callback)
    signed("WALLET_AUTHORIZE signs the text that it has shown", request.get("text") or "", result)
    check("it tells the key", result.get("publicKey") == public_key(node.point), result)
    check("the dapp has got the callback", len(node.callbacks) == 1, node.callbacks)
    request, result = operation(wallet, "WALLET_SIGN", message="a message", callbackUrl=callback)
    signed("WALLET_SIGN signs the message", "a message", result)

    request, result = operation(wallet, "WALLET_TRANSFER", **{"from": ACCOUNT}, to="alice", amount="1.5", symbol="EOS",
                                contractName="eosio.token", decimal=4, memo="hello")
    shown = request.get("actions") or [{}]
    check(f"{who}: WALLET_TRANSFER shows what is in the packed bytes", shown[0].get("data") ==
          {"from": ACCOUNT, "to": "alice", "quantity": "1.5000 EOS", "memo": "hello"}, request)
    check("the chain executes it", result.get("code") == 1 and node.executed == [(name("alice"), 15000, "hello")], (result, node.refused))
    action = {"account": "eosio.token", "name": "transfer",
              "data": {"from": ACCOUNT, "to": "carol", "quantity": "0.2500 EOS", "memo": ""}}
    _, result = operation(wallet, "WALLET_CONTRACT", actions=[action, action])
    check(f"{who}: WALLET_CONTRACT: both actions are executed", result.get("code") == 1 and
          node.executed[1:] == [(name("carol"), 2500, "")] * 2, (result, node.refused))
    parameter = {"action": "transfer", "to": "dave", "amount": 0.5, "contract": "eosio.token", "symbol": "EOS", "precision": 4,
                 "dappData": "k=v", "callback": "app://back"}
    _, result = operation(wallet, "WALLET_SIMPLEWALLET", account=ACCOUNT, param=json.dumps(parameter))
    check(f"{who}: WALLET_SIMPLEWALLET transfers", result.get("code") == 1 and node.executed[3:] == [(name("dave"), 5000, "k=v")],
          (result, node.refused))

    pushed = len(node.executed)
    _, result = operation(wallet, "WALLET_TRANSFER", {}, **{"from": ACCOUNT}, to="alice", amount="1", symbol="EOS",
                          contractName="eosio.token", decimal=4)
    check(f"{who}: CANCEL has the code 0", result.get("code") == 0, result)
    _, result = operation(wallet, "WALLET_TRANSFER", **{"from": ACCOUNT}, to="alice", amount="1000", symbol="EOS",
                          contractName="eosio.token", decimal=4)
    check("a balance that is too small has the code 10013", result.get("code") == 10013, result)
    _, result = operation(wallet, "WALLET_SIGN", {"ENTER_PIN": ["000000", PIN]}, message="again")
    signed("WALLET_SIGN after a wrong PIN", "again", result)
    check("nothing was pushed, nothing refused, no try is lost", len(node.executed) == pushed and not node.refused and
          tries() == (3, 5), (node.refused, tries()))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""change_pin.py SOCKET: changes the PIN of a new virtual card from 123456 to 654321."""
import json, socket, sys

badged = socket.socket(socket.AF_UNIX)
badged.connect(sys.argv[1])
answers = {
    "INSERT_CARD": {"cmd": "SET_CARD", "name": "Simulator", "card": {"kind": "eid"}},
    "ENTER_PIN": {"cmd": "SET_PIN", "value": "123456"},
    "ENTER_NEW_PIN": {"cmd": "SET_NEW_PIN", "value": "654321"},
}
badged.sendall(b'{"cmd": "RUN_CHANGE_PIN"}\n')
for line in badged.makefile():
    message = json.loads(line)
    if answer := answers.get(message["msg"]):
        badged.sendall(json.dumps({**answer, "question": message.get("question")}).encode() + b"\n")
    elif "success" in message:
        sys.exit(0 if message["success"] else message["reason"])

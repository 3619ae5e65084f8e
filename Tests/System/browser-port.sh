#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The port for browsers with WebSocket libraries of other people, and with browsers and user interfaces of two users.
. "$(dirname "$0")/lib.sh"
needs python3
needs_programs badged badged-activation
# The packages of Debian belong to its own Python, which need not be the first one.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import websocket, websockets' 2>/dev/null; then
        "$python" "$here/browser_port.py" "$bin/badged" "$work"
        exit
    fi
done
cannot "needs python3-websocket and python3-websockets (make setup)"

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Socket activation by systemd-socket-activate(1).
. "$(dirname "$0")/lib.sh"
needs python3 systemd-socket-activate
needs_programs badged
python3 "$here/socket_activation.py" "$bin/badged" "$work"

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged as a process: start and end, notification of the service manager, signals, its socket, its log, its exit codes.
. "$(dirname "$0")/lib.sh"
needs python3
needs_programs badged badgectl
python3 "$here/daemon.py" "$bin/badged" "$bin/badgectl" "$work"

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# M-Pin: badged with its store, against the double of the servers in Tests/MPinServer. MPIN_BACKEND names other servers.
. "$(dirname "$0")/lib.sh"
needs python3
needs_programs badged badged-network
check "the vectors are what the reference computes" python3 "$root/Tests/MPinServer/make-vectors.py" --check
check "the double of the servers answers as recorded servers of Apache" python3 "$root/Tests/MPinServer/compare.py"
backend=${MPIN_BACKEND:-}
if [ -z "$backend" ]; then
    mkfifo "$work/input"
    python3 "$root/Tests/MPinServer/server.py" <"$work/input" >"$work/servers" &
    # The servers end with their input.
    exec 3>"$work/input"
    until holds "$work/servers" ready >"$work/wait" 2>&1; do sleep 0.02; done
    backend=http://127.0.0.1:$(sed 's/ready //' "$work/servers")
fi
check "badged is an M-Pin client" python3 "$here/mpin.py" "$bin/badged" "$work" "$backend"
finish

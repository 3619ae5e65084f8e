#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs that badged starts: badged-activation, badged-nfc and badged-network. Checks how they are confined,
# and which descriptors they have while badged is connected to clients, pcscd and an eID-Server.
. "$(dirname "$0")/lib.sh"
needs python3 pcscd unshare ip
needs_programs badged badged-activation badged-nfc badged-network badged-eidserver
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
check "badged links no library of the network" sh -c "! ldd '$bin/badged' | grep -E 'libcurl|libssl|libexpat|libwebsockets'"
"$here/in-namespace.sh" python3 "$here/programs.py" "$bin" "$work"
finish

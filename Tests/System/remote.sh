#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Two hosts in network namespaces, joined by a cable (veth): one lends the card in its reader, the other one uses it.
. "$(dirname "$0")/lib.sh"
needs python3 unshare ip pcscd
needs_programs badged badged-network badged-remote badgectl badged-virtual-card badged-eidserver
[ -e /etc/reader.conf.d/vpcd ] || cannot "needs vsmartcard-vpcd (make setup)"
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
# The kernel may lack the module, and a container may forbid it.
"$here/in-namespace.sh" ip link add desk0 type veth peer name phone0 2>/dev/null ||
    cannot "needs network interfaces of the type veth"
"$here/in-namespace.sh" python3 "$here/remote.py" "$bin" "$work"

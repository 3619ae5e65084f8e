#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Cards that another program of PC/SC holds, and workflows that end while their card is opened: a real pcscd with vpcd, in
# namespaces of their own.
. "$(dirname "$0")/lib.sh"
needs python3 unshare ip pcscd
needs_programs badged badged-virtual-card badged-eidserver
[ -e /etc/reader.conf.d/vpcd ] || cannot "needs vsmartcard-vpcd (make setup)"
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
"$here/in-namespace.sh" python3 "$here/held_cards.py" "$bin" "$work"

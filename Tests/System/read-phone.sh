#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged and badgectl with the virtual phone behind vpcd and a real pcscd, in namespaces of their own.
. "$(dirname "$0")/lib.sh"
needs python3 unshare ip pcscd
needs_programs badged badgectl badged-virtual-card
[ -e /etc/reader.conf.d/vpcd ] || cannot "needs vsmartcard-vpcd (make setup)"
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
"$here/in-namespace.sh" python3 "$here/read_phone.py" "$bin" "$work"

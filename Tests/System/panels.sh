#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged-osdp with libosdp as door panel and as reader in the wall, over ptys and TCP, and over a line that drops and
# flips bytes. TAPS is the number of cards over that line.
# long
. "$(dirname "$0")/lib.sh"
needs_programs badged badged-osdp badgectl
# libosdp is a package of PyPI, which `make setup` puts into the virtual environment of the checkout.
python=$root/.build-tools/bin/python
"$python" -c 'import osdp' 2>/dev/null || cannot "needs libosdp (make setup)"
"$python" "$here/panels.py" "$bin" "$work" "${TAPS:-1000}" || failures=1
finish

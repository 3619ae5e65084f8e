#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The completions of badgectl in bash, zsh and fish: commands, values, readers of a running badged, files.
. "$(dirname "$0")/lib.sh"
needs python3 bash zsh fish
needs_programs badged badgectl
python3 "$here/completions.py" "$bin" "$work"

# SPDX-License-Identifier: GPL-3.0-or-later
"""badged-desktop: the window of badged. docs/clients.md says how its parts work together."""

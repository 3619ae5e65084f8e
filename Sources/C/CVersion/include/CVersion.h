// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// The version of the programs: digits and dots, and what dpkg sorts before or after a release.
const char *badged_version(void);

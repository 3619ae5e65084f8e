// SPDX-License-Identifier: GPL-3.0-or-later
#include "CLinux.h"

// Weak, because `make` links the version of the commit in its place (packaging/version). So a new commit links the
// programs anew, and compiles nothing.
__attribute__((weak)) const char *badged_version(void) { return "0.3.0~dev"; }

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "CTestSupport.h"

#include <signal.h>

__attribute__((constructor)) static void ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

void ctestsupport_link(void) {}

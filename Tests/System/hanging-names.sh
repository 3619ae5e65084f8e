#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged beside name services that never answer: getaddrinfo and getpwnam_r are replaced by
# functions that wait for ever.
. "$(dirname "$0")/lib.sh"
needs clang python3
needs_programs badged badged-network
clang -shared -fPIC -x c -o "$work/hosts.so" - <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static int fifo;
/* badged-network opens no such file later. */
__attribute__((constructor)) static void open_fifo(void) { fifo = open(getenv("ASKED"), O_RDWR | O_CLOEXEC); }
int getaddrinfo(void) {
    if (write(fifo, "?", 1) != 1) abort();
    for (;;) pause();
}
END
clang -shared -fPIC -x c -o "$work/users.so" - <<'END'
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int getpwnam_r(void) {
    if (write(open(getenv("ASKED"), O_RDWR | O_CLOEXEC), "?", 1) != 1) abort();
    for (;;) pause();
}
END
python3 "$here/hanging_names.py" "$bin/badged" "$work"

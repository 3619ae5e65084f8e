/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "Replacements.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static _Thread_local const int *places;
static _Thread_local int left, taken;

void cnfc_lend(const int *descriptors, int count) {
    places = descriptors;
    left = count;
    taken = 0;
}

int cnfc_end_loan(void) {
    left = 0;
    return taken;
}

/* dup3 takes a place and gives up what was there in one step, so nobody can come between. */
static int placed(int descriptor) {
    if (descriptor < 0 || left == 0) return descriptor;
    int place = dup3(descriptor, places[taken], O_CLOEXEC), reason = errno;
    close(descriptor);
    errno = reason;
    if (place >= 0) {
        taken++;
        left--;
    }
    return place;
}

static int opened(const char *path, int flags, va_list arguments) {
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
    return placed(openat(AT_FDCWD, path, flags, mode));
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = opened(path, flags, arguments);
    va_end(arguments);
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = opened(path, flags | O_LARGEFILE, arguments);
    va_end(arguments);
    return descriptor;
}

int pipe(int descriptors[2]) {
    if (pipe2(descriptors, 0) != 0) return -1;
    for (int end = 0; end < 2; end++) descriptors[end] = placed(descriptors[end]);
    if (descriptors[0] >= 0 && descriptors[1] >= 0) return 0;
    int reason = errno;
    for (int end = 0; end < 2; end++) if (descriptors[end] >= 0) close(descriptors[end]);
    errno = reason;
    return -1;
}

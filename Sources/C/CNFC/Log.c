/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CNFC.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static const char variable[] = "LIBNFC_LOG_LEVEL";
static _Thread_local struct cnfc_log *collector;

/* Keeps what the thread of the log writes, and drops what other threads write meanwhile. */
static ssize_t keep(void *cookie, const char *text, size_t size) {
    (void)cookie;
    if (collector != NULL) {
        size_t room = collector->size - collector->count, part = size < room ? size : room;
        memcpy(collector->text + collector->count, text, part);
        collector->count += part;
    }
    return (ssize_t)size;
}

int cnfc_log(struct cnfc_log *log) {
    /* The stream is never closed, because another thread may be writing to it. */
    static FILE *stream, *before;
    static char level[16];
    if (stream == NULL) {
        stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep});
        if (stream == NULL) return -1;
        setvbuf(stream, NULL, _IONBF, 0);
    }
    collector = log;
    if (log != NULL) {
        const char *now = getenv(variable);
        snprintf(level, sizeof level, "%s", now == NULL ? "0" : now);
        before = stderr;
        stderr = stream;
        setenv(variable, "3", 1);
    } else if (before != NULL) {
        setenv(variable, level, 1);
        stderr = before;
        before = NULL;
    }
    return 0;
}

#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged-mqtt with the broker mosquitto, and faults of clock, names, links, brokers, badged, queue and disk.
# docs/fleet.md, Faults.
# long
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
needs mosquitto mosquitto_sub mosquitto_passwd python3 clang
needs_programs badged-mqtt
# The clock of the calendar is moved by as many seconds as the file $SHIFT has bytes, and no name of a host is found while
# the file $NAMELESS is there.
clang -shared -fPIC -O -x c -o "$work/faults.so" - <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    struct stat file;
    int result = (int)syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME && stat(getenv("SHIFT"), &file) == 0) time->tv_sec -= file.st_size;
    return result;
}
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (access(getenv("NAMELESS"), F_OK) == 0) return EAI_AGAIN;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, found);
}
END
python3 "$here/mqtt_faults.py" "$bin" "$work" || failures=1
finish

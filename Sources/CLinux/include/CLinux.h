/* SPDX-License-Identifier: GPL-3.0-or-later
 * What Linux and glibc offer but `import Glibc` does not show: _GNU_SOURCE calls, macros, variadic functions.
 * Nothing here decides anything; each function is one call. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

static inline int clinux_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }
static inline int clinux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }

/* One epoll registration or wait; data is the caller's 64-bit token. */
static inline int clinux_epoll_control(int epoll, int operation, int fd, uint32_t events, uint64_t token) {
    struct epoll_event e = {.events = events, .data.u64 = token};
    return epoll_ctl(epoll, operation, fd, &e);
}

/* Credentials of the process at the other end of a Unix socket: SO_PEERCRED. */
static inline int clinux_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred c;
    socklen_t n = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) != 0) return -1;
    *pid = c.pid, *uid = c.uid, *gid = c.gid;
    return 0;
}

/* Supplementary groups of that process: SO_PEERGROUPS. Gives the number of groups, -1 on error. */
static inline int clinux_peer_groups(int fd, gid_t *groups, int capacity) {
    socklen_t n = (socklen_t)(capacity * (int)sizeof(gid_t));
    if (getsockopt(fd, SOL_SOCKET, 59 /* SO_PEERGROUPS */, groups, &n) != 0) return -1;
    return (int)(n / sizeof(gid_t));
}

static inline int clinux_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }
static inline int clinux_set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
static inline int clinux_set_cloexec(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC); }
static inline int clinux_no_core_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
static inline int clinux_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

/* TCP_QUICKACK is not sticky: to be set before each read. */
static inline int clinux_tcp_quickack(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}
static inline int clinux_tcp_nodelay(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

const uint32_t CLINUX_EPOLLIN = EPOLLIN, CLINUX_EPOLLOUT = EPOLLOUT, CLINUX_EPOLLHUP = EPOLLHUP, CLINUX_EPOLLERR = EPOLLERR;

int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_control(int epoll, enum clinux_epoll_operation operation, int fd, uint32_t events, uint64_t token) {
    static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    struct epoll_event e = {.events = events, .data.u64 = token};
    return epoll_ctl(epoll, operations[operation], fd, &e);
}

int clinux_epoll_wait(int epoll, struct clinux_epoll_event *events, int capacity, int timeout_ms) {
    struct epoll_event raw[64];
    int n = epoll_wait(epoll, raw, capacity < 64 ? capacity : 64, timeout_ms);
    for (int i = 0; i < n; i++) events[i] = (struct clinux_epoll_event){raw[i].events, raw[i].data.u64};
    return n;
}

int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int clinux_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int clinux_timerfd_set(int fd, uint64_t interval_us) {
    struct timespec t = {.tv_sec = (time_t)(interval_us / 1000000), .tv_nsec = (long)(interval_us % 1000000) * 1000};
    struct itimerspec s = {.it_interval = t, .it_value = t};
    return timerfd_settime(fd, 0, &s, NULL);
}

int clinux_signalfd(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int clinux_signalfd_read(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : -1;
}

int clinux_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC); }

int clinux_peer_credentials(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid) {
    struct ucred c;
    socklen_t n = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) != 0) return -1;
    *pid = c.pid, *uid = c.uid, *gid = c.gid;
    return 0;
}

int clinux_peer_groups(int fd, uint32_t *groups, int capacity) {
    socklen_t n = (socklen_t)capacity * sizeof *groups;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) != 0) return -1;
    return (int)(n / sizeof *groups);
}

int clinux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }
int clinux_open(const char *path, int flags, unsigned mode) { return open(path, flags, (mode_t)mode); }
int clinux_set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
int clinux_set_cloexec(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC); }
int clinux_no_core_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
void clinux_return_large_blocks(void) { mallopt(M_MMAP_THRESHOLD, 128 * 1024); }
int clinux_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

int clinux_tcp_quickack(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

int clinux_tcp_nodelay(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Declared as the runtime does in its Concurrency.h; there is no header of it to include. Weak, for programs in C. */
typedef __attribute__((swiftcall)) void enqueue_global(void *job);
typedef __attribute__((swiftcall)) void enqueue_global_hook(void *job, enqueue_global *original);
extern enqueue_global_hook *swift_task_enqueueGlobal_hook __attribute__((weak));
/* The executor is two words; both zero means none in particular. */
extern __attribute__((swiftcall, weak)) void swift_job_run(void *job, uintptr_t identity, uintptr_t implementation);

static void (*global_job_sink)(void *job);

static __attribute__((swiftcall)) void take_global_job(void *job, enqueue_global *original) {
    (void)original;
    global_job_sink(job);
}

void clinux_take_global_jobs(void (*sink)(void *job)) {
    if (!&swift_task_enqueueGlobal_hook) return;
    global_job_sink = sink;
    swift_task_enqueueGlobal_hook = take_global_job;
}

void clinux_run_global_job(void *job) { swift_job_run(job, 0, 0); }

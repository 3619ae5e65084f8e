/* SPDX-License-Identifier: GPL-3.0-or-later
 * What Linux and glibc offer but `import Glibc` does not show: _GNU_SOURCE calls, macros, variadic functions.
 * Nothing here decides anything; each function is one call. The header includes no system header that changes with
 * _GNU_SOURCE: two views of one type in one program do not compile. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* epoll: interests and events are the bits of the two constants, hang-up and error come unasked. */
extern const uint32_t CLINUX_EPOLLIN, CLINUX_EPOLLOUT, CLINUX_EPOLLHUP, CLINUX_EPOLLERR;
enum clinux_epoll_operation { CLINUX_EPOLL_ADD, CLINUX_EPOLL_MODIFY, CLINUX_EPOLL_REMOVE };
struct clinux_epoll_event { uint32_t events; uint64_t token; };
int clinux_epoll_create(void);
int clinux_epoll_control(int epoll, enum clinux_epoll_operation operation, int fd, uint32_t events, uint64_t token);
/* Waits without limit when timeout is -1; at most 64 events. */
int clinux_epoll_wait(int epoll, struct clinux_epoll_event *events, int capacity, int timeout_ms);

/* eventfd, non-blocking. */
int clinux_eventfd(void);
/* Blocks the given signals in the calling thread and threads made later, and gives a descriptor that reports them. */
int clinux_signalfd(const int *signals, int count);
/* The next signal number of that descriptor, or -1. */
int clinux_signalfd_read(int fd);

/* accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC. */
int clinux_accept(int fd);
/* Credentials of the process at the other end of a Unix socket: SO_PEERCRED. */
int clinux_peer_credentials(int fd, int32_t *pid, uint32_t *uid, uint32_t *gid);
/* Supplementary groups of that process: SO_PEERGROUPS. Gives their number, -1 on error. */
int clinux_peer_groups(int fd, uint32_t *groups, int capacity);

int clinux_set_thread_name(const char *name);
int clinux_open(const char *path, int flags, unsigned mode);
int clinux_set_nonblocking(int fd);
int clinux_set_cloexec(int fd);
/* PR_SET_DUMPABLE 0: no core file, no ptrace by the same user. */
int clinux_no_core_dumps(void);
/* Capabilities of the calling thread, which threads that it starts later inherit: capget(2) and capset(2). */
int clinux_has_capability(unsigned capability);
int clinux_drop_capability(unsigned capability);
int clinux_die_with_parent(void);
/* Adds to the actions of posix_spawn: close every descriptor from lowest on. The argument is a posix_spawn_file_actions_t. */
int clinux_spawn_close_from(void *actions, int lowest);

/* Gives a descriptor to the process at the other end of a Unix socket: SCM_RIGHTS. */
int clinux_pass_descriptor(int socket, int fd);
/* The next one that came; -1 when there is none yet, -2 when there will be none. */
int clinux_take_descriptor(int socket);

/* TCP_QUICKACK is not sticky: to be set before each read. */
int clinux_tcp_quickack(int fd);
int clinux_tcp_nodelay(int fd);

/* Jobs of Swift tasks and actors that have no executor of their own go to sink from now on, and no longer to the pool of
 * the language. To be called before the first task. A hook of the runtime, swift_task_enqueueGlobal_hook. */
void clinux_take_global_jobs(void (*sink)(void *job));
/* Runs such a job on the calling thread. */
void clinux_run_global_job(void *job);

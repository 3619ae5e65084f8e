/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CLinux.h"

#include <sys/timex.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

const uint32_t CLINUX_EPOLLIN = EPOLLIN, CLINUX_EPOLLOUT = EPOLLOUT;
const uint32_t CLINUX_EPOLLHUP = EPOLLHUP, CLINUX_EPOLLERR = EPOLLERR, CLINUX_EPOLLET = EPOLLET;

int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_control(int epoll, enum clinux_epoll_operation operation, int fd, uint32_t events, uint64_t token) {
    static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    struct epoll_event e = {.events = events, .data.u64 = token};
    return epoll_ctl(epoll, operations[operation], fd, &e);
}

int clinux_epoll_wait(int epoll, struct clinux_epoll_event *events, int capacity, int64_t timeout_us) {
    struct epoll_event raw[64];
    struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
    if (capacity > 64) capacity = 64;
    int n = epoll_pwait2(epoll, raw, capacity, timeout_us < 0 ? NULL : &timeout, NULL);
    /* Kernels before 5.11 do not know the call, and filters of that time refuse it. */
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
        int64_t timeout_ms = timeout_us < 0 ? -1 : (timeout_us + 999) / 1000;
        n = epoll_wait(epoll, raw, capacity, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
    }
    for (int i = 0; i < n; i++) events[i] = (struct clinux_epoll_event){raw[i].events, raw[i].data.u64};
    return n;
}

int clinux_clock_is_synchronised(void) {
    struct timex state = {0};
    int answer = adjtimex(&state);
    return answer < 0 ? -1 : answer != TIME_ERROR;
}

int clinux_clock_timer(void) { return timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

int clinux_set_clock_timer(int timer, int64_t seconds) {
    struct itimerspec setting = {.it_value.tv_sec = seconds};
    return timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, NULL);
}

int clinux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

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

void clinux_give_back_memory(void) { malloc_trim(0); }

/* The linker defines both: the begin of the program's file in memory, and the end of its text. Relocated data follows. */
extern const char __executable_start[], etext[];

void clinux_give_back_text(void) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)__executable_start & -page, end = (uintptr_t)etext & -page;
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}

int clinux_sync_file_system(int fd) { return syncfs(fd); }
int clinux_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }
int clinux_open(const char *path, int flags, unsigned mode) { return open(path, flags, (mode_t)mode); }
int clinux_set_nonblocking(int fd) { return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
int clinux_set_cloexec(int fd) { return fcntl(fd, F_SETFD, FD_CLOEXEC); }
int clinux_no_core_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

/* System calls, because libcap would be one more library. */
static const struct __user_cap_header_struct own_thread = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};

int clinux_has_capability(unsigned capability) {
    struct __user_cap_data_struct sets[2] = {0};
    struct __user_cap_header_struct header = own_thread;
    if (capability > 63 || syscall(SYS_capget, &header, sets) != 0) return 0;
    return (int)(sets[capability / 32].effective >> capability % 32 & 1);
}

int clinux_drop_capability(unsigned capability) {
    struct __user_cap_data_struct sets[2] = {0};
    struct __user_cap_header_struct header = own_thread;
    if (capability > 63 || syscall(SYS_capget, &header, sets) != 0) return -1;
    uint32_t others = ~(1u << capability % 32);
    sets[capability / 32].effective &= others;
    sets[capability / 32].permitted &= others;
    sets[capability / 32].inheritable &= others;
    return (int)syscall(SYS_capset, &header, sets);
}

/* Landlock has no functions in the C library. */
int clinux_landlock_version(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

int clinux_landlock_create(void) {
    /* The rights of version 1 are 13 bits; version 2 added REFER, version 3 TRUNCATE. */
    int version = clinux_landlock_version(), bits = version >= 3 ? 15 : version == 2 ? 14 : 13;
    struct landlock_ruleset_attr attributes = {.handled_access_fs = (1ull << bits) - 1};
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
}

int clinux_landlock_allow(int ruleset, const char *path, enum clinux_file_right right) {
    struct stat status;
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | (right != CLINUX_MAY_READ ? LANDLOCK_ACCESS_FS_WRITE_FILE : 0),
        .parent_fd = open(path, O_PATH | O_CLOEXEC),
    };
    if (rule.parent_fd < 0) return -1;
    int is_folder = fstat(rule.parent_fd, &status) == 0 && S_ISDIR(status.st_mode);
    if (is_folder) rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    if (right == CLINUX_MAY_CREATE) {
        rule.allowed_access |= LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE;
        /* LANDLOCK_ACCESS_FS_TRUNCATE, which the headers may not have. */
        if (clinux_landlock_version() >= 3) rule.allowed_access |= 1ull << 14;
    }
    long result = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int error = errno;
    close(rule.parent_fd);
    errno = error;
    return (int)result;
}

int clinux_landlock_restrict(int ruleset) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

int clinux_open_child(int pid) {
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) return -1;
    /* Where SIGCHLD is ignored, the child may have ended, and another process may have its id by now. */
    siginfo_t info;
    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0) return pidfd;
    close(pidfd);
    return -1;
}

int clinux_kill_process(int pidfd) { return pidfd_send_signal(pidfd, SIGKILL, NULL, 0); }

int clinux_wait_for_child(int pidfd) {
    int result;
    do {
        siginfo_t info;
        result = waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED);
    } while (result < 0 && errno == EINTR);
    return result;
}

int clinux_spawn_close_from(void *actions, int lowest) {
    return posix_spawn_file_actions_addclosefrom_np(actions, lowest);
}

int clinux_tcp_peer(int fd, uint8_t address[16], uint16_t *port) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } peer;
    socklen_t size = sizeof peer;
    if (getpeername(fd, &peer.any, &size) != 0) return -1;
    if (peer.any.sa_family == AF_INET) {
        memcpy(address, &peer.v4.sin_addr, 4);
        *port = ntohs(peer.v4.sin_port);
        return 4;
    }
    if (peer.any.sa_family != AF_INET6) return -1;
    memcpy(address, &peer.v6.sin6_addr, 16);
    *port = ntohs(peer.v6.sin6_port);
    return 16;
}

int clinux_pass_descriptor(int socket, int fd, const uint8_t *note, int note_count) {
    return clinux_pass_descriptor_to(socket, fd, note, note_count, NULL, 0);
}

int clinux_pass_descriptor_to(int socket, int fd, const uint8_t *note, int note_count, const struct sockaddr *address,
                              unsigned size) {
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {(void *)(uintptr_t)note, (size_t)note_count};
    struct msghdr message = {
        .msg_name = (void *)(uintptr_t)address,
        .msg_namelen = size,
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control,
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == note_count ? 0 : -1;
}

int clinux_take_descriptor(int socket, uint8_t note[64], int *note_count) {
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {note, 64};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    message.msg_control = control, message.msg_controllen = sizeof control;
    ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0) return errno == EAGAIN || errno == EINTR ? -1 : -2;
    *note_count = (int)count;
    /* The alignment of CMSG_SPACE leaves room for a second descriptor. The kernel closes those that do not fit. */
    int taken = -1, is_wrong = count == 0 || message.msg_flags & MSG_CTRUNC;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
            if (taken < 0) {
                taken = fd;
            } else {
                close(fd);
                is_wrong = 1;
            }
        }
    }
    if (taken < 0) return is_wrong ? -2 : -3;
    if (!is_wrong) return taken;
    close(taken);
    return -2;
}

int clinux_tcp_quickack(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

int clinux_tcp_nodelay(int fd) {
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* The toolchain does not install Concurrency.h of the runtime, so its declarations are repeated here. They are weak for
 * programs without the Swift runtime. */
typedef __attribute__((swiftcall)) void enqueue_global(void *job);
typedef __attribute__((swiftcall)) void enqueue_global_hook(void *job, enqueue_global *original);
extern enqueue_global_hook *swift_task_enqueueGlobal_hook __attribute__((weak));
/* The executor is two words; two zeros mean the generic executor. */
extern __attribute__((swiftcall, weak)) void swift_job_run(void *job, uintptr_t identity, uintptr_t implementation);

static void (*global_job_sink)(void *job);
static atomic_bool has_taken_global_job;

static __attribute__((swiftcall)) void take_global_job(void *job, enqueue_global *original) {
    (void)original;
    has_taken_global_job = true;
    global_job_sink(job);
}

void clinux_take_global_jobs(void (*sink)(void *job)) {
    if (!&swift_task_enqueueGlobal_hook || !swift_job_run) return;
    global_job_sink = sink;
    swift_task_enqueueGlobal_hook = take_global_job;
}

bool clinux_has_taken_global_job(void) { return has_taken_global_job; }

void clinux_run_global_job(void *job) { swift_job_run(job, 0, 0); }

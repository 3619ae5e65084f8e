/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CTestSupport.h"

#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

void ctestsupport_link(void) {}

int ctestsupport_close_from(posix_spawn_file_actions_t *actions, int lowest) {
    return posix_spawn_file_actions_addclosefrom_np(actions, lowest);
}

void ctestsupport_wait_for_end(int process) {
    int descriptor = (int)syscall(SYS_pidfd_open, process, 0);
    if (descriptor < 0) return;
    struct pollfd end = {.fd = descriptor, .events = POLLIN};
    poll(&end, 1, -1);
    close(descriptor);
}

static cpu_set_t all_processors;

int ctestsupport_keep_to_one_processor(void) {
    if (sched_getaffinity(0, sizeof all_processors, &all_processors) != 0) return -1;
    int lowest = 0;
    while (lowest < CPU_SETSIZE - 1 && !CPU_ISSET(lowest, &all_processors)) lowest++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(lowest, &one);
    return sched_setaffinity(0, sizeof one, &one);
}

void ctestsupport_use_all_processors(void) { sched_setaffinity(0, sizeof all_processors, &all_processors); }

struct group_task { int *pair; int count; int result; };

/* setgroups(2) without glibc changes this thread only. The kernel stores the credentials of the thread that makes a pair. */
static void *make_pair(void *argument) {
    struct group_task *task = argument;
    gid_t *groups = calloc((size_t)task->count, sizeof *groups);
    if (!groups) return NULL;
    for (int i = 0; i < task->count; i++) groups[i] = 100000 + (gid_t)i;
    if (syscall(SYS_setgroups, (size_t)task->count, groups) == 0)
        task->result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, task->pair);
    free(groups);
    return NULL;
}

int ctestsupport_pair_in_groups(int pair[2], int count) {
    struct group_task task = {pair, count, -1};
    pthread_t thread;
    if (pthread_create(&thread, NULL, make_pair, &task) != 0) return -1;
    pthread_join(thread, NULL);
    return task.result;
}

size_t ctestsupport_heap_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

int ctestsupport_pass_twice(int socket, int fd) {
    int both[2] = {fd, fd};
    char byte = 0, control[CMSG_SPACE(sizeof both)] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof both);
    memcpy(CMSG_DATA(header), both, sizeof both);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int ctestsupport_contains(const void *bytes, size_t count, const void *wanted, size_t wanted_count) {
    return memmem(bytes, count, wanted, wanted_count) != NULL;
}

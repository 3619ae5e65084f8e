/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CTestSupport.h"

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((constructor)) static void ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

void ctestsupport_link(void) {}

int ctestsupport_close_from(posix_spawn_file_actions_t *actions, int lowest) {
    return posix_spawn_file_actions_addclosefrom_np(actions, lowest);
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

/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_open_diagnosis(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof kernel) == 0) return fd;
    close(fd);
    return -1;
}

/* The kernel answers before send returns, so the socket never waits. */
static ssize_t ask(int fd, const void *question, size_t count, void *answer, size_t capacity) {
    ssize_t got = send(fd, question, count, 0);
    return got < 0 ? got : recv(fd, answer, capacity, 0);
}

int clinux_tcp_owner(int diagnosis, int is_ipv6, const uint8_t *own, uint16_t own_port, const uint8_t *other,
                     uint16_t other_port, uint32_t *uid) {
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {
            .sdiag_family = is_ipv6 ? AF_INET6 : AF_INET,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = ~0u,
            .id = {
                .idiag_sport = htons(own_port),
                .idiag_dport = htons(other_port),
                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE},
            },
        },
    };
    size_t size = is_ipv6 ? 16 : 4;
    memcpy(question.request.id.idiag_src, own, size);
    memcpy(question.request.id.idiag_dst, other, size);
    union {
        struct nlmsghdr header;
        uint8_t bytes[4096];
    } answer;
    ssize_t count = ask(diagnosis, &question, sizeof question, &answer, sizeof answer);
    if (count < 0) return -1;
    struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
    if (!NLMSG_OK(&answer.header, (size_t)count) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.header.nlmsg_len < NLMSG_LENGTH(sizeof *found) || found->id.idiag_sport != htons(own_port) ||
        found->id.idiag_dport != htons(other_port) || found->idiag_inode == 0) {
        errno = ENOENT;
        return -1;
    }
    *uid = found->idiag_uid;
    return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later
 * badged-floor SOCKET SIZE: answers each line with a line of SIZE bytes, by epoll(7). A server cannot do less, so its times
 * are the floor to which `make bench` compares the times of badged. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static char question[4096], answer[65536];
    size_t size = count == 3 ? strtoul(arguments[2], NULL, 10) : 0;
    if (size == 0 || size > sizeof answer || strlen(arguments[1]) >= sizeof address.sun_path) {
        fputs("usage: badged-floor SOCKET SIZE\n", stderr);
        return 2;
    }
    strcpy(address.sun_path, arguments[1]);
    memset(answer, ' ', size);
    answer[size - 1] = '\n';

    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 16) != 0
        || epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("badged-floor");
        return 1;
    }
    for (;;) {
        if (epoll_wait(loop, &event, 1, -1) != 1) continue;
        if (event.data.fd == listener) {
            int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            event = (struct epoll_event){.events = EPOLLIN, .data.fd = client};
            if (client < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, client, &event) != 0) return 1;
            continue;
        }
        ssize_t length = read(event.data.fd, question, sizeof question);
        if (length <= 0) {
            close(event.data.fd);
            continue;
        }
        for (ssize_t i = 0; i < length; i++)
            if (question[i] == '\n' && write(event.data.fd, answer, size) < 0) return 1;
    }
}

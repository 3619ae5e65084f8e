/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CBluetooth.h"

#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

int cbluetooth_open_control(void) {
    int fd = socket(AF_BLUETOOTH, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, BTPROTO_HCI);
    if (fd < 0) return -1;
    struct sockaddr_hci address = {
        .hci_family = AF_BLUETOOTH,
        .hci_dev = HCI_DEV_NONE,
        .hci_channel = HCI_CHANNEL_CONTROL,
    };
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        /* A burst of advertisements must find room while the loop does something else. */
        int size = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int cbluetooth_receive(int fd, void *buffer, size_t stride, uint32_t lengths[CBLUETOOTH_MOST]) {
    struct iovec parts[CBLUETOOTH_MOST];
    struct mmsghdr packets[CBLUETOOTH_MOST] = {0};
    for (int i = 0; i < CBLUETOOTH_MOST; i++) {
        parts[i] = (struct iovec){.iov_base = (char *)buffer + (size_t)i * stride, .iov_len = stride};
        packets[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int count;
    do count = recvmmsg(fd, packets, CBLUETOOTH_MOST, MSG_DONTWAIT, NULL);
    while (count < 0 && errno == EINTR);
    for (int i = 0; i < count; i++) lengths[i] = packets[i].msg_len;
    return count < 0 ? 0 : count;
}

/* SPDX-License-Identifier: GPL-3.0-or-later
 * The management socket of the kernel's Bluetooth, with the definitions of libbluetooth's headers; nothing of the library
 * itself is linked. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* A socket on HCI_CHANNEL_CONTROL, non-blocking; -1 and errno when the kernel refuses. What it may do is decided now: all,
   with CAP_NET_ADMIN, whatever becomes of that later. */
int cbluetooth_open_control(void);

/* At most so many packets are fetched at once. */
enum { CBLUETOOTH_MOST = 32 };
/* Fetches the packets that are there: their number, 0 when there is none. Each begins `stride` bytes after the one before and
   has at most as many; `lengths` are theirs. recvmmsg(2). */
int cbluetooth_receive(int fd, void *buffer, size_t stride, uint32_t lengths[CBLUETOOTH_MOST]);

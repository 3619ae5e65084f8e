/* SPDX-License-Identifier: GPL-3.0-or-later
 * Opens the management socket of the kernel's Bluetooth, with the definitions of the headers of libbluetooth. The library
 * itself is not linked. */
#pragma once

/* Opens a non-blocking socket on HCI_CHANNEL_CONTROL. Returns -1 and sets errno if the kernel refuses. The kernel
   checks CAP_NET_ADMIN here; the socket keeps the right after the process drops the capability. */
int cbluetooth_open_control(void);
/* Returns whether a descriptor is a Bluetooth socket. */
int cbluetooth_is_socket(int fd);

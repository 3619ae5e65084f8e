/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int clinux_open_gpio(const char *chip, unsigned line) {
    struct gpio_v2_line_request request = {.num_lines = 1, .offsets = {line}};
    request.config.flags = GPIO_V2_LINE_FLAG_OUTPUT;
    strcpy(request.consumer, "badged-osdp");
    int device = open(chip, O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    int result = ioctl(device, GPIO_V2_GET_LINE_IOCTL, &request);
    int error = errno;
    close(device);
    errno = error;
    return result < 0 ? -1 : request.fd;
}

int clinux_set_gpio(int line, int is_on) {
    struct gpio_v2_line_values values = {.bits = is_on ? 1 : 0, .mask = 1};
    return ioctl(line, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
}

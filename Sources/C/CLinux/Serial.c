/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/serial.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static speed_t speed_of(unsigned baud) {
    switch (baud) {
    case 9600: return B9600;
    case 19200: return B19200;
    case 38400: return B38400;
    case 57600: return B57600;
    case 115200: return B115200;
    case 230400: return B230400;
    default: return B0;
    }
}

int clinux_set_baud(int fd, unsigned baud) {
    struct termios settings;
    speed_t speed = speed_of(baud);
    if (speed == B0) {
        errno = EINVAL;
        return -1;
    }
    if (tcgetattr(fd, &settings) != 0) return -1;
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL | CREAD;
    settings.c_cflag &= ~(tcflag_t)(CRTSCTS | CSTOPB | PARENB);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    if (cfsetspeed(&settings, speed) != 0) return -1;
    return tcsetattr(fd, TCSANOW, &settings);
}

int clinux_open_serial(const char *path, unsigned baud, int rs485) {
    int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return -1;
    struct serial_rs485 direction = {.flags = SER_RS485_ENABLED | SER_RS485_RTS_ON_SEND};
    if (clinux_set_baud(fd, baud) != 0 || ioctl(fd, TIOCEXCL) != 0 || (rs485 && ioctl(fd, TIOCSRS485, &direction) != 0)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    tcflush(fd, TCIOFLUSH);
    return fd;
}

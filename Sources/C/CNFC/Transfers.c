/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CNFC.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/usbdevice_fs.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

int usb_bulk_read(void *device, int endpoint, char *bytes, int size, int timeout);
int usb_bulk_write(void *device, int endpoint, const char *bytes, int size, int timeout);

int cnfc_is_in_force(void) {
    int (*found_read)(void *, int, char *, int, int) = dlsym(RTLD_DEFAULT, "usb_bulk_read");
    int (*found_write)(void *, int, const char *, int, int) = dlsym(RTLD_DEFAULT, "usb_bulk_write");
    return found_read == usb_bulk_read && found_write == usb_bulk_write;
}

static _Thread_local const struct cnfc_wait *waiting;
static _Thread_local int64_t waiting_until;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void cnfc_wait(const struct cnfc_wait *wait) {
    waiting = wait;
    if (wait != NULL) waiting_until = wait->milliseconds < 0 ? INT64_MAX : now() + wait->milliseconds;
}

/* Returns the descriptor of a libusb 0.1 handle, which is its first member. Returns -1 for a handle of libusb-compat,
 * which begins with a pointer. */
static int descriptor_of(const void *device) {
    int descriptor;
    struct stat status;
    memcpy(&descriptor, device, sizeof descriptor);
    if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode)) return -1;
    return major(status.st_rdev) == 189 ? descriptor : -1; /* USB_DEVICE_MAJOR */
}

/* Returns whether the descriptor of `wait` is readable, which ends the wait. */
static int is_ended(const struct cnfc_wait *wait) {
    struct pollfd other = {.fd = wait->descriptor, .events = POLLIN};
    return wait->descriptor >= 0 && poll(&other, 1, 0) > 0;
}

/* Transfers at most `size` bytes, until the time `end` or until `other` is readable. Returns the number of bytes,
 * -ETIMEDOUT, or -ENODEV for every other error: libnfc interprets other error numbers differently. */
static int transfer(int device, int endpoint, void *bytes, int size, int64_t end, int other) {
    struct usbdevfs_urb request = {
        .type = USBDEVFS_URB_TYPE_BULK, .endpoint = (unsigned char)endpoint, .buffer = bytes, .buffer_length = size};
    struct usbdevfs_urb *done = NULL;
    if (ioctl(device, USBDEVFS_SUBMITURB, &request) != 0) return -ENODEV;
    for (;;) {
        int64_t left = end == INT64_MAX ? -1 : end - now();
        if (end != INT64_MAX && left < 0) left = 0;
        struct pollfd events[2] = {{.fd = device, .events = POLLOUT}, {.fd = other, .events = POLLIN}};
        int count = poll(events, 2, left > INT32_MAX ? INT32_MAX : (int)left);
        if (count < 0 && errno == EINTR) continue;
        if (events[0].revents == 0 || count < 0) break;
        if (ioctl(device, USBDEVFS_REAPURBNDELAY, &done) == 0) {
            if (done == &request) return request.status == 0 ? request.actual_length : -ENODEV;
        } else if (errno != EAGAIN) {
            return -ENODEV;
        }
    }
    /* The kernel may write to `bytes` until the transfer is reaped. */
    ioctl(device, USBDEVFS_DISCARDURB, &request);
    while (done != &request) {
        if (ioctl(device, USBDEVFS_REAPURB, &done) != 0 && errno != EINTR) return -ENODEV;
    }
    if (request.status == 0 || request.actual_length > 0) return request.actual_length;
    return request.status == -ENOENT || request.status == -ECONNRESET ? -ETIMEDOUT : -ENODEV;
}

int usb_bulk_write(void *device, int endpoint, const char *bytes, int size, int timeout) {
    int descriptor = descriptor_of(device);
    if (descriptor < 0) {
        int (*next)(void *, int, const char *, int, int) = dlsym(RTLD_NEXT, "usb_bulk_write");
        return next == NULL ? -ENODEV : next(device, endpoint, bytes, size, timeout);
    }
    int64_t deadline = timeout > 0 ? now() + timeout : INT64_MAX;
    return transfer(descriptor, endpoint, (void *)(uintptr_t)bytes, size, deadline, -1);
}

int usb_bulk_read(void *device, int endpoint, char *bytes, int size, int timeout) {
    const struct cnfc_wait *wait = waiting;
    int descriptor = descriptor_of(device), count;
    if (descriptor < 0) {
        int (*next)(void *, int, char *, int, int) = dlsym(RTLD_NEXT, "usb_bulk_read");
        if (next == NULL) return -ENODEV;
        count = next(device, endpoint, bytes, size, timeout);
        if (wait == NULL || count != -ETIMEDOUT || (now() < waiting_until && !is_ended(wait))) return count;
    } else {
        int64_t end = timeout > 0 ? now() + timeout : INT64_MAX;
        count = wait == NULL ? transfer(descriptor, endpoint, bytes, size, end, -1)
                             : transfer(descriptor, endpoint, bytes, size, waiting_until, wait->descriptor);
    }
    if (wait != NULL && count == -ETIMEDOUT) wait->ended(wait->context);
    return count;
}

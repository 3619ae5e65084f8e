/* SPDX-License-Identifier: GPL-3.0-or-later
 * What a program that is linked with this gives libnfc in place of other libraries' functions: the dynamic linker binds
 * libnfc's calls to those of the program first.
 *
 * usb_bulk_read, usb_bulk_write: libnfc drives USB devices through libusb 0.1, which waits for a transfer by asking the
 * kernel a thousand times a second, and cannot wait for a card without end. These sleep in poll(2). Where libnfc stands on
 * another libusb, which they see by its handles, they hand every call on.
 *
 * open, open64, pipe: libnfc waits for serial lines in select(2), which does not know descriptors from 1024 on, and a
 * program that tries is ended by the C library. These are the C library's, but for a thread that has been lent places
 * below. */
#pragma once

/* What ends a wait for a card: */
struct cnfc_wait {
    int milliseconds;          /* so much time, or -1; */
    int descriptor;            /* something to read there, or -1. */
    void (*ended)(void *);     /* Is called then, before libnfc hears of it as a time-out; */
    void *context;             /* with this. */
};

/* The reads of USB devices by the calling thread go by `wait` instead of the time that libnfc gives them, until NULL is
 * said. */
void cnfc_wait(const struct cnfc_wait *wait);

/* What the calling thread opens takes the place of these descriptors, one after the other, as long as there are some, until
 * cnfc_end_loan, which gives the number of those that were taken. */
void cnfc_lend(const int *places, int count);
int cnfc_end_loan(void);

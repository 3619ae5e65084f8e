/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once
#include <nfc/nfc.h>
#include <string.h>

/* Swift cannot read nfc_target safely, because it is packed and contains a union. These functions copy whole fields and
 * never use the length fields next to them. */
static inline int cnfc_is_type_b(const nfc_target *target) { return target->nm.nmt == NMT_ISO14443B; }
static inline uint8_t cnfc_select_answer(const nfc_target *target) { return target->nti.nai.btSak; }
/* Copies 10 bytes. Returns the length that the chip states. */
static inline size_t cnfc_identifier(const nfc_target *target, uint8_t *identifier) {
    memcpy(identifier, target->nti.nai.abtUid, sizeof target->nti.nai.abtUid);
    return target->nti.nai.szUidLen;
}
/* Copies 11 bytes: PUPI, application data, protocol info. */
static inline void cnfc_type_b(const nfc_target *target, uint8_t *fields) {
    memcpy(fields, target->nti.nbi.abtPupi, 4);
    memcpy(fields + 4, target->nti.nbi.abtApplicationData, 4);
    memcpy(fields + 8, target->nti.nbi.abtProtocolInfo, 3);
}

/* Transfers.c replaces libusb 0.1's usb_bulk_read and usb_bulk_write: the dynamic linker prefers functions of the
 * program. The functions of libusb 0.1 poll the kernel a thousand times a second during each transfer, and cannot wait
 * for a card without a timeout. The replacements sleep in poll(2). They recognise the handles of libusb-compat and then
 * call libusb. */

/* Whether libnfc gets the replacements. Without them `cnfc_wait` has no effect, and no search can be ended. */
int cnfc_is_in_force(void);

/* The end of a wait for a card. */
struct cnfc_wait {
    int milliseconds;      /* The time limit, or -1. */
    int descriptor;        /* The wait ends when this is readable; or -1. */
    void (*ended)(void *); /* Called at the end of the wait, before libnfc gets a timeout. */
    void *context;         /* The argument of `ended`. */
};

/* Reads from USB devices by the calling thread use `wait` instead of libnfc's time limit, until a call with NULL. */
void cnfc_wait(const struct cnfc_wait *wait);

/* libnfc logs the frames between it and a board, and only to the standard error of C, at level 3, which it looks up for
 * each line. Log.c puts a stream of its own there for a while. */
struct cnfc_log {
    char *text;
    size_t size;
    size_t count; /* How much of `text` is filled. */
};

/* Collects what libnfc logs in the calling thread, until a call with NULL. For one thread of the process. Returns -1 if
 * there is no memory. */
int cnfc_log(struct cnfc_log *log);

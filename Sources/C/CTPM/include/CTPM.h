/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys in a TPM 2.0, with libtss2-esys. The library is loaded with dlopen at the first use, because most computers run
   badged without a TPM. The functions of this file take one command after the other to the TPM; each leaves nothing
   loaded in it. */
#ifndef CTPM_H
#define CTPM_H

#include <stddef.h>
#include <stdint.h>

/* Loads the library. Returns NULL, or why it cannot be used. */
const char *ctpm_load(void);

/* A connection with a TPM, and its storage key, which is the parent of all keys. */
typedef struct ctpm ctpm;

/* How a call ends: a code of the TPM or of libtss2 (TSS2_RC), or one of these. */
enum ctpm_end {
    CTPM_OK = 0,
    /* The device or the socket cannot be opened, or has closed. errno has the reason if it cannot be opened. */
    CTPM_GONE = 0xFFFF0001,
    /* The TPM has not answered in time. */
    CTPM_LATE = 0xFFFF0002,
    /* The answer is not one of a TPM. */
    CTPM_MALFORMED = 0xFFFF0003,
};

/* The most bytes of the private part of a key, as the TPM has encrypted it. */
enum { CTPM_BLOB = 512 };

typedef struct {
    uint8_t bytes[CTPM_BLOB];
    size_t count;
} ctpm_blob;

/* Whether the device or the socket can be opened; no command is sent. errno has the reason of CTPM_GONE. */
uint32_t ctpm_probe(const char *path);

/* Connects with a device (/dev/tpmrm0) or a Unix socket. All commands together last the given time at most. On success
   ctpm_close must follow. */
uint32_t ctpm_open(const char *path, int64_t milliseconds, ctpm **tpm);
void ctpm_close(ctpm *tpm);

/* Makes a key for ECDSA with P-256 and SHA-256. point: x and y. */
uint32_t ctpm_make_key(ctpm *tpm, uint8_t point[64], ctpm_blob *blob);

/* Signs a SHA-256 digest. signature: r and s. */
uint32_t ctpm_sign(ctpm *tpm, const uint8_t point[64], const ctpm_blob *blob, const uint8_t digest[32],
                   uint8_t signature[64]);

/* Encrypts 32 bytes so that only this TPM decrypts them. name: the part of the result that the TPM needs beside blob. */
uint32_t ctpm_seal(ctpm *tpm, const uint8_t secret[32], uint8_t name[32], ctpm_blob *blob);
uint32_t ctpm_unseal(ctpm *tpm, const uint8_t name[32], const ctpm_blob *blob, uint8_t secret[32]);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys in a TPM 2.0, with libtss2-esys. The library is loaded with dlopen at the first use, because most computers run
   badged without a TPM. The functions of this file send one command after the other to the TPM, and leave nothing
   loaded in it. */
#ifndef CTPM_H
#define CTPM_H

#include <stddef.h>
#include <stdint.h>

/* Loads the library. Returns NULL, or why it cannot be used. */
const char *ctpm_load(void);

/* A connection to a TPM, with the storage key of the TPM, which is the parent of all keys. */
typedef struct ctpm ctpm;

/* How a call ends: a code of the TPM or of libtss2 (TSS2_RC), or one of these. */
enum ctpm_end {
    CTPM_OK = 0,
    /* The device or the socket cannot be opened, or has closed. errno has the reason if opening fails. */
    CTPM_GONE = 0xFFFF0001,
    /* The TPM has not answered in time. */
    CTPM_LATE = 0xFFFF0002,
    /* The answer does not have the form of a TPM answer. */
    CTPM_MALFORMED = 0xFFFF0003,
};

/* The maximum number of bytes of the private part of a key, as the TPM has encrypted it. */
enum { CTPM_BLOB = 512 };

typedef struct {
    uint8_t bytes[CTPM_BLOB];
    size_t count;
} ctpm_blob;

/* Returns CTPM_OK if the device or the socket can be opened; sends no command. For CTPM_GONE errno has the reason. */
uint32_t ctpm_probe(const char *path);

/* Connects to a device (/dev/tpmrm0) or a Unix socket. The given time limits all commands together. On success
   ctpm_close must follow. */
uint32_t ctpm_open(const char *path, int64_t milliseconds, ctpm **tpm);
void ctpm_close(ctpm *tpm);

/* Makes a key for ECDSA with P-256 and SHA-256. point: x and y. */
uint32_t ctpm_make_key(ctpm *tpm, uint8_t point[64], ctpm_blob *blob);

/* Signs a SHA-256 digest. signature: r and s. */
uint32_t ctpm_sign(ctpm *tpm, const uint8_t point[64], const ctpm_blob *blob, const uint8_t digest[32],
                   uint8_t signature[64]);

/* Encrypts 32 bytes so that only this TPM can decrypt them. The TPM needs name, a part of the result, with blob. */
uint32_t ctpm_seal(ctpm *tpm, const uint8_t secret[32], uint8_t name[32], ctpm_blob *blob);
uint32_t ctpm_unseal(ctpm *tpm, const uint8_t name[32], const ctpm_blob *blob, uint8_t secret[32]);

#endif

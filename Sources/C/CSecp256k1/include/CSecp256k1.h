/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libsecp256k1 with ECDSA, recovery and ECDH. */
#ifndef CSECP256K1_H
#define CSECP256K1_H

#include <secp256k1.h>
#include <secp256k1_ecdh.h>
#include <secp256k1_recovery.h>

/* Computes the x coordinate of the shared point. The default of the library hashes the point. */
int secp256k1_ecdh_x(
    const secp256k1_context *context, unsigned char *output, const secp256k1_pubkey *key, const unsigned char *scalar);

/* Swift does not see the flags of the library, which are macros with casts. */
secp256k1_context *secp256k1_new_context(void);
int secp256k1_write_uncompressed(
    const secp256k1_context *context, unsigned char *output, size_t *count, const secp256k1_pubkey *key);

#endif

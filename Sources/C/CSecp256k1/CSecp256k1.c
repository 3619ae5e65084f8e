/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "CSecp256k1.h"

#include <string.h>

static int copy_x(unsigned char *output, const unsigned char *x, const unsigned char *y, void *data) {
    (void)y;
    (void)data;
    memcpy(output, x, 32);
    return 1;
}

int secp256k1_ecdh_x(
    const secp256k1_context *context, unsigned char *output, const secp256k1_pubkey *key, const unsigned char *scalar) {
    return secp256k1_ecdh(context, output, key, scalar, copy_x, NULL);
}

secp256k1_context *secp256k1_new_context(void) { return secp256k1_context_create(SECP256K1_CONTEXT_NONE); }

int secp256k1_write_uncompressed(
    const secp256k1_context *context, unsigned char *output, size_t *count, const secp256k1_pubkey *key) {
    return secp256k1_ec_pubkey_serialize(context, output, count, key, SECP256K1_EC_UNCOMPRESSED);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libcrypto, with functions for macros that Swift cannot import. */
#pragma once
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ocsp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* The certificates that the other side has sent, the leaf first. */
static inline int tls_chain_count(X509_STORE_CTX *context) {
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(context);
    return chain ? sk_X509_num(chain) : 0;
}
static inline X509 *tls_chain_certificate(X509_STORE_CTX *context, int index) {
    return sk_X509_value(X509_STORE_CTX_get0_untrusted(context), index);
}

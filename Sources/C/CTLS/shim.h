/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libssl, with functions for macros that Swift cannot import. badged does not link it. */
#pragma once
#include <openssl/ssl.h>
#include <stdint.h>

static inline int tls_set_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version) && SSL_CTX_set_max_proto_version(context, version);
}
static inline int tls_set_minimum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int tls_set_groups(SSL_CTX *context, const char *list) { return (int)SSL_CTX_set1_groups_list(context, list); }
static inline int tls_set_signatures(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_sigalgs_list(context, list);
}
static inline int tls_ask_for_status(SSL_CTX *context) {
    return (int)SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
}
/* The name for SNI. The check of the certificate is another call. */
static inline int tls_set_server_name(SSL *connection, const char *name) {
    return (int)SSL_set_tlsext_host_name(connection, name);
}
static inline void tls_set_owner(SSL_CTX *context, void *owner) { SSL_CTX_set_app_data(context, owner); }
static inline void *tls_owner(const SSL *connection) { return SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)); }
/* Returns the ephemeral key of the server, which the caller frees; NULL if there is none. */
static inline EVP_PKEY *tls_ephemeral_key(SSL *connection) {
    EVP_PKEY *key = NULL;
    return SSL_get_peer_tmp_key(connection, &key) ? key : NULL;
}
static inline long tls_status_response(SSL *connection, const unsigned char **bytes) {
    return SSL_get_tlsext_status_ocsp_resp(connection, bytes);
}
static inline void tls_refuse_renegotiation(SSL_CTX *context) { SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION); }
/* No renegotiation, no sessions, no tickets; a write may be repeated from another buffer. */
static inline void tls_keep_simple(SSL_CTX *context) {
    tls_refuse_renegotiation(context);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

/* A BIO callback that lets one call of libssl read as often as its argument says. */
static long tls_count_reads(BIO *bio, int operation, const char *data, size_t count, int number, long argument,
                            int result, size_t *processed) {
    (void)data, (void)count, (void)number, (void)argument, (void)processed;
    if (operation != BIO_CB_READ) return operation & BIO_CB_RETURN ? result : 1;
    intptr_t left = (intptr_t)BIO_get_callback_arg(bio);
    if (left == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    BIO_set_callback_arg(bio, (char *)(left - 1));
    return 1;
}
/* Before a call that reads: it returns with SSL_ERROR_WANT_READ after 64 reads, which are 32 records. Without it, a peer
   that sends messages without content and without end (RFC 5246, 7.4.1.1) holds the caller for ever. */
static inline void tls_limit_reads(SSL *connection) {
    BIO *bio = SSL_get_rbio(connection);
    /* Without memory for it; the call itself fails then. */
    if (!bio) return;
    BIO_set_callback_ex(bio, tls_count_reads);
    BIO_set_callback_arg(bio, (char *)64);
}

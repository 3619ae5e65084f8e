/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs HTTP transfers with libcurl. The library is loaded with dlopen at the first use. A linked libcurl and its
 * dependencies would double the memory and the start time of an idle daemon. */
#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

/* Loads libcurl.so.4 once for the process. Returns NULL, or the reason why the library cannot be used. */
const char *_Nullable ccurl_load(void);
/* Whether the library lies in a folder where the dynamic linker looks first. It is not loaded. */
bool ccurl_is_in_library_folders(void);

/* Connections and TLS sessions that several transfers use. All calls come from one thread, except ccurl_wake. */
typedef struct ccurl_session ccurl_session;
ccurl_session *_Nullable ccurl_session_new(void);
void ccurl_session_free(ccurl_session *_Nonnull session);
/* Makes a waiting transfer call `cancelled`. May be called from any thread. */
void ccurl_wake(ccurl_session *_Nonnull session);

typedef enum {
    CCURL_GET,
    CCURL_POST,
    CCURL_PUT,
    /* Connects and sends nothing: `connected` must stop the transfer. */
    CCURL_CONNECT,
    /* GET as a browser does it: redirects are followed with cookies, and the proxies of the environment are used. */
    CCURL_PAGE,
} ccurl_method;

typedef struct {
    ccurl_method method;
    const char *_Nonnull url;
    /* The addresses of the host, `HOST:PORT:ADDRESS,ADDRESS`; empty when the host is an address. */
    const char *_Nonnull resolve;
    /* Whether the scheme of `url` is https; other schemes than this one are refused. */
    bool is_secure;
    /* Header lines with "\n" between them. */
    const char *_Nonnull headers;
    const void *_Nullable body;
    size_t body_count;
    /* Whether libcurl verifies the certificates by the authorities of the system, or by those that the variable
     * SSL_CERT_FILE names. Otherwise `prepare_tls` installs the verification. */
    bool trusts_system;
    /* The address of an HTTP proxy, from which CONNECT opens a tunnel to the server; empty without a proxy. */
    const char *_Nonnull proxy;
    /* Name and password for the proxy; NULL without them. */
    const char *_Nullable proxy_name;
    const char *_Nullable proxy_password;
    long connect_milliseconds;
    long total_milliseconds;

    /* The first argument of every callback. */
    void *_Nonnull owner;
    /* Prepares an SSL_CTX for a new connection; false when it cannot be prepared. */
    bool (*_Nonnull prepare_tls)(void *_Nonnull owner, void *_Nonnull context);
    /* Called when a connection is ready and nothing has been sent; false stops the transfer. */
    bool (*_Nonnull connected)(void *_Nonnull owner);
    /* Called for each header line and the status line; false stops the transfer. */
    bool (*_Nonnull header)(void *_Nonnull owner, const char *_Nonnull bytes, size_t count);
    /* Called for each part of the body; false stops the transfer. */
    bool (*_Nonnull received)(void *_Nonnull owner, const void *_Nonnull bytes, size_t count);
    bool (*_Nonnull cancelled)(void *_Nonnull owner);
} ccurl_request;

typedef enum {
    CCURL_DONE,
    CCURL_CANCELLED,
    CCURL_TIMEOUT,
    /* The name is unknown, or nothing listens at the address. */
    CCURL_UNREACHABLE,
    CCURL_TLS,
    /* A callback returned false. */
    CCURL_REFUSED,
    /* There is no tunnel through the proxy. */
    CCURL_PROXY,
    /* The connection was lost, or the answer is not HTTP. */
    CCURL_BROKEN,
} ccurl_end;

typedef struct {
    ccurl_end end;
    /* The HTTP status; 0 without one. */
    long status;
    /* The HTTP status of the proxy's answer to CONNECT; 0 without one. */
    long proxy_status;
    /* Text for the log; may be empty. */
    char words[256];
} ccurl_outcome;

/* Runs one transfer to its end. Only CCURL_PAGE follows redirects and uses cookies and the proxies of the
 * environment. */
ccurl_outcome ccurl_run(ccurl_session *_Nonnull session, const ccurl_request *_Nonnull request);

#endif

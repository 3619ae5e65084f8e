/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs HTTP transfers with libcurl. */
#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

/* Initialises libcurl, before everything else; false if that is not possible. */
bool ccurl_start(void);

/* Connections and TLS sessions that several transfers use. All calls come from one thread. */
typedef struct ccurl_session ccurl_session;
ccurl_session *_Nullable ccurl_session_new(void);
void ccurl_session_free(ccurl_session *_Nonnull session);

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
    /* Whether the scheme of `url` is https; other schemes than this one are refused. */
    bool is_secure;
    /* Header lines with "\n" between them. */
    const char *_Nonnull headers;
    const void *_Nullable body;
    size_t body_count;
    /* Whether libcurl verifies the certificates. Otherwise `prepare_tls` installs the verification. */
    bool verifies;
    /* The authorities for that, in PEM; none: those of the system. */
    const void *_Nullable authorities;
    size_t authorities_count;
    /* The address of an HTTP proxy, from which CONNECT opens a tunnel to the server; empty without a proxy. */
    const char *_Nonnull proxy;
    /* Name and password for the proxy; NULL without them. */
    const char *_Nullable proxy_name;
    const char *_Nullable proxy_password;
    long connect_milliseconds;
    long total_milliseconds;
    /* `may_go_on` is called when this descriptor can be read or is hung up. */
    int stop;

    /* The first argument of every callback. */
    void *_Nonnull owner;
    /* Reads what does not end the transfer from `stop`; false cancels the transfer. */
    bool (*_Nonnull may_go_on)(void *_Nonnull owner);
    /* Prepares an SSL_CTX for a new connection; false when it cannot be prepared. */
    bool (*_Nonnull prepare_tls)(void *_Nonnull owner, void *_Nonnull context);
    /* Called with each address of the server before it is tried, unless there is a proxy; false skips the address. */
    bool (*_Nonnull may_connect)(void *_Nonnull owner, const char *_Nonnull address);
    /* Called when a connection is ready and nothing has been sent; false stops the transfer. */
    bool (*_Nonnull connected)(void *_Nonnull owner);
    /* Called for each header line and the status line; false stops the transfer. */
    bool (*_Nonnull header)(void *_Nonnull owner, const char *_Nonnull bytes, size_t count);
    /* Called for each part of the body; false stops the transfer. */
    bool (*_Nonnull received)(void *_Nonnull owner, const void *_Nonnull bytes, size_t count);
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
    /* The proxy asks for a login, and names no method that is configured. */
    bool proxy_offers_other_logins;
    /* Text for the log; may be empty. */
    char words[256];
} ccurl_outcome;

/* Runs one transfer to its end. Only CCURL_PAGE follows redirects and uses cookies and the proxies of the
 * environment. */
ccurl_outcome ccurl_run(ccurl_session *_Nonnull session, const ccurl_request *_Nonnull request);

#endif

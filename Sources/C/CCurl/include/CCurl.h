/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libcurl, loaded when it is first needed: with all that it depends on it would double the memory and the start time of
 * an idle daemon. Its functions are variadic, so their calls are here; what they mean is EService's. */
#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

/* Loads libcurl.so.4, once for the process and for good. Returns NULL, or why it cannot be used. */
const char *_Nullable ccurl_load(void);

/* TLS sessions that several ccurl_session can resume; all of them on one thread. Outlives them. */
typedef struct ccurl_memory ccurl_memory;
ccurl_memory *_Nullable ccurl_memory_new(void);
void ccurl_memory_free(ccurl_memory *_Nonnull memory);

/* Connections and the rest that transfers share. Used by one thread, but for ccurl_wake. */
typedef struct ccurl_session ccurl_session;
ccurl_session *_Nullable ccurl_session_new(ccurl_memory *_Nullable memory);
void ccurl_session_free(ccurl_session *_Nonnull session);
/* Makes a transfer that waits look at `cancelled`. From any thread. */
void ccurl_wake(ccurl_session *_Nonnull session);

typedef struct {
    const char *_Nonnull method;
    const char *_Nonnull url;
    /* URI schemes that may be used: "https", or "https,http". */
    const char *_Nonnull schemes;
    /* Lines without their ends; the last entry is NULL. */
    const char *_Nullable const *_Nonnull headers;
    const void *_Nullable body;
    size_t body_count;
    long connect_milliseconds;
    long total_milliseconds;

    void *_Nonnull owner;
    /* Prepares an SSL_CTX for a new connection; false: it cannot be. */
    bool (*_Nonnull prepare_tls)(void *_Nonnull owner, void *_Nonnull context);
    /* A connection is there, nothing has been sent; false: drop it. */
    bool (*_Nonnull connected)(void *_Nonnull owner);
    /* A header line, the status line among them; false: too many. */
    bool (*_Nonnull header)(void *_Nonnull owner, const char *_Nonnull bytes, size_t count);
    /* A part of the body; false: too much. */
    bool (*_Nonnull received)(void *_Nonnull owner, const void *_Nonnull bytes, size_t count);
    bool (*_Nonnull cancelled)(void *_Nonnull owner);
} ccurl_request;

typedef enum {
    CCURL_DONE,
    CCURL_CANCELLED,
    CCURL_TIMEOUT,
    /* No such host, nobody there. */
    CCURL_UNREACHABLE,
    CCURL_TLS,
    /* A callback said false. */
    CCURL_REFUSED,
    /* Cut off, or no HTTP. */
    CCURL_BROKEN,
} ccurl_end;

typedef struct {
    ccurl_end end;
    /* HTTP status, 0 without one. */
    long status;
    /* From the request to the end of its answer; 0 when none was sent. */
    long long answer_microseconds;
    /* For the log; empty when there is nothing to say. */
    char words[256];
} ccurl_outcome;

/* Runs one transfer to its end: redirects are not followed, cookies, proxies and .netrc not used. */
ccurl_outcome ccurl_run(ccurl_session *_Nonnull session, const ccurl_request *_Nonnull request);

#endif

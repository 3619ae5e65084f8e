/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CCurl.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool ccurl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

struct ccurl_session {
    /* The connections. */
    CURLM *multi;
    /* The TLS sessions that can be resumed. */
    CURLSH *share;
};

ccurl_session *ccurl_session_new(void) {
    ccurl_session *session = calloc(1, sizeof *session);
    if (!session) return NULL;
    session->multi = curl_multi_init();
    session->share = curl_share_init();
    if (session->multi && session->share &&
        curl_share_setopt(session->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) == CURLSHE_OK)
        return session;
    ccurl_session_free(session);
    return NULL;
}

void ccurl_session_free(ccurl_session *session) {
    if (session->multi) curl_multi_cleanup(session->multi);
    if (session->share) curl_share_cleanup(session->share);
    free(session);
}

/* The maximum number of bytes of all headers with which a proxy answers CONNECT. */
enum { maximum_proxy_headers = 16384 };

/* The ways to log in at a proxy. */
static const long proxy_logins = CURLAUTH_BASIC | CURLAUTH_DIGEST;

/* One transfer, which every callback of libcurl gets as its argument. */
typedef struct {
    const ccurl_request *request;
    /* Whether the tunnel through the proxy is open. TLS begins after that, and so does a request without TLS. */
    bool is_past_proxy;
    size_t proxy_headers;
} transfer;

static bool is_at_proxy(const transfer *transfer) { return *transfer->request->proxy && !transfer->is_past_proxy; }

static CURLcode prepare_tls(CURL *easy, void *context, void *owner) {
    (void)easy;
    transfer *transfer = owner;
    transfer->is_past_proxy = true;
    const ccurl_request *request = transfer->request;
    return request->prepare_tls(request->owner, context) ? CURLE_OK : CURLE_ABORTED_BY_CALLBACK;
}

/* Makes the socket for one address of the server, if it may be reached. */
static curl_socket_t open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *peer) {
    (void)purpose;
    const transfer *transfer = owner;
    const ccurl_request *request = transfer->request;
    char text[INET6_ADDRSTRLEN] = "";
    const void *address = peer->family == AF_INET ? (void *)&((struct sockaddr_in *)&peer->addr)->sin_addr
                                                  : (void *)&((struct sockaddr_in6 *)&peer->addr)->sin6_addr;
    /* A proxy may be anywhere. */
    bool is_server = !*request->proxy && (peer->family == AF_INET || peer->family == AF_INET6);
    if (is_server && inet_ntop(peer->family, address, text, sizeof text) && !request->may_connect(request->owner, text))
        return CURL_SOCKET_BAD;
    return socket(peer->family, peer->socktype | SOCK_CLOEXEC, peer->protocol);
}

static int connected(void *owner, char *remote, char *local, int remote_port, int local_port) {
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    transfer *transfer = owner;
    transfer->is_past_proxy = true;
    const ccurl_request *request = transfer->request;
    return request->connected(request->owner) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t header(char *bytes, size_t size, size_t count, void *owner) {
    transfer *transfer = owner;
    if (is_at_proxy(transfer)) {
        transfer->proxy_headers += size * count;
        return transfer->proxy_headers <= maximum_proxy_headers ? size * count : 0;
    }
    const ccurl_request *request = transfer->request;
    return request->header(request->owner, bytes, size * count) ? size * count : 0;
}

static size_t received(char *bytes, size_t size, size_t count, void *owner) {
    const ccurl_request *request = ((transfer *)owner)->request;
    return request->received(request->owner, bytes, size * count) ? size * count : 0;
}

static ccurl_end end(const transfer *transfer, CURLcode code) {
    if (code == CURLE_OK) return CCURL_DONE;
    if (is_at_proxy(transfer)) return CCURL_PROXY;
    switch (code) {
        case CURLE_OPERATION_TIMEDOUT: return CCURL_TIMEOUT;
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT: return CCURL_UNREACHABLE;
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_ENGINE_NOTFOUND:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_PEER_FAILED_VERIFICATION: return CCURL_TLS;
        case CURLE_ABORTED_BY_CALLBACK:
        case CURLE_WRITE_ERROR: return CCURL_REFUSED;
        default: return CCURL_BROKEN;
    }
}

static struct curl_slist *list(const char *lines) {
    char *copy = strdup(lines), *rest = copy;
    struct curl_slist *all = NULL;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        struct curl_slist *longer = curl_slist_append(all, line);
        if (longer) all = longer;
    }
    free(copy);
    return all;
}

static void configure(CURL *easy, transfer *transfer, struct curl_slist *headers, char *words) {
    const ccurl_request *request = transfer->request;
#define SET(option, value) curl_easy_setopt(easy, CURLOPT_##option, value)
    SET(URL, request->url);
    SET(PROTOCOLS_STR, request->is_secure ? "https" : "http");
    SET(FOLLOWLOCATION, 0L);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(SSL_ENABLE_ALPN, 0L);
    SET(PROXY, request->proxy);
    SET(NOPROXY, "");
    SET(HTTPPROXYTUNNEL, 1L);
    SET(PROXYAUTH, proxy_logins);
    if (request->proxy_name) SET(PROXYUSERNAME, request->proxy_name);
    if (request->proxy_password) SET(PROXYPASSWORD, request->proxy_password);
    SET(NETRC, (long)CURL_NETRC_IGNORED);
    SET(NOSIGNAL, 1L);
    SET(HTTPHEADER, headers);
    SET(ERRORBUFFER, words);
    SET(CONNECTTIMEOUT_MS, request->connect_milliseconds);
    SET(TIMEOUT_MS, request->total_milliseconds);
    SET(HTTP09_ALLOWED, 0L);
    SET(TCP_NODELAY, 1L);
    SET(SSL_VERIFYPEER, request->verifies ? 1L : 0L);
    SET(SSL_VERIFYHOST, request->verifies ? 2L : 0L);
    if (request->authorities_count > 0) {
        struct curl_blob pem = {.data = (void *)request->authorities, .len = request->authorities_count};
        SET(CAINFO, NULL);
        SET(CAPATH, NULL);
        SET(CAINFO_BLOB, &pem);
    }
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (request->method == CCURL_CONNECT) SET(NOBODY, 1L);
    if (request->method == CCURL_POST || request->method == CCURL_PUT) {
        SET(POST, 1L);
        if (request->method == CCURL_PUT) SET(CUSTOMREQUEST, "PUT");
        SET(POSTFIELDS, request->body ? request->body : "");
        SET(POSTFIELDSIZE_LARGE, (curl_off_t)request->body_count);
    }
    if (request->method == CCURL_PAGE) {
        SET(FOLLOWLOCATION, 1L);
        SET(MAXREDIRS, 10L);
        SET(REDIR_PROTOCOLS_STR, request->is_secure ? "https" : "http,https");
        SET(COOKIEFILE, "");
        SET(PROXY, NULL);
        SET(NOPROXY, NULL);
        SET(HTTPPROXYTUNNEL, 0L);
    }
    /* A look-up of a name that hangs must not delay the end of a transfer. */
    SET(QUICK_EXIT, 1L);
    SET(OPENSOCKETFUNCTION, open_socket);
    SET(OPENSOCKETDATA, (void *)transfer);
    SET(SSL_CTX_FUNCTION, prepare_tls);
    SET(SSL_CTX_DATA, (void *)transfer);
    SET(PREREQFUNCTION, connected);
    SET(PREREQDATA, (void *)transfer);
    SET(HEADERFUNCTION, header);
    SET(HEADERDATA, (void *)transfer);
    SET(WRITEFUNCTION, received);
    SET(WRITEDATA, (void *)transfer);
#undef SET
}

/* Runs the transfer. Returns false if the transfer was cancelled. */
static bool drive(ccurl_session *session, const ccurl_request *request, CURLcode *code) {
    for (;;) {
        int running = 0, left = 0;
        if (curl_multi_perform(session->multi, &running) != CURLM_OK) return true;
        CURLMsg *message = curl_multi_info_read(session->multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            *code = message->data.result;
            return true;
        }
        struct curl_waitfd stop = {.fd = request->stop, .events = CURL_WAIT_POLLIN};
        /* libcurl ends the wait earlier when one of its own timeouts is due. */
        if (curl_multi_poll(session->multi, &stop, 1, 60000, NULL) != CURLM_OK) return true;
        if (stop.revents && !request->may_go_on(request->owner)) return false;
    }
}

ccurl_outcome ccurl_run(ccurl_session *session, const ccurl_request *request) {
    ccurl_outcome outcome = {.end = CCURL_BROKEN};
    char words[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = list(request->headers);
    CURLcode code = CURLE_FAILED_INIT;
    transfer transfer = {.request = request};
    /* Each transfer has a handle of its own: one of libcurl 7.88 keeps a pointer to the last header of the transfer before,
       which is freed, and appends a folded line to it. */
    CURL *easy = curl_easy_init();
    if (easy) {
        configure(easy, &transfer, headers, words);
        curl_easy_setopt(easy, CURLOPT_SHARE, session->share);
    }
    if (easy && curl_multi_add_handle(session->multi, easy) == CURLM_OK) {
        bool finished = drive(session, request, &code);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &outcome.status);
        curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &outcome.proxy_status);
        long offered = 0;
        curl_easy_getinfo(easy, CURLINFO_PROXYAUTH_AVAIL, &offered);
        outcome.proxy_offers_other_logins = offered && !(offered & proxy_logins);
        curl_multi_remove_handle(session->multi, easy);
        outcome.end = finished ? end(&transfer, code) : CCURL_CANCELLED;
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    /* The words of libcurl name the proxy, which is nobody's business but the administrator's. */
    const char *text = *words && outcome.end != CCURL_PROXY ? words : curl_easy_strerror(code);
    if (code == CURLE_SSL_CACERT_BADFILE) text = "the file of the authorities has no certificates in PEM";
    if (code != CURLE_OK) snprintf(outcome.words, sizeof outcome.words, "%s", text);
    return outcome;
}

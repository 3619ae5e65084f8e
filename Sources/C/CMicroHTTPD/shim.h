/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <microhttpd.h>

/* Variadic functions, which Swift cannot call. */

typedef void *(*cmicrohttpd_target)(void *context, const char *target, struct MHD_Connection *connection);

/* The functions that libmicrohttpd calls. `target` is called with the request target as the client has written it. */
struct cmicrohttpd_handlers {
    cmicrohttpd_target target;
    MHD_AccessHandlerCallback request;
    MHD_NotifyConnectionCallback connection;
};

/* A server without threads and without a listening socket. `memory` bounds a request with its answer, in bytes. The
 * `timeout` of a connection is in seconds. */
static inline struct MHD_Daemon *cmicrohttpd_start(
    struct cmicrohttpd_handlers handlers, void *context, size_t memory, unsigned int connections, unsigned int timeout)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE, 0, NULL, NULL,
        handlers.request, context,
        MHD_OPTION_URI_LOG_CALLBACK, handlers.target, context,
        MHD_OPTION_NOTIFY_CONNECTION, handlers.connection, context,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout,
        MHD_OPTION_END);
}

/* The descriptor that becomes readable when MHD_run has work; -1 if there is none. */
static inline int cmicrohttpd_descriptor(struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

/* The socket of a connection; -1 if it has none. */
static inline int cmicrohttpd_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* Closes the socket of an upgraded connection. */
static inline void cmicrohttpd_close(struct MHD_UpgradeResponseHandle *handle)
{
    MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

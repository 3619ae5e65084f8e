/* SPDX-License-Identifier: GPL-3.0-or-later */
#define _GNU_SOURCE
#include "CSystemd.h"

#include <dlfcn.h>
#include <systemd/sd-bus.h>

#define FUNCTIONS(X)                                                                                                   \
    X(sd_bus_new)                                                                                                      \
    X(sd_bus_set_address)                                                                                              \
    X(sd_bus_set_fd)                                                                                                   \
    X(sd_bus_set_bus_client)                                                                                           \
    X(sd_bus_start)                                                                                                    \
    X(sd_bus_close_unref)                                                                                              \
    X(sd_bus_get_fd)                                                                                                   \
    X(sd_bus_get_events)                                                                                               \
    X(sd_bus_get_timeout)                                                                                              \
    X(sd_bus_process)                                                                                                  \
    X(sd_bus_send)                                                                                                     \
    X(sd_bus_message_new_method_call)                                                                                  \
    X(sd_bus_message_new_method_return)                                                                                \
    X(sd_bus_message_new_signal)                                                                                       \
    X(sd_bus_message_new_method_error)                                                                                 \
    X(sd_bus_message_unref)                                                                                            \
    X(sd_bus_message_get_type)                                                                                         \
    X(sd_bus_message_get_reply_cookie)                                                                                 \
    X(sd_bus_message_get_error)                                                                                        \
    X(sd_bus_message_get_path)                                                                                         \
    X(sd_bus_message_get_interface)                                                                                    \
    X(sd_bus_message_get_member)                                                                                       \
    X(sd_bus_message_get_sender)                                                                                       \
    X(sd_bus_message_append_basic)                                                                                     \
    X(sd_bus_message_open_container)                                                                                   \
    X(sd_bus_message_close_container)                                                                                  \
    X(sd_bus_message_enter_container)                                                                                  \
    X(sd_bus_message_exit_container)                                                                                   \
    X(sd_bus_message_peek_type)                                                                                        \
    X(sd_bus_message_read_basic)                                                                                       \
    X(sd_bus_message_read_array)                                                                                       \
    X(sd_bus_message_skip)

#define DECLARE(name) __typeof__(name) *name;
static struct { FUNCTIONS(DECLARE) } library;
static int is_loaded;

int csystemd_load(void) {
    if (is_loaded) return 0;
    void *handle = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return -1;
#define FIND(name)                                                                                                     \
    if (!(library.name = (__typeof__(name) *)dlsym(handle, #name))) return -1;
    FUNCTIONS(FIND)
    is_loaded = 1;
    return 0;
}

int csystemd_bus_new(sd_bus **bus) { return library.sd_bus_new(bus); }
int csystemd_bus_set_address(sd_bus *bus, const char *address) { return library.sd_bus_set_address(bus, address); }
int csystemd_bus_set_fd(sd_bus *bus, int fd) { return library.sd_bus_set_fd(bus, fd, fd); }
int csystemd_bus_set_bus_client(sd_bus *bus, int b) { return library.sd_bus_set_bus_client(bus, b); }
int csystemd_bus_start(sd_bus *bus) { return library.sd_bus_start(bus); }
void csystemd_bus_close_unref(sd_bus *bus) { library.sd_bus_close_unref(bus); }
int csystemd_bus_get_fd(sd_bus *bus) { return library.sd_bus_get_fd(bus); }
int csystemd_bus_get_events(sd_bus *bus) { return library.sd_bus_get_events(bus); }
int csystemd_bus_get_timeout(sd_bus *bus, uint64_t *usec) { return library.sd_bus_get_timeout(bus, usec); }
int csystemd_bus_process(sd_bus *bus, sd_bus_message **m) { return library.sd_bus_process(bus, m); }
int csystemd_bus_send(sd_bus *bus, sd_bus_message *m, uint64_t *cookie) { return library.sd_bus_send(bus, m, cookie); }

int csystemd_new_method_call(sd_bus *bus, sd_bus_message **m, const char *destination, const char *path,
                             const char *interface, const char *member) {
    return library.sd_bus_message_new_method_call(bus, m, destination, path, interface, member);
}
int csystemd_new_method_return(sd_bus_message *call, sd_bus_message **m) {
    return library.sd_bus_message_new_method_return(call, m);
}
int csystemd_new_signal(sd_bus *bus, sd_bus_message **m, const char *path, const char *interface, const char *member) {
    return library.sd_bus_message_new_signal(bus, m, path, interface, member);
}
int csystemd_new_method_error(sd_bus_message *call, sd_bus_message **m, const char *name) {
    const sd_bus_error error = SD_BUS_ERROR_MAKE_CONST(name, "refused");
    return library.sd_bus_message_new_method_error(call, m, &error);
}
void csystemd_message_unref(sd_bus_message *m) { library.sd_bus_message_unref(m); }

int csystemd_message_kind(sd_bus_message *m) {
    uint8_t type;
    int r = library.sd_bus_message_get_type(m, &type);
    return r < 0 ? r : type;
}
int csystemd_message_reply_cookie(sd_bus_message *m, uint64_t *cookie) {
    return library.sd_bus_message_get_reply_cookie(m, cookie);
}
const char *csystemd_message_error_name(sd_bus_message *m) {
    const sd_bus_error *error = library.sd_bus_message_get_error(m);
    return error ? error->name : NULL;
}

const char *csystemd_message_error_text(sd_bus_message *m) {
    const sd_bus_error *error = library.sd_bus_message_get_error(m);
    return error ? error->message : NULL;
}
const char *csystemd_message_path(sd_bus_message *m) { return library.sd_bus_message_get_path(m); }
const char *csystemd_message_interface(sd_bus_message *m) { return library.sd_bus_message_get_interface(m); }
const char *csystemd_message_member(sd_bus_message *m) { return library.sd_bus_message_get_member(m); }
const char *csystemd_message_sender(sd_bus_message *m) { return library.sd_bus_message_get_sender(m); }

int csystemd_message_append_basic(sd_bus_message *m, char type, const void *value) {
    return library.sd_bus_message_append_basic(m, type, value);
}
int csystemd_message_open_container(sd_bus_message *m, char type, const char *contents) {
    return library.sd_bus_message_open_container(m, type, contents);
}
int csystemd_message_close_container(sd_bus_message *m) { return library.sd_bus_message_close_container(m); }
int csystemd_message_enter_container(sd_bus_message *m, char type, const char *contents) {
    return library.sd_bus_message_enter_container(m, type, contents);
}
int csystemd_message_exit_container(sd_bus_message *m) { return library.sd_bus_message_exit_container(m); }
int csystemd_message_peek_type(sd_bus_message *m, char *type, const char **contents) {
    return library.sd_bus_message_peek_type(m, type, contents);
}
int csystemd_message_read_basic(sd_bus_message *m, char type, void *value) {
    return library.sd_bus_message_read_basic(m, type, value);
}
int csystemd_message_read_array(sd_bus_message *m, char type, const void **bytes, size_t *size) {
    return library.sd_bus_message_read_array(m, type, bytes, size);
}
int csystemd_message_skip(sd_bus_message *m, const char *types) { return library.sd_bus_message_skip(m, types); }

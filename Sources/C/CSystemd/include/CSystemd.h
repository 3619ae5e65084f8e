/* SPDX-License-Identifier: GPL-3.0-or-later
 * The functions of sd-bus that badged uses. libsystemd.so.0 is loaded on demand: a daemon that does not scan through
 * bluetoothd saves the memory of this library and its five dependencies. Each function corresponds to the one of sd-bus(3)
 * with the same name and must not be called before csystemd_load has returned 0. */
#pragma once
#include <stdint.h>
#include <stddef.h>

struct sd_bus;
struct sd_bus_message;

/* Loads the library; returns 0, or -1 when it is not installed or lacks a function. */
int csystemd_load(void);

int csystemd_bus_new(struct sd_bus **bus);
int csystemd_bus_set_address(struct sd_bus *bus, const char *address);
/* Uses a connected socket instead of an address, and owns the socket from then on. */
int csystemd_bus_set_fd(struct sd_bus *bus, int fd);
int csystemd_bus_set_bus_client(struct sd_bus *bus, int b);
int csystemd_bus_start(struct sd_bus *bus);
/* Does not flush, because flushing can block. */
void csystemd_bus_close_unref(struct sd_bus *bus);
int csystemd_bus_get_fd(struct sd_bus *bus);
int csystemd_bus_get_events(struct sd_bus *bus);
int csystemd_bus_get_timeout(struct sd_bus *bus, uint64_t *usec);
int csystemd_bus_process(struct sd_bus *bus, struct sd_bus_message **message);
int csystemd_bus_send(struct sd_bus *bus, struct sd_bus_message *message, uint64_t *cookie);

int csystemd_new_method_call(struct sd_bus *bus, struct sd_bus_message **message, const char *destination,
                             const char *path, const char *interface, const char *member);
int csystemd_new_method_return(struct sd_bus_message *call, struct sd_bus_message **message);
int csystemd_new_method_error(struct sd_bus_message *call, struct sd_bus_message **message, const char *name);
int csystemd_new_signal(struct sd_bus *bus, struct sd_bus_message **message, const char *path, const char *interface,
                        const char *member);
void csystemd_message_unref(struct sd_bus_message *message);

enum csystemd_kind { CSYSTEMD_CALL = 1, CSYSTEMD_RETURN = 2, CSYSTEMD_ERROR = 3, CSYSTEMD_SIGNAL = 4 };
/* Returns one of csystemd_kind, or a negative number. */
int csystemd_message_kind(struct sd_bus_message *message);
int csystemd_message_reply_cookie(struct sd_bus_message *message, uint64_t *cookie);
/* Returns the name of an error message, or NULL. */
const char *csystemd_message_error_name(struct sd_bus_message *message);
/* Returns the text of an error message for people, or NULL. */
const char *csystemd_message_error_text(struct sd_bus_message *message);
const char *csystemd_message_path(struct sd_bus_message *message);
const char *csystemd_message_interface(struct sd_bus_message *message);
const char *csystemd_message_member(struct sd_bus_message *message);
const char *csystemd_message_sender(struct sd_bus_message *message);

int csystemd_message_append_basic(struct sd_bus_message *message, char type, const void *value);
int csystemd_message_open_container(struct sd_bus_message *message, char type, const char *contents);
int csystemd_message_close_container(struct sd_bus_message *message);
int csystemd_message_enter_container(struct sd_bus_message *message, char type, const char *contents);
int csystemd_message_exit_container(struct sd_bus_message *message);
int csystemd_message_peek_type(struct sd_bus_message *message, char *type, const char **contents);
int csystemd_message_read_basic(struct sd_bus_message *message, char type, void *value);
int csystemd_message_read_array(struct sd_bus_message *message, char type, const void **bytes, size_t *size);
int csystemd_message_skip(struct sd_bus_message *message, const char *types);

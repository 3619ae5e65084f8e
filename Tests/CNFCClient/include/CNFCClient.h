/* SPDX-License-Identifier: GPL-3.0-or-later
 * libnfc as programs in C use it, to compare with: its own framing for short commands, and the plainest exchange of
 * blocks for long ones. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct cnfc_client;
/* Opens a device and selects a card of type A; with `blocks` by RATS of our own. NULL when that fails. */
struct cnfc_client *cnfc_client_open(const char *connstring, int blocks);
/* Sends a command and takes its answer; its length, or -1. */
int cnfc_client_exchange(struct cnfc_client *client, const uint8_t *command, size_t length, uint8_t *answer, size_t size);
void cnfc_client_close(struct cnfc_client *client);

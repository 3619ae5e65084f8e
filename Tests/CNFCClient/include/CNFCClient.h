/* SPDX-License-Identifier: GPL-3.0-or-later
 * A plain C client of libnfc, for comparison in the benchmarks: libnfc's own block protocol for short commands, and the
 * simplest exchange of blocks for long ones. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct cnfc_client;
/* Opens a device and selects a card of type A. With `blocks` it sends RATS itself. Returns NULL on failure. */
struct cnfc_client *cnfc_client_open(const char *connstring, int blocks);
/* Sends a command and returns the length of the answer, or -1. */
int cnfc_client_exchange(struct cnfc_client *client, const uint8_t *command, size_t length, uint8_t *answer, size_t size);
void cnfc_client_close(struct cnfc_client *client);

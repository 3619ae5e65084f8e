/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "CNFCClient.h"

#include <nfc/nfc.h>
#include <stdlib.h>
#include <string.h>

struct cnfc_client {
    nfc_context *context;
    nfc_device *device;
    int blocks;
    uint8_t number;
};

struct cnfc_client *cnfc_client_open(const char *connstring, int blocks) {
    struct cnfc_client *client = calloc(1, sizeof *client);
    if (!client) return NULL;
    client->blocks = blocks;
    nfc_init(&client->context);
    if (!client->context) goto fail;
    client->device = nfc_open(client->context, connstring);
    if (!client->device || nfc_initiator_init(client->device) < 0) goto fail;
    nfc_device_set_property_bool(client->device, NP_INFINITE_SELECT, false);
    if (blocks) nfc_device_set_property_bool(client->device, NP_AUTO_ISO14443_4, false);
    const nfc_modulation type = {NMT_ISO14443A, NBR_106};
    nfc_target target;
    if (nfc_initiator_select_passive_target(client->device, type, NULL, 0, &target) <= 0) goto fail;
    if (blocks) {
        const uint8_t rats[] = {0xE0, 0x80};
        uint8_t ats[64];
        nfc_device_set_property_bool(client->device, NP_EASY_FRAMING, false);
        if (nfc_initiator_transceive_bytes(client->device, rats, sizeof rats, ats, sizeof ats, 1000) < 2) goto fail;
    }
    return client;
fail:
    cnfc_client_close(client);
    return NULL;
}

/* Uses frames of 256 bytes; does not handle lost frames and waiting time extensions. */
static int exchange_blocks(struct cnfc_client *c, const uint8_t *command, size_t length, uint8_t *answer, size_t size) {
    uint8_t frame[256], received[264];
    int count = -1;
    size_t taken = 0;
    for (size_t sent = 0; sent < length;) {
        size_t part = length - sent;
        const int more = part > 253;
        if (more) part = 253;
        frame[0] = (uint8_t)(0x02 | (more ? 0x10 : 0) | c->number);
        memcpy(frame + 1, command + sent, part);
        count = nfc_initiator_transceive_bytes(c->device, frame, part + 1, received, sizeof received, 5000);
        if (count < 1) return -1;
        c->number ^= 1;
        sent += part;
    }
    while (1) {
        if (taken + (size_t)count - 1 > size) return -1;
        memcpy(answer + taken, received + 1, (size_t)count - 1);
        taken += (size_t)count - 1;
        if (!(received[0] & 0x10)) return (int)taken;
        frame[0] = 0xA2 | c->number;
        count = nfc_initiator_transceive_bytes(c->device, frame, 1, received, sizeof received, 5000);
        if (count < 1) return -1;
        c->number ^= 1;
    }
}

int cnfc_client_exchange(struct cnfc_client *c, const uint8_t *command, size_t length, uint8_t *answer, size_t size) {
    if (c->blocks) return exchange_blocks(c, command, length, answer, size);
    /* With longer commands libnfc writes past its buffer. */
    if (length > 262) return -1;
    return nfc_initiator_transceive_bytes(c->device, command, length, answer, size, 5000);
}

void cnfc_client_close(struct cnfc_client *client) {
    if (client->device) nfc_close(client->device);
    /* nfc_exit is not called, because it also frees the list of drivers that other contexts use. */
    free(client);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once
#include <nfc/nfc.h>
#include <string.h>
#include "Replacements.h"

/* Swift cannot read nfc_target safely, because it is packed and contains a union. These functions copy whole fields and
 * never use the lengths beside them. */
static inline int cnfc_is_type_b(const nfc_target *target) { return target->nm.nmt == NMT_ISO14443B; }
static inline uint8_t cnfc_select_answer(const nfc_target *target) { return target->nti.nai.btSak; }
/* Copies 10 bytes. Returns the length that the chip states. */
static inline size_t cnfc_identifier(const nfc_target *target, uint8_t *identifier) {
    memcpy(identifier, target->nti.nai.abtUid, sizeof target->nti.nai.abtUid);
    return target->nti.nai.szUidLen;
}
/* Copies 11 bytes: PUPI, application data, protocol info. */
static inline void cnfc_type_b(const nfc_target *target, uint8_t *fields) {
    memcpy(fields, target->nti.nbi.abtPupi, 4);
    memcpy(fields + 4, target->nti.nbi.abtApplicationData, 4);
    memcpy(fields + 8, target->nti.nbi.abtProtocolInfo, 3);
}

/* SPDX-License-Identifier: GPL-3.0-or-later
 * libFuzzer's entry as a library; the symbol comes with -sanitize=fuzzer. */
#pragma once
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQLite, with functions for macros that Swift cannot import. */
#pragma once
#include <sqlite3.h>

/* SQLITE_TRANSIENT: SQLite copies the value during the call. */
static inline int sqlite3_bind_bytes(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

static inline int sqlite3_bind_string(sqlite3_stmt *statement, int index, const char *text) {
    return sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT);
}

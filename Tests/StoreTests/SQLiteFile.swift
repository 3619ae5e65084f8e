// SPDX-License-Identifier: GPL-3.0-or-later
import CSQLite

/// A database as another program opens it.
final class SQLiteFile {
    private let handle: OpaquePointer

    struct CannotOpen: Error {}

    init(_ path: String) throws {
        var handle: OpaquePointer?
        guard sqlite3_open(path, &handle) == SQLITE_OK, let handle else { throw CannotOpen() }
        self.handle = handle
    }

    deinit { sqlite3_close(handle) }

    func run(_ sql: String) -> Bool { sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK }
}

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

    /// The sealed values by their names.
    func sealedValues() -> [String: [UInt8]] {
        var (statement, values) = (OpaquePointer?.none, [String: [UInt8]]())
        guard sqlite3_prepare_v2(handle, "SELECT name, sealed FROM entry", -1, &statement, nil) == SQLITE_OK else {
            return [:]
        }
        defer { sqlite3_finalize(statement) }
        while sqlite3_step(statement) == SQLITE_ROW {
            let count = Int(sqlite3_column_bytes(statement, 1))
            guard let name = sqlite3_column_text(statement, 0), let start = sqlite3_column_blob(statement, 1) else {
                continue
            }
            values[String(cString: name)] = Array(UnsafeRawBufferPointer(start: start, count: count))
        }
        return values
    }

    func run(_ sql: String) -> Bool { sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK }
}

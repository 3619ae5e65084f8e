// SPDX-License-Identifier: GPL-3.0-or-later
import CSQLite
import Glibc
package import Text

/// A SQLite database; every call of the library is here. One thread at a time uses it.
package final class Database {
    private let handle: OpaquePointer
    private let path: String
    /// The file at the path when it was opened.
    private var file: stat?

    /// How a commit is made whole.
    package enum Journal: String {
        /// The journal has the old content of changed pages, and is emptied at each commit. DELETE would only mark it as
        /// over while the lock is held.
        case rollback = "TRUNCATE"
        /// Changes are appended to a log, which takes one write to the disk instead of four. Old content stays in it until
        /// about 1 MB of changes have gone into the database.
        case log = "WAL"
    }

    /// Opens a database that this process uses alone. Each commit is on the disk when it returns.
    package init(path: String, journal: Journal = .rollback) throws(Failure) {
        self.path = path
        // SQLite waits for the other end of a FIFO that has the name of one of these files.
        for name in [path, "\(path)-journal", "\(path)-wal"] where !PrivateFile.isPlainOrMissing(name) {
            let reason: Phrase = "it is not a plain file"
            throw .storeUnavailable("cannot use \(name): \(reason)")
        }
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            let text = String(cString: sqlite3_errstr(code))
            sqlite3_close_v2(handle)
            throw .storeUnavailable("cannot open \(path): \(text)")
        }
        self.handle = handle
        sqlite3_extended_result_codes(handle, 1)
        for pragma in [
            "locking_mode = EXCLUSIVE", "journal_mode = \(journal.rawValue)", "synchronous = FULL",
            "secure_delete = ON", "temp_store = MEMORY", "trusted_schema = OFF", "wal_autocheckpoint = 256",
        ] {
            try run("PRAGMA \(pragma)")
        }
        file = Self.file(at: path)
    }

    deinit { sqlite3_close_v2(handle) }

    private static func file(at path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    /// Ends a transaction. What goes into a file that was removed or replaced meanwhile would be lost with this process.
    package func commit() throws(Failure) {
        let now = Self.file(at: path)
        guard let now, now.st_ino == file?.st_ino, now.st_dev == file?.st_dev else {
            throw Failure(
                .storeUnavailable,
                "\(path) was removed or replaced while it was in use",
                advice: "put it back, or restart the service"
            )
        }
        try run("COMMIT")
    }

    /// Reads all of the file, and compares its pages and the order of its rows.
    /// - Throws: `storeDamaged` with the first fault.
    package func checkIntegrity() throws(Failure) {
        var answer = ""
        try run("PRAGMA integrity_check(1)") { answer = $0.text(0) }
        guard answer == "ok" else { throw damaged(answer) }
    }

    private func damaged(_ reason: String) -> Failure {
        Failure(.storeDamaged, "\(path) is damaged: \(reason)", advice: "restore it from a backup")
    }

    /// How many rows the last statement has changed.
    var changeCount: Int { Int(sqlite3_changes(handle)) }

    /// A value for a parameter of a statement.
    package enum Value {
        case text(String)
        case bytes([UInt8])
        case number(Int)
    }

    /// One row of a result; valid until the next row.
    package struct Row {
        fileprivate let statement: OpaquePointer

        package func number(_ column: Int32) -> Int { Int(sqlite3_column_int64(statement, column)) }

        package func text(_ column: Int32) -> String {
            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        }

        package func bytes(_ column: Int32) -> [UInt8] {
            let count = Int(sqlite3_column_bytes(statement, column))
            guard let start = sqlite3_column_blob(statement, column), count > 0 else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: count))
        }
    }

    /// Runs one statement and calls `each` for each row of its result.
    package func run(_ sql: String, _ values: [Value] = [], each: (Row) -> Void = { _ in }) throws(Failure) {
        var prepared: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &prepared, nil))
        guard let statement = prepared else { throw .storeFailed("the SQL statement is empty") }
        defer { sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() {
            let position = Int32(index + 1)
            switch value {
            case .text(let text): try check(sqlite3_bind_string(statement, position, text))
            case .bytes(let bytes): try check(sqlite3_bind_bytes(statement, position, bytes, Int32(bytes.count)))
            case .number(let number): try check(sqlite3_bind_int64(statement, position, Int64(number)))
            }
        }
        while true {
            let code = sqlite3_step(statement)
            guard code == SQLITE_ROW else {
                guard code == SQLITE_DONE else { return try check(code) }
                return
            }
            each(Row(statement: statement))
        }
    }

    private func check(_ code: Int32) throws(Failure) {
        guard code != SQLITE_OK else { return }
        let text = String(cString: sqlite3_errmsg(handle))
        switch code & 0xFF {
        case SQLITE_BUSY, SQLITE_LOCKED: throw .storeInUse(path)
        // The statements are always the same: a file with which one makes no sense has another content than was written.
        case SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG:
            throw damaged(text)
        // The file itself can say so: its header names a format that this SQLite only reads.
        case SQLITE_READONLY where code == SQLITE_READONLY && access(path, W_OK) == 0: throw damaged(text)
        case SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN:
            throw .storeUnavailable("cannot use \(path): \(text)")
        default: throw .storeFailed(Phrase(verbatim: text))
        }
    }
}

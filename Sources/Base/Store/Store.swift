// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
package import Text

/// The part of the store that belongs to one feature, such as the pairings with wallet cards.
package struct StoreSpace: Sendable, Hashable {
    package let name: String

    package init(_ name: StaticString) { self.name = "\(name)" }
}

/// Durable values of the daemon: one SQLite file whose values are sealed with AES-256-GCM.
///
/// A value has a space and a name, which are not secret. A commit is on the disk when a call returns. A sealed value is
/// bound to its space and name, so values cannot be exchanged in the file.
package actor Store {
    private let database: Database
    private let key: Secret
    /// Whether pages may still have a copy of a value that was removed. An earlier process may have ended too early.
    private var hasLeftovers = true
    /// Why copies of removed values could not be wiped; nil if they were.
    package private(set) var wipeFault: Failure?
    /// The source of the key with which the values are sealed.
    package nonisolated let keySource: StoreKeySource

    /// The version of the tables.
    private static let version = 1
    /// The version of a store whose key is being made.
    private static let unfinished = -1
    package static let maximumNameCount = 255
    package static let maximumValueCount = 65_535

    /// Opens the store of a folder, and makes folder, database and key file if they are missing.
    ///
    /// `folder` is the state folder of the daemon. `credentials` is `$CREDENTIALS_DIRECTORY`, where systemd puts the key;
    /// without a credential the key file in the folder is used. With `tpm` a new key is sealed by the TPM. Blocks; see
    /// `open`.
    package init(folder: String, credentials: String? = nil, tpm: TPM? = nil) throws(Failure) {
        mkdir(folder, 0o700)
        try PrivateFile.checkFolder(folder)
        let path = Self.path(folder)
        try PrivateFile.prepare(path)
        let database = try Database(path: path)
        // What a damaged file still has could be saved. Each change, such as `wipe`, would remove it for good.
        try database.checkIntegrity()
        let places = StoreKeyPlaces(folder: folder, credentials: credentials, tpm: tpm)
        try database.run("BEGIN EXCLUSIVE")
        var version = 0
        try database.run("PRAGMA user_version") { version = $0.number(0) }
        guard version <= Self.version else { throw .storeNewer }
        let found: StoreKey
        if let known = try places.read() {
            found = known
            // An administrator may give a credential before there is a store; the other keys are made with it.
            let mayBeFirst = found.source == .credential
            guard version != 0 || mayBeFirst else { throw .storeEmpty(path, key: found.path) }
            if version > 0, try !Self.opens(database, found.key) { throw .storeUnopened(found.path) }
        } else {
            guard version <= 0 else { throw .storeKeyMissing(places.names) }
            // A key without this mark belongs to a store that was there before.
            try database.run("PRAGMA user_version = \(Self.unfinished)")
            try database.commit()
            try database.run("BEGIN EXCLUSIVE")
            found = try places.create()
        }
        if version <= 0 { try Self.makeTables(database, found.key) }
        keySource = found.source
        key = found.key.clone()
        try database.commit()
        self.database = database
    }

    /// Opens a store as `init` does, on the thread of the TPM, which may take seconds.
    package static func open(
        folder: String,
        credentials: String?,
        tpm: TPM?
    ) async throws(Failure) -> Store {
        guard let tpm else { return try Store(folder: folder, credentials: credentials) }
        let result = try await tpm.onThread {
            Result { () throws(Failure) in try Store(folder: folder, credentials: credentials, tpm: tpm) }
        }
        return try result.get()
    }

    private static func path(_ folder: String) -> String { "\(folder)/store.db" }

    /// Whether a store was made in the folder before.
    package static func exists(in folder: String) -> Bool { access(path(folder), F_OK) == 0 }

    private static let checkSpace = ""
    private static let checkName = "check"

    private static func makeTables(_ database: Database, _ key: borrowing Secret) throws(Failure) {
        try database.run(
            """
            CREATE TABLE entry (
                space TEXT NOT NULL, name TEXT NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY (space, name)
            ) WITHOUT ROWID
            """
        )
        try StoreTransaction(database, key.clone()).write(Secret([]), checkSpace, checkName)
        try database.run("PRAGMA user_version = \(version)")
    }

    /// Whether the key opens the value that was sealed when the store was made. If not, either of both may be wrong.
    private static func opens(_ database: Database, _ key: borrowing Secret) throws(Failure) -> Bool {
        do throws(Failure) {
            return try StoreTransaction(database, key.clone()).read(checkSpace, checkName) != nil
        } catch {
            guard error == .storeDamaged(checkName) else { throw error }
            return false
        }
    }

    /// Runs `body` with all its changes or none.
    package func transaction<Result: Sendable>(
        _ body: @Sendable (borrowing StoreTransaction) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try database.run("BEGIN IMMEDIATE")
        do throws(Failure) {
            let values = StoreTransaction(database, key.clone())
            let result = try body(values)
            try database.commit()
            if values.hasRemoved { hasLeftovers = true }
            if hasLeftovers { wipe() }
            return result
        } catch {
            try? database.run("ROLLBACK")
            throw error
        }
    }

    /// Writes the file anew, without the pages and gaps in which removed values may have left a copy.
    ///
    /// `secure_delete` overwrites a removed row, but not the copies from rows that moved between pages before. A failure
    /// does not undo the transaction, so it is kept in `wipeFault`, and the next transaction tries again.
    private func wipe() {
        do throws(Failure) {
            try database.run("VACUUM")
            hasLeftovers = false
            wipeFault = nil
        } catch {
            wipeFault = error
        }
    }

    /// Returns a value; nil if there is none.
    package func value(_ name: String, in space: StoreSpace) throws(Failure) -> SecretBox? {
        try transaction { values throws(Failure) in try values.value(name, in: space) }
    }

    package func set(_ name: String, in space: StoreSpace, to value: SecretBox) throws(Failure) {
        try transaction { values throws(Failure) in try values.set(name, in: space, to: value) }
    }

    package func remove(_ name: String, in space: StoreSpace) throws(Failure) {
        try transaction { values throws(Failure) in try values.remove(name, in: space) }
    }

    /// Returns the names of a space in alphabetical order.
    package func names(in space: StoreSpace) throws(Failure) -> [String] {
        try transaction { values throws(Failure) in try values.names(in: space) }
    }
}

/// Reads and changes values inside one transaction.
package struct StoreTransaction: ~Copyable {
    private let database: Database
    private let key: Secret
    private let removal = Removal()

    /// Whether a value was removed or replaced.
    private final class Removal { var hasHappened = false }

    init(_ database: Database, _ key: consuming Secret) {
        self.database = database
        self.key = key
    }

    /// Whether a value was removed or replaced.
    var hasRemoved: Bool { removal.hasHappened }

    /// Returns a value; nil if there is none.
    /// - Throws: `.damaged` if something other than badged has changed the value.
    package func value(_ name: String, in space: StoreSpace) throws(Failure) -> SecretBox? {
        try read(space.name, name)
    }

    /// Adds or replaces a value of at most 65 535 bytes. The content of the box is taken.
    package func set(_ name: String, in space: StoreSpace, to value: SecretBox) throws(Failure) {
        guard let value = value.take() else { throw .storeFailed("the value was used before") }
        try write(value, space.name, name)
    }

    package func remove(_ name: String, in space: StoreSpace) throws(Failure) { try remove(space.name, name) }

    private func remove(_ space: String, _ name: String) throws(Failure) {
        try database.run("DELETE FROM entry WHERE space = ? AND name = ?", [.text(space), .text(name)])
        if database.changeCount > 0 { removal.hasHappened = true }
    }

    /// Whether there is a value, which may be damaged.
    package func has(_ name: String, in space: StoreSpace) throws(Failure) -> Bool {
        var isFound = false
        try database.run(
            "SELECT 1 FROM entry WHERE space = ? AND name = ?",
            [.text(space.name), .text(name)]
        ) { _ in isFound = true }
        return isFound
    }

    /// The records of a space.
    package struct Records<Record: Sendable>: Sendable {
        package var good: [(name: String, record: Record)] = []
        /// The names of the others.
        package var unreadable: [String] = []
    }

    /// Reads the records of a space whose names begin with `prefix`.
    ///
    /// One record that is damaged or that a later version has written does not hide the others: its owner is told the
    /// name, and can delete the record. No record is written over because it cannot be read. `read` returns nil for a
    /// record that it does not understand.
    package func records<Record: Sendable>(
        in space: StoreSpace,
        prefix: String = "",
        _ read: (_ name: String, _ content: borrowing Secret) -> Record?
    ) throws(Failure) -> Records<Record> {
        var records = Records<Record>()
        for name in try names(in: space, prefix: prefix) {
            let record: Record?
            do throws(Failure) {
                guard let content = try value(name, in: space)?.take() else {
                    // A name that is listed and not found has other bytes than were written.
                    records.unreadable.append(name)
                    continue
                }
                record = read(name, content)
            } catch {
                guard error.code == .storeDamaged else { throw error }
                record = nil
            }
            if let record { records.good.append((name, record)) } else { records.unreadable.append(name) }
        }
        return records
    }

    /// Returns the names of a space that begin with `prefix`, in alphabetical order.
    package func names(in space: StoreSpace, prefix: String = "") throws(Failure) -> [String] {
        var names: [String] = []
        try database.run(
            "SELECT name FROM entry WHERE space = ? AND name >= ? AND name < ? ORDER BY name",
            // The upper bound: no name has the last code point of Unicode after the prefix.
            [.text(space.name), .text(prefix), .text(prefix + "\u{10FFFF}")]
        ) { names.append($0.text(0)) }
        return names
    }

    // MARK: Sealing

    private static let nonceCount = 12
    /// The first byte of each value, because `AuthenticatedAES` encrypts at least one byte.
    private static let format: UInt8 = 1

    private static func header(_ space: String, _ name: String) -> [UInt8] {
        Array("badged store 1".utf8) + [0] + Array(space.utf8) + [0] + Array(name.utf8)
    }

    func write(_ value: borrowing Secret, _ space: String, _ name: String) throws(Failure) {
        guard value.count <= Store.maximumValueCount, (1...Store.maximumNameCount).contains(name.utf8.count),
            !name.utf8.contains(0)
        else { throw .storeTooLong }
        let sealed = try translating(Failure.crypto) { () throws(CryptoError) in
            let nonce = try Random.bytes(Self.nonceCount)
            let plain = Secret([Self.format]).appending(value)
            let header = Self.header(space, name)
            return nonce + (try AuthenticatedAES.gcm.seal(plain, key: key, nonce: nonce, authenticating: header))
        }
        try remove(space, name)
        try database.run(
            "INSERT INTO entry (space, name, sealed) VALUES (?, ?, ?)",
            [.text(space), .text(name), .bytes(sealed)]
        )
    }

    func read(_ space: String, _ name: String) throws(Failure) -> SecretBox? {
        var found: [UInt8]?
        try database.run(
            "SELECT sealed FROM entry WHERE space = ? AND name = ?",
            [.text(space), .text(name)]
        ) { found = $0.bytes(0) }
        guard let sealed = found else { return nil }
        guard sealed.count > Self.nonceCount else { throw .storeDamaged(name) }
        // A lack of memory says nothing about the value.
        let opened = try translating(Failure.crypto) { () throws(CryptoError) in
            try AuthenticatedAES.gcm.open(
                Array(sealed[Self.nonceCount...]),
                key: key,
                nonce: Array(sealed.prefix(Self.nonceCount)),
                authenticating: Self.header(space, name)
            )
        }
        guard let plain = opened, plain.withBytes({ $0.first }) == Self.format, let value = plain.part(1..<plain.count)
        else { throw .storeDamaged(name) }
        return SecretBox(value)
    }
}

/// The records of a space of the store, for GET_HEALTH.
package struct RecordKind: Sendable {
    let space: StoreSpace
    /// What the records are, in the plural.
    package let name: Phrase
    /// How a person deletes one.
    package let remedy: Phrase
    let isReadable: @Sendable (borrowing Secret) -> Bool

    package init(
        _ space: StoreSpace,
        _ name: Phrase,
        remedy: Phrase,
        isReadable: @escaping @Sendable (borrowing Secret) -> Bool = { _ in true }
    ) {
        self.space = space
        self.name = name
        self.remedy = remedy
        self.isReadable = isReadable
    }
}

extension Store {
    /// Returns the names of the records of this kind that are damaged, or that a later version has written.
    package func unreadable(_ kind: RecordKind) throws(Failure) -> [String] {
        try transaction { values throws(Failure) in
            try values.records(in: kind.space) { _, content in kind.isReadable(content) ? true : nil }.unreadable
        }
    }
}

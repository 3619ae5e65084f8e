// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
package import Secrets
package import TPM

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
    /// The source of the key with which the values are sealed.
    package nonisolated let keySource: StoreKeySource

    /// The version of the tables.
    private static let version = 1
    package static let maximumNameCount = 255
    package static let maximumValueCount = 65_535

    /// Opens the store of a folder, and makes folder, database and key file if they are missing.
    ///
    /// `folder` is the state folder of the daemon. `credentials` is `$CREDENTIALS_DIRECTORY`, where systemd puts the key;
    /// without a credential the key file in the folder is used. With `tpm` a new key is sealed by the TPM. Blocks; see
    /// `open`.
    package init(folder: String, credentials: String? = nil, tpm: TPM? = nil) throws(StoreError) {
        mkdir(folder, 0o700)
        let path = Self.path(folder)
        try PrivateFile.prepare(path)
        let database = try Database(path: path)
        let places = StoreKeyPlaces(folder: folder, credentials: credentials, tpm: tpm)
        try database.run("BEGIN EXCLUSIVE")
        var version = 0
        try database.run("PRAGMA user_version") { version = $0.number(0) }
        guard version <= Self.version else { throw .newer }
        let found: StoreKey
        if let known = try places.read() {
            found = known
            if version > 0, try !Self.opens(database, found.key) { throw .wrongKey(found.path) }
        } else {
            guard version == 0 else { throw .keyMissing(places.file) }
            found = try places.create()
        }
        if version == 0 { try Self.makeTables(database, found.key) }
        keySource = found.source
        key = found.key.clone()
        try database.run("COMMIT")
        self.database = database
    }

    /// Opens a store as `init` does, on the thread of the TPM, which may take seconds.
    package static func open(
        folder: String,
        credentials: String?,
        tpm: TPM?
    ) async throws(StoreError) -> Store {
        guard let tpm else { return try Store(folder: folder, credentials: credentials) }
        let result: Result<Store, StoreError>
        do throws(TPMError) {
            result = try await tpm.onThread {
                do throws(StoreError) {
                    return .success(try Store(folder: folder, credentials: credentials, tpm: tpm))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw .tpm(error)
        }
        return try result.get()
    }

    private static func path(_ folder: String) -> String { "\(folder)/store.db" }

    /// Whether a store was made in the folder before.
    package static func exists(in folder: String) -> Bool { access(path(folder), F_OK) == 0 }

    private static let checkSpace = ""
    private static let checkName = "check"

    private static func makeTables(_ database: Database, _ key: borrowing Secret) throws(StoreError) {
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

    /// Whether the key opens the value that was sealed when the store was made.
    private static func opens(_ database: Database, _ key: borrowing Secret) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try StoreTransaction(database, key.clone()).read(checkSpace, checkName) != nil
        } catch .damaged {
            return false
        }
    }

    /// Runs `body` with all its changes or none.
    package func transaction<Result: Sendable>(
        _ body: @Sendable (borrowing StoreTransaction) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try database.run("BEGIN IMMEDIATE")
        do throws(StoreError) {
            let result = try body(StoreTransaction(database, key.clone()))
            try database.run("COMMIT")
            return result
        } catch {
            try? database.run("ROLLBACK")
            throw error
        }
    }

    /// Returns a value; nil if there is none.
    package func value(_ name: String, in space: StoreSpace) throws(StoreError) -> SecretBox? {
        try transaction { values throws(StoreError) in try values.value(name, in: space) }
    }

    package func set(_ name: String, in space: StoreSpace, to value: SecretBox) throws(StoreError) {
        try transaction { values throws(StoreError) in try values.set(name, in: space, to: value) }
    }

    package func remove(_ name: String, in space: StoreSpace) throws(StoreError) {
        try transaction { values throws(StoreError) in try values.remove(name, in: space) }
    }

    /// Returns the names of a space in alphabetical order.
    package func names(in space: StoreSpace) throws(StoreError) -> [String] {
        try transaction { values throws(StoreError) in try values.names(in: space) }
    }
}

/// Reads and changes values inside one transaction.
package struct StoreTransaction: ~Copyable {
    private let database: Database
    private let key: Secret

    init(_ database: Database, _ key: consuming Secret) {
        self.database = database
        self.key = key
    }

    /// Returns a value; nil if there is none.
    /// - Throws: `.damaged` if something other than badged has changed the value.
    package func value(_ name: String, in space: StoreSpace) throws(StoreError) -> SecretBox? {
        try read(space.name, name)
    }

    /// Adds or replaces a value of at most 65 535 bytes. The content of the box is taken.
    package func set(_ name: String, in space: StoreSpace, to value: SecretBox) throws(StoreError) {
        guard let value = value.take() else { throw .library("the value was used before") }
        try write(value, space.name, name)
    }

    package func remove(_ name: String, in space: StoreSpace) throws(StoreError) {
        try database.run("DELETE FROM entry WHERE space = ? AND name = ?", [.text(space.name), .text(name)])
    }

    /// Returns the names of a space that begin with `prefix`, in alphabetical order.
    package func names(in space: StoreSpace, prefix: String = "") throws(StoreError) -> [String] {
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

    func write(_ value: borrowing Secret, _ space: String, _ name: String) throws(StoreError) {
        guard value.count <= Store.maximumValueCount, (1...Store.maximumNameCount).contains(name.utf8.count),
            !name.utf8.contains(0)
        else { throw .tooLong }
        let sealed: [UInt8]
        do throws(CryptoError) {
            let nonce = try Random.bytes(Self.nonceCount)
            let plain = Secret([Self.format]).appending(value)
            sealed =
                nonce
                + (try AuthenticatedAES.gcm.seal(
                    plain,
                    key: key,
                    nonce: nonce,
                    authenticating: Self.header(space, name)
                ))
        } catch {
            throw .library("cannot seal a value: \(error)")
        }
        try database.run(
            "INSERT OR REPLACE INTO entry (space, name, sealed) VALUES (?, ?, ?)",
            [.text(space), .text(name), .bytes(sealed)]
        )
    }

    func read(_ space: String, _ name: String) throws(StoreError) -> SecretBox? {
        var found: [UInt8]?
        try database.run(
            "SELECT sealed FROM entry WHERE space = ? AND name = ?",
            [.text(space), .text(name)]
        ) { found = $0.bytes(0) }
        guard let sealed = found else { return nil }
        guard sealed.count > Self.nonceCount else { throw .damaged(name) }
        do throws(CryptoError) {
            let plain = try AuthenticatedAES.gcm.open(
                Array(sealed[Self.nonceCount...]),
                key: key,
                nonce: Array(sealed.prefix(Self.nonceCount)),
                authenticating: Self.header(space, name)
            )
            guard let plain, plain.withBytes({ $0.first }) == Self.format, let value = plain.part(1..<plain.count)
            else {
                throw CryptoError.invalidKey
            }
            return SecretBox(value)
        } catch {
            throw .damaged(name)
        }
    }
}

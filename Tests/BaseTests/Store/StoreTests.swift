// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Foundation
import Store
import Synchronization
import TestSupport
import Testing
import Text

private let cards = StoreSpace("cards")
private let users = StoreSpace("users")

/// A folder that is removed with its content.
private final class Folder: Sendable {
    let path = NSTemporaryDirectory() + "badged-store-" + UUID().uuidString
    var database: String { path + "/store.db" }
    var key: String { path + "/store.key" }
    /// The places of a key without a credential.
    var keys: String { "\(path)/store.tpm, \(key)" }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func content(_ file: String) -> [UInt8] { Array(FileManager.default.contents(atPath: file) ?? Data()) }

    func writeKey(_ bytes: [UInt8]) throws {
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        try #require(FileManager.default.createFile(atPath: key, contents: Data(bytes), attributes: attributes))
    }

    func mode(_ file: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int)
    }
}

@Suite("Store")
struct StoreTests {
    private let folder = Folder()

    @Test("values are there after the store is opened again")
    func durable() async throws {
        do {
            let store = try Store(folder: folder.path)
            try await store.set("b", in: cards, to: box("second"))
            try await store.set("a", in: cards, to: box("first"))
            try await store.set("a", in: users, to: box(""))
        }
        let store = try Store(folder: folder.path)
        #expect(try await store.names(in: cards) == ["a", "b"])
        #expect(bytes(try await store.value("a", in: cards)) == Array("first".utf8))
        #expect(bytes(try await store.value("a", in: users)) == [])
        #expect(try await store.value("c", in: cards) == nil)
        try await store.set("a", in: cards, to: box("third"))
        try await store.remove("b", in: cards)
        #expect(bytes(try await store.value("a", in: cards)) == Array("third".utf8))
        #expect(try await store.names(in: cards) == ["a"])
    }

    @Test("files are private, and no value is in them in clear")
    func privateFiles() async throws {
        let store = try Store(folder: folder.path)
        try await store.set("card", in: cards, to: box("a very secret value"))
        #expect(try folder.mode(folder.path) == 0o700)
        #expect(try folder.mode(folder.database) == 0o600)
        #expect(try folder.mode(folder.key) == 0o600)
        #expect(folder.content(folder.key).count == 32)
        let text = String(decoding: folder.content(folder.database), as: UTF8.self)
        #expect(text.contains("card"))
        #expect(!text.contains("secret value"))
    }

    @Test(
        "a value is not kept in a file that was removed or replaced while the store uses it",
        arguments: [false, true]
    )
    func removedFile(isReplaced: Bool) async throws {
        let store = try Store(folder: folder.path)
        try await store.set("a", in: cards, to: box("first"))
        try FileManager.default.removeItem(atPath: folder.database)
        if isReplaced { try Data().write(to: URL(filePath: folder.database)) }
        let error = await #expect(throws: Failure.self) { try await store.set("b", in: cards, to: box("second")) }
        #expect(error?.code == .storeUnavailable && error?.message.description.contains("was removed") == true)
        await #expect(throws: Failure.self) { _ = try await store.names(in: cards) }
    }

    @Test("a transaction changes everything or nothing")
    func transaction() async throws {
        let store = try Store(folder: folder.path)
        try await store.set("a", in: cards, to: box("old"))
        await #expect(throws: Failure.storeTooLong) {
            try await store.transaction { values throws(Failure) in
                try values.set("a", in: cards, to: box("new"))
                try values.remove("a", in: users)
                try values.set("", in: cards, to: box("no name"))
            }
        }
        #expect(bytes(try await store.value("a", in: cards)) == Array("old".utf8))
        let count = try await store.transaction { values throws(Failure) in
            try values.set("b", in: cards, to: box("new"))
            return try values.names(in: cards).count
        }
        #expect(count == 2)
    }

    /// The names whose sealed values have left their beginning, middle or end in a file of the folder.
    private func leftovers(of values: [String: [UInt8]]) throws -> [String] {
        var found: Set<String> = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let content = folder.content(folder.path + "/" + name)
            for (name, value) in values {
                let isFound = [0, (value.count - 16) / 2, value.count - 16].contains { start in
                    ctestsupport_contains(content, content.count, Array(value[start..<start + 16]), 16) != 0
                }
                if isFound { found.insert(name) }
            }
        }
        return found.sorted()
    }

    @Test("a value that was removed or replaced is in no file, not even sealed")
    func wiping() async throws {
        do {
            let store = try Store(folder: folder.path)
            for number in 0..<300 {
                let text = String(repeating: "\(number)", count: [10, 60, 300, 1500, 9000][number % 5])
                try await store.set("\(number * 7919 % 300)", in: cards, to: box(text))
            }
        }
        var values = try SQLiteFile(folder.database).sealedValues()
        values["check"] = nil
        try #require(values.count == 300)
        let names = values.keys.sorted()
        do {
            let store = try Store(folder: folder.path)
            for (index, name) in names.enumerated() where index % 3 == 0 { try await store.remove(name, in: cards) }
            for (index, name) in names.enumerated() where index % 3 == 1 {
                try await store.set(name, in: cards, to: box("new"))
            }
            // The store is open: the files are as an attacker finds them.
            let gone = Set(names.enumerated().filter { $0.offset % 3 < 2 }.map(\.element))
            #expect(try leftovers(of: values.filter { gone.contains($0.key) }) == [])
            #expect(try leftovers(of: values).count == 100)
            for name in names { try await store.remove(name, in: cards) }
            #expect(try leftovers(of: values) == [])
            #expect(await store.wipeFault == nil)
        }
        // What an earlier version has left in the journal is wiped at the next start.
        let value = try #require(values[names[0]])
        let journal = [UInt8](repeating: 0, count: 512) + value
        try Data(journal).write(to: URL(filePath: folder.database + "-journal"))
        let store = try Store(folder: folder.path)
        _ = try await store.names(in: cards)
        #expect(try leftovers(of: values) == [])
    }

    @Test("records that cannot be read do not hide the others, and can be removed")
    func unreadable() async throws {
        do {
            let store = try Store(folder: folder.path)
            for name in ["a", "b", "c", "d"] { try await store.set(name, in: cards, to: box("1")) }
            try await store.set("b", in: cards, to: box("2"))
        }
        try change("UPDATE entry SET sealed = x'0011' WHERE name = 'c'")
        let store = try Store(folder: folder.path)
        let kind = RecordKind(cards, "cards", remedy: "") { $0.withBytes { $0.first == 0x31 } }
        #expect(try await store.unreadable(kind) == ["b", "c"])
        let good = try await store.transaction { values throws(Failure) in
            try values.records(in: cards) { name, _ in name == "b" ? nil : name }.good.map(\.record)
        }
        #expect(good == ["a", "d"])
        try await store.remove("c", in: cards)
        #expect(try await store.unreadable(kind) == ["b"])
    }

    @Test("a folder that other users can change, and a FIFO in place of a file, are refused")
    func exposedFolder() throws {
        do { _ = try Store(folder: folder.path) }
        chmod(folder.path, 0o777)
        #expect(throws: Failure.storeExposed(folder.path)) { _ = try Store(folder: folder.path) }
        chmod(folder.path, 0o755)
        for path in [folder.key, folder.database] {
            try FileManager.default.removeItem(atPath: path)
            #expect(mkfifo(path, 0o600) == 0)
            #expect(throws: Failure.storeUnavailable("cannot use \(path): it is not a plain file")) {
                _ = try Store(folder: folder.path)
            }
        }
    }

    @Test("a FIFO or a folder in place of the journal is refused, and nothing waits for it", arguments: [true, false])
    func strangeJournal(isFIFO: Bool) throws {
        do { _ = try Store(folder: folder.path) }
        for suffix in ["-journal", "-wal"] {
            let path = folder.database + suffix
            unlink(path)
            #expect((isFIFO ? mkfifo(path, 0o600) : mkdir(path, 0o700)) == 0)
            #expect(throws: Failure.storeUnavailable("cannot use \(path): it is not a plain file")) {
                _ = try Store(folder: folder.path)
            }
            #expect(remove(path) == 0)
        }
        _ = try Store(folder: folder.path)
    }

    @Test("names are found by their beginning")
    func prefix() async throws {
        let store = try Store(folder: folder.path)
        for name in ["1/b", "1", "10/a", "1/a", "1/é", "2/a"] { try await store.set(name, in: cards, to: box("")) }
        try await store.set("1/z", in: users, to: box(""))
        let found = try await store.transaction { values throws(Failure) in
            try ["1/", "", "3"].map { prefix throws(Failure) in try values.names(in: cards, prefix: prefix) }
        }
        #expect(found == [["1/a", "1/b", "1/é"], ["1", "1/a", "1/b", "1/é", "10/a", "2/a"], []])
    }

    @Test("names and values that are too long are refused")
    func limits() async throws {
        let store = try Store(folder: folder.path)
        let long = SecretBox(Secret([UInt8](repeating: 1, count: 65_536)))
        await #expect(throws: Failure.storeTooLong) { try await store.set("a", in: cards, to: long) }
        await #expect(throws: Failure.storeTooLong) {
            try await store.set(String(repeating: "n", count: 256), in: cards, to: box("x"))
        }
        let longest = SecretBox(Secret([UInt8](repeating: 1, count: 65_535)))
        try await store.set(String(repeating: "n", count: 255), in: cards, to: longest)
        #expect(try await store.names(in: cards).count == 1)
    }

    @Test("a second process cannot use the store at the same time")
    func exclusive() throws {
        let store = try Store(folder: folder.path)
        #expect(throws: Failure.storeInUse(folder.database)) { _ = try Store(folder: folder.path) }
        withExtendedLifetime(store) {}
    }

    @Test("another key, no key and a short key are refused, and nothing is changed")
    func wrongKey() async throws {
        do { try await Store(folder: folder.path).set("a", in: cards, to: box("value")) }
        let right = folder.content(folder.key)
        let database = folder.content(folder.database)
        func replaceKey(_ bytes: [UInt8]?) throws {
            try FileManager.default.removeItem(atPath: folder.key)
            guard let bytes else { return }
            try folder.writeKey(bytes)
        }
        try replaceKey(right.reversed())
        #expect(throws: Failure.storeUnopened(folder.key)) { _ = try Store(folder: folder.path) }
        try replaceKey(Array(right.dropLast()))
        #expect(throws: Failure.storeWrongKey(folder.key)) { _ = try Store(folder: folder.path) }
        try replaceKey(right + [0])
        #expect(throws: Failure.storeWrongKey(folder.key)) { _ = try Store(folder: folder.path) }
        try replaceKey(nil)
        #expect(throws: Failure.storeKeyMissing(folder.keys)) { _ = try Store(folder: folder.path) }
        #expect(!FileManager.default.fileExists(atPath: folder.key))
        #expect(folder.content(folder.database) == database)
        try folder.writeKey(right)
        let store = try Store(folder: folder.path)
        #expect(bytes(try await store.value("a", in: cards)) == Array("value".utf8))
    }

    @Test("if the record that checks the key is damaged or missing, nobody says that the key is wrong")
    func damagedCheck() throws {
        do { _ = try Store(folder: folder.path) }
        for statement in ["UPDATE entry SET sealed = zeroblob(29)", "DELETE FROM entry"] {
            try change(statement + " WHERE name = 'check'")
            let error = #expect(throws: Failure.self) { _ = try Store(folder: folder.path) }
            #expect(error?.code == .storeWrongKey)
            #expect(error?.text.description.contains("or the record that checks it is damaged") == true)
        }
    }

    @Test("the key of a systemd credential comes before the key file")
    func credential() async throws {
        let credentials = folder.path + "/credentials"
        try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        let key = Data((0..<32).map { UInt8($0) })
        try key.write(to: URL(filePath: credentials + "/" + StoreKeyPlaces.credentialName))
        do {
            let store = try Store(folder: folder.path, credentials: credentials)
            try await store.set("a", in: cards, to: box("value"))
        }
        #expect(!FileManager.default.fileExists(atPath: folder.key))
        #expect(throws: Failure.storeKeyMissing(folder.keys)) { _ = try Store(folder: folder.path) }
        let store = try Store(folder: folder.path, credentials: credentials)
        #expect(bytes(try await store.value("a", in: cards)) == Array("value".utf8))
    }

    @Test("the key is sealed by a TPM, which must be the same one later")
    func tpm() async throws {
        let (device, stranger) = (try await SoftwareTPM(), try await SoftwareTPM())
        let tpm = TPM(device.path, timeLimit: .seconds(240))
        do {
            let store = try await Store.open(folder: folder.path, credentials: nil, tpm: tpm)
            #expect(store.keySource == .tpm)
            try await store.set("a", in: cards, to: box("value"))
        }
        let sealed = folder.path + "/store.tpm"
        #expect(try folder.mode(sealed) == 0o600 && !FileManager.default.fileExists(atPath: folder.key))
        let before = folder.content(folder.database)
        // A key beside it does not replace the one in the TPM.
        try folder.writeKey([UInt8](repeating: 1, count: 32))
        #expect(throws: Failure.tpm(.foreign).sealing) {
            _ = try Store(folder: folder.path, tpm: TPM(stranger.path, timeLimit: .seconds(240)))
        }
        #expect(throws: Failure.tpm(.notAllowed).sealing) { _ = try Store(folder: folder.path) }
        device.stop()
        #expect(throws: Failure.self) { _ = try Store(folder: folder.path, tpm: tpm) }
        #expect(folder.content(folder.database) == before)
        try await device.start()
        for broken in [[], [2], [1], [1] + [UInt8](repeating: 3, count: 190), [UInt8](repeating: 1, count: 1100)] {
            let right = folder.content(sealed)
            try Data(broken as [UInt8]).write(to: URL(filePath: sealed))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: sealed)
            #expect(throws: Failure.self, "\(broken.count)") { _ = try Store(folder: folder.path, tpm: tpm) }
            try Data(right).write(to: URL(filePath: sealed))
        }
        let store = try await Store.open(folder: folder.path, credentials: nil, tpm: tpm)
        #expect(bytes(try await store.value("a", in: cards)) == Array("value".utf8))
    }

    @Test("a store with a key file keeps it; without a TPM that is required no store is made")
    func keyFileAndTPM() async throws {
        do { _ = try Store(folder: folder.path) }
        let device = try await SoftwareTPM()
        #expect(try Store(folder: folder.path, tpm: TPM(device.path, timeLimit: .seconds(240))).keySource == .file)
        let other = Folder()
        let missing = TPM("/nowhere/tpm", isRequired: true)
        let error = Failure.tpm(.unavailable("/nowhere/tpm: No such file or directory")).sealing
        #expect(throws: error) { _ = try Store(folder: other.path, tpm: missing) }
        #expect(!FileManager.default.fileExists(atPath: other.key))
        #expect(try Store(folder: other.path, tpm: TPM("/nowhere/tpm")).keySource == .file)
    }

    @Test("concurrent requests for a store that is being opened get the same store")
    func openedOnce() async throws {
        let (arrivals, arrived) = AsyncStream<Void>.makeStream()
        let (gate, door) = AsyncStream<Void>.makeStream()
        let state = StateStore { [folder] () async throws(Failure) in
            arrived.yield()
            for await _ in gate {}
            return try Store(folder: folder.path)
        }
        async let stores = withTaskGroup(of: Store?.self) { group in
            for _ in 0..<8 { group.addTask { try? await state.required() } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for await _ in arrivals { break }
        door.finish()
        let found = await stores
        #expect(found.count == 8 && found.allSatisfy { $0 != nil && $0 === found[0] })
    }

    @Test("a failure to open the store is reported once, until it is another one")
    func reportedOnce() async throws {
        let attempts = Mutex(0)
        let reports = Mutex<[Phrase]>([])
        let state = StateStore(failed: { failure in reports.withLock { $0.append(failure.text) } }) {
            () async throws(Failure) in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            throw .storeUnavailable(attempt <= 3 ? "the first" : "another")
        }
        for _ in 0..<6 {
            await #expect(throws: Failure.self) { _ = try await state.opened() }
        }
        #expect(attempts.withLock { $0 } == 6)
        let expected: [Phrase] = ["the first", "another"]
        #expect(reports.withLock { $0 } == expected)
    }

    @Test("files that other users may use are refused", arguments: ["store.db", "store.key"])
    func exposed(name: String) throws {
        do { _ = try Store(folder: folder.path) }
        let path = folder.path + "/" + name
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        #expect(throws: Failure.storeExposed(path)) { _ = try Store(folder: folder.path) }
    }

    @Test("a database that is gone or empty is not replaced while its key is there", arguments: [false, true])
    func emptied(isThere: Bool) throws {
        do { _ = try Store(folder: folder.path) }
        let key = folder.content(folder.key)
        try FileManager.default.removeItem(atPath: folder.database)
        if isThere {
            let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
            try #require(FileManager.default.createFile(atPath: folder.database, contents: nil, attributes: attributes))
        }
        #expect(throws: Failure.storeEmpty(folder.database, key: folder.key)) { _ = try Store(folder: folder.path) }
        #expect(folder.content(folder.key) == key && folder.content(folder.database).isEmpty)
        try FileManager.default.removeItem(atPath: folder.key)
        _ = try Store(folder: folder.path)
    }

    @Test("a store whose making was interrupted after its key was written is made")
    func interrupted() async throws {
        do { _ = try Store(folder: folder.path) }
        try change("DROP TABLE entry")
        try change("PRAGMA user_version = -1")
        do { try await Store(folder: folder.path).set("a", in: cards, to: box("value")) }
        #expect(bytes(try await Store(folder: folder.path).value("a", in: cards)) == Array("value".utf8))
    }

    @Test("a damaged database is refused and stays as it is, so that its records can be saved")
    func damagedPage() async throws {
        do {
            let store = try Store(folder: folder.path)
            for number in 0..<60 { try await store.set("\(number)", in: cards, to: box("value \(number)")) }
        }
        let right = folder.content(folder.database)
        // The lowest bit of the number of cells, and of the child at the right, of each page.
        for place in stride(from: 4096, to: right.count, by: 4096).flatMap({ [$0 + 4, $0 + 11] }) {
            var damaged = right
            damaged[place] ^= 1
            try Data(damaged).write(to: URL(filePath: folder.database))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.database)
            do {
                let names = try await Store(folder: folder.path).names(in: cards)
                #expect(names.count == 60, "byte \(place)")
            } catch {
                #expect(error.code == .storeDamaged, "byte \(place): \(error)")
                #expect(folder.content(folder.database) == damaged)
            }
        }
    }

    @Test("a link in the place of a file is refused", arguments: ["store.db", "store.key"])
    func link(name: String) throws {
        do { _ = try Store(folder: folder.path) }
        let path = folder.path + "/" + name
        try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".moved")
        #expect(throws: Failure.self) { _ = try Store(folder: folder.path) }
    }

    @Test("values that were exchanged or changed in the file are refused")
    func damaged() async throws {
        do {
            let store = try Store(folder: folder.path)
            try await store.set("a", in: cards, to: box("first"))
            try await store.set("b", in: cards, to: box("other"))
        }
        try change(
            """
            UPDATE entry SET sealed = (SELECT sealed FROM entry WHERE space = 'cards' AND name = 'b')
            WHERE space = 'cards' AND name = 'a'
            """
        )
        do {
            let store = try Store(folder: folder.path)
            await #expect(throws: Failure.storeDamaged("a")) { _ = try await store.value("a", in: cards) }
            #expect(bytes(try await store.value("b", in: cards)) == Array("other".utf8))
        }
        try change("UPDATE entry SET sealed = x'00' WHERE name = 'b'")
        let store = try Store(folder: folder.path)
        await #expect(throws: Failure.storeDamaged("b")) { _ = try await store.value("b", in: cards) }
    }

    @Test("a store of a later version is refused")
    func newer() throws {
        do { _ = try Store(folder: folder.path) }
        try change("PRAGMA user_version = 2")
        #expect(throws: Failure.storeNewer) { _ = try Store(folder: folder.path) }
    }

    @Test("a file that is no database is refused")
    func noDatabase() throws {
        do { _ = try Store(folder: folder.path) }
        let handle = try #require(FileHandle(forWritingAtPath: folder.database))
        handle.write(Data("this is no database, and never was one".utf8))
        try handle.close()
        #expect(throws: Failure.self) { _ = try Store(folder: folder.path) }
    }

    @Test("a folder that cannot be made is an error that names the file")
    func noFolder() {
        let path = "/proc/none/store.db"
        let reason = "cannot use \(path): No such file or directory"
        #expect(throws: Failure.storeUnavailable("\(reason)")) { _ = try Store(folder: "/proc/none") }
    }

    /// Changes the database as another program would.
    private func change(_ sql: String) throws {
        let database = try SQLiteFile(folder.database)
        try #require(database.run(sql))
    }
}

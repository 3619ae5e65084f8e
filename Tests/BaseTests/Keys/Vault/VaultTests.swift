// SPDX-License-Identifier: GPL-3.0-or-later
import CSQLite
import Crypto
import Foundation
import Store
import TestSupport
import Testing
import Text
import Vault

/// Where the private parts of the keys are, and what seals the key of the store.
private let both = KeyRecord.Protection.allCases

@Suite("Vault", .timeLimit(.minutes(5)))
struct VaultTests {
    private func newKey(_ vault: Vault, _ uid: UInt32 = 1) async throws -> KeyRecord {
        try await vault.makeKey(of: uid, origin: .created) { key in
            key.isActive = true
            key.label = "front door"
        }
    }

    private func newCodes(_ vault: Vault, _ codes: OneTimeCodes, _ secret: String) async throws -> KeyRecord {
        try await vault.addCodes(codes, secret: box(secret), counter: 0, of: 1) { $0.isActive = true }
    }

    @Test("a key signs after the vault is opened again, and its record is the same", arguments: both)
    func durable(_ place: KeyRecord.Protection) async throws {
        let bench = try await VaultBench(place)
        let record: KeyRecord
        do {
            let vault = bench.opened()
            #expect(try await vault.endpoint(of: 1) == nil)
            _ = try await vault.setUp(1)
            record = try await newKey(vault)
        }
        let vault = bench.opened()
        #expect(try await vault.keys(of: 1) == [record])
        #expect(record.protection == place)
        #expect(try await vault.keySource() == (place == .tpm ? .tpm : .file))
        let key = try await vault.signingKey(record.id, of: 1)
        #expect(key.publicKey == record.publicKey)
        let message = Array("a message".utf8)
        let signature = try await key.sign(digest: try DigestAlgorithm.sha256.hash(message))
        let publicKey = try ECPublicKey(key.publicKey, on: .secp256r1)
        #expect(try ECDSA.verify(signature, of: message, with: publicKey, digest: .sha256))
        await #expect(throws: Failure.self) { try await key.sign(digest: message) }
    }

    @Test("while the setup of an endpoint is pending, only its invitation makes a key")
    func pendingSetUp() async throws {
        let bench = try await VaultBench()
        let vault = bench.opened()
        _ = try await vault.setUp(1, isPending: true)
        await #expect(throws: Failure.notSetUp) { try await newKey(vault) }
        let codes = try #require(OneTimeCodes(kind: .hotp, digits: 6, algorithm: .sha1, period: 30))
        await #expect(throws: Failure.notSetUp) { try await newCodes(vault, codes, "12345678901234567890") }
        let invited = try await vault.makeKey(of: 1, origin: .invitation) { $0.invitation = "code" }
        #expect(try await vault.keys(of: 1) == [invited])
        bench.close()
    }

    @Test("no user sees, uses or removes the keys of another user", arguments: both)
    func owners(_ place: KeyRecord.Protection) async throws {
        let bench = try await VaultBench(place)
        let vault = try await bench.setUp()
        // The name of one user is the beginning of the name of the other.
        _ = try await vault.setUp(11)
        let key = try await newKey(vault)
        #expect(try await vault.keys(of: 11).isEmpty)
        await #expect(throws: Failure.unknownKey) { try await vault.key(key.id, of: 11) }
        await #expect(throws: Failure.unknownKey) { try await vault.signingKey(key.id, of: 11) }
        await #expect(throws: Failure.unknownKey) { try await vault.delete(key.id, of: 11) }
        await #expect(throws: Failure.unknownKey) { try await vault.used(key.id, isModified: false, of: 11) }
        try await vault.removeAll(of: 11)
        #expect(try await vault.keys(of: 1) == [key])
        await #expect(throws: Failure.notSetUp) { try await vault.keys(of: 11) }
        await #expect(throws: Failure.unknownKey) { try await vault.key("../\(key.id)", of: 1) }
    }

    @Test("inactive keys are not used, revoked keys cannot be activated")
    func states() async throws {
        let bench = try await VaultBench()
        let vault = try await bench.setUp()
        let key = try await newKey(vault)
        #expect(try await vault.usableKeys(of: 1).map(\.record) == [key])
        #expect(try await vault.activate(key.id, false, of: 1).isActive == false)
        #expect(try await vault.usableKeys(of: 1).isEmpty)
        _ = try await vault.activate(key.id, true, of: 1)
        _ = try await vault.change(key.id, of: 1) { key in
            (key.isRevoked, key.isActive) = (true, false)
        }
        await #expect(throws: Failure.unfit("the issuer has revoked this key")) {
            try await vault.activate(key.id, true, of: 1)
        }
    }

    @Test("a pending key is forgotten when it is not saved in time")
    func pending() async throws {
        let bench = try await VaultBench()
        let vault = try await bench.setUp()
        let end = bench.clock.now + Vault.pendingTime
        let key = try await vault.makeKey(of: 1, origin: .wallet) { $0.pendingUntil = end }
        #expect(try await vault.usableKeys(of: 1).isEmpty)
        bench.clock.advance(Vault.pendingTime - 1)
        #expect(try await vault.keys(of: 1) == [key])
        bench.clock.advance(1)
        await #expect(throws: Failure.unknownKey) { try await vault.key(key.id, of: 1) }
        #expect(try await vault.keys(of: 1).isEmpty)
        // The clock was wrong for a while.
        bench.clock.advance(-Vault.pendingTime)
        #expect(try await vault.keys(of: 1) == [key])
        bench.clock.advance(Vault.pendingTime)
        // It stays until its place is needed.
        for _ in 1...Vault.maximumKeys { _ = try await newKey(vault) }
        await #expect(throws: Failure.self) { try await newKey(vault) }
        bench.clock.advance(-Vault.pendingTime)
        #expect(try await vault.keys(of: 1).count == Vault.maximumKeys)
        await #expect(throws: Failure.unknownKey) { try await vault.key(key.id, of: 1) }
    }

    @Test(
        "a record that cannot be read does not hide the others, is not used, and can be deleted",
        arguments: ["vault keys", "vault secrets", "vault data"] as [StaticString]
    )
    func unreadable(_ space: StaticString) async throws {
        let bench = try await VaultBench()
        let (bad, good): (KeyRecord, KeyRecord)
        do {
            let vault = try await bench.setUp()
            (bad, good) = (try await newKey(vault), try await newKey(vault))
            let tag = try #require(DataTag([0x85]))
            for key in [bad, good] { try await vault.setData(box("data"), tag, key: key.id, of: 1) }
        }
        let name = "1/\(bad.id)" + ("\(space)" == "vault data" ? "/85" : "")
        bench.close()
        _ = try await onceLeft { () throws(Failure) in try Store(folder: bench.folder) }
        var database: OpaquePointer?
        try #require(sqlite3_open(bench.database.path, &database) == SQLITE_OK)
        let change = "UPDATE entry SET sealed = x'00' WHERE space = '\(space)' AND name = '\(name)'"
        try #require(sqlite3_exec(database, change, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(database)
        let later = bench.opened()
        let list = try await later.keyList(of: 1)
        #expect(list.unreadable == ("\(space)" == "vault keys" ? [bad.id] : []))
        #expect(list.keys.contains(good))
        #expect(try await later.usableKeys(of: 1).contains { $0.record.id == good.id })
        #expect(try await later.dataCount(of: 1) > 0)
        _ = try await newKey(later)
        let store = try await bench.store.required()
        var count = 0
        for kind in Vault.recordKinds { count += try await store.unreadable(kind).count }
        #expect(count == 1)
        try await later.delete(bad.id, of: 1)
        #expect(try await later.keyList(of: 1).unreadable.isEmpty)
        for kind in Vault.recordKinds { #expect(try await store.unreadable(kind) == []) }
    }

    @Test("the last use of a key is counted")
    func uses() async throws {
        let bench = try await VaultBench()
        let vault = try await bench.setUp()
        let key = try await newKey(vault)
        #expect(try await vault.lastAuthentication(of: 1) == nil)
        try await vault.used(key.id, isModified: false, of: 1)
        try await vault.used(key.id, isModified: true, of: 1)
        let last = try #require(try await vault.lastAuthentication(of: 1))
        #expect(last.counter == 2 && last.isModified && last.key == key.id && last.time == bench.clock.now)
    }

    @Test("a damaged record of the last use is told, and the next use replaces it", arguments: [true, false])
    func damagedUse(isSealed: Bool) async throws {
        let bench = try await VaultBench()
        let id: String
        do {
            let vault = try await bench.setUp()
            id = try await newKey(vault).id
            try await vault.used(id, isModified: false, of: 1)
            let other = SecretBox(Secret(#"{"version":2}"#.utf8))
            if !isSealed { try await bench.store.required().set("1", in: StoreSpace("vault uses"), to: other) }
        }
        bench.close()
        if isSealed { try await damageRecord("1", in: "vault uses", of: bench.folder) }
        let vault = bench.opened()
        let store = try await bench.store.required()
        var names: [String] = []
        for kind in Vault.recordKinds { names += try await store.unreadable(kind) }
        #expect(names == ["1"])
        let error = await #expect(throws: Failure.self) { _ = try await vault.lastAuthentication(of: 1) }
        #expect(error?.code == .recordDamaged)
        try await vault.used(id, isModified: false, of: 1)
        #expect(try await vault.lastAuthentication(of: 1)?.counter == 1)
        for kind in Vault.recordKinds { #expect(try await store.unreadable(kind) == []) }
    }

    // MARK: One-time codes

    @Test("the codes of HOTP are those of RFC 4226, each once")
    func hotp() async throws {
        let bench = try await VaultBench()
        let codes = try #require(OneTimeCodes(kind: .hotp))
        let expected = [
            "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
        ]
        let vault = try await bench.setUp()
        let key = try await newCodes(vault, codes, "12345678901234567890")
        for (counter, code) in expected.enumerated() {
            #expect(try await vault.counter(key.id, of: 1) == UInt64(counter))
            #expect(try await vault.code(key.id, of: 1).text == code)
        }
        _ = try await vault.activate(key.id, false, of: 1)
        await #expect(throws: Failure.unfit("the key is not active")) { try await vault.code(key.id, of: 1) }
        #expect(try await vault.counter(key.id, of: 1) == 10)
    }

    @Test(
        "the codes of TOTP are those of RFC 6238",
        arguments: [
            (59, "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
            (1_111_111_111, "14050471", "67062674", "99943326"), (1_234_567_890, "89005924", "91819424", "93441116"),
            (2_000_000_000, "69279037", "90698825", "38618901"), (20_000_000_000, "65353130", "77737706", "47863826"),
        ]
    )
    func totp(_ time: Int, _ sha1: String, _ sha256: String, _ sha512: String) throws {
        let seed = String(repeating: "1234567890", count: 7)
        for (algorithm, count, code) in [
            (DigestAlgorithm.sha1, 20, sha1), (.sha256, 32, sha256), (.sha512, 64, sha512),
        ] {
            let codes = try #require(OneTimeCodes(kind: .totp, digits: 8, algorithm: algorithm))
            let secret = Secret(seed.utf8.prefix(count))
            #expect(try codes.code(secret, counter: codes.step(at: time)) == code)
        }
    }

    @Test("a secret is read from base 32 and from hexadecimal digits")
    func secretText() {
        func bytes(_ secret: consuming Secret?) -> [UInt8]? {
            guard let secret = consume secret else { return nil }
            return secret.withBytes { Array($0) }
        }
        #expect(bytes(SecretText.base32(Secret("MZXW6YTB OI====".utf8))) == Array("foobar".utf8))
        #expect(bytes(SecretText.base32(Secret("mzxw6ytboi".utf8))) == Array("foobar".utf8))
        #expect(bytes(SecretText.base32(Secret("MZXW\tYTB\r\nOI=\n".utf8))) == nil)
        #expect(bytes(SecretText.base32(Secret("MZXW6\tYTB\r\nOI\n".utf8))) == Array("foobar".utf8))
        #expect(bytes(SecretText.base32(Secret("MZXW1".utf8))) == nil)
        // RFC 4648, 6: 1 to 5 bytes have 2, 4, 5, 7 and 8 digits.
        for digits in 16...48 {
            let isLength = [0, 2, 4, 5, 7].contains(digits % 8)
            #expect((bytes(SecretText.base32(Secret(repeatElement(0x41, count: digits)))) != nil) == isLength)
        }
        #expect(bytes(SecretText.hex(Secret("00fF".utf8))) == [0, 0xFF])
        #expect(bytes(SecretText.hex(Secret("00f".utf8))) == nil)
        #expect(bytes(SecretText.hex(Secret("0g".utf8))) == nil)
    }

    // MARK: Data and limits

    @Test("a key has 32 KiB for its objects, which are deleted with the key")
    func data() async throws {
        let bench = try await VaultBench()
        let vault = try await bench.setUp()
        let key = try await newKey(vault)
        let (short, long) = (try #require(DataTag([0x85])), try #require(DataTag([0x9F, 0x31])))
        #expect(
            DataTag([0x9F]) == nil && DataTag([0x85, 0]) == nil && DataTag([]) == nil && DataTag([0x9F, 0x80]) == nil
        )
        let half = String(repeating: "x", count: Vault.maximumData / 2)
        try await vault.setData(box(half), short, key: key.id, of: 1)
        await #expect(throws: Failure.self) { try await vault.setData(box(half), long, key: key.id, of: 1) }
        try await vault.setData(box(String(half.dropLast(3))), long, key: key.id, of: 1)
        #expect(try await vault.dataCount(of: 1) == Vault.maximumData)
        try await vault.setData(box("y"), short, key: key.id, of: 1)
        #expect(bytes(try await vault.data(short, key: key.id, of: 1)) == Array("y".utf8))
        try await vault.setData(box(""), short, key: key.id, of: 1)
        #expect(try await vault.data(short, key: key.id, of: 1) == nil)
        try await vault.delete(key.id, of: 1)
        #expect(try await vault.dataCount(of: 1) == 0)
    }

    @Test("a user has 32 keys at most, each with 32 KiB")
    func limit() async throws {
        let bench = try await VaultBench()
        let vault = try await bench.setUp()
        _ = try await vault.setUp(2)
        let tag = try #require(DataTag([0x85]))
        let content = String(repeating: "x", count: Vault.maximumData - 1)
        for _ in 0..<32 {
            let key = try await newKey(vault)
            try await vault.setData(box(content), tag, key: key.id, of: 1)
        }
        await #expect(throws: Failure.self) { try await newKey(vault) }
        #expect(try await vault.dataCount(of: 1) == 32 * 32 * 1024)
        _ = try await newKey(vault, 2)
    }

    @Test("a key beyond the limit is refused before the TPM works")
    func limitBeforeTheTPM() async throws {
        let bench = try await VaultBench(.tpm)
        let vault = try await bench.setUp()
        let codes = try #require(OneTimeCodes(kind: .hotp, digits: 6, algorithm: .sha1, period: 30))
        for _ in 0..<Vault.maximumKeys { _ = try await newCodes(vault, codes, "12345678901234567890") }
        bench.device?.stop()
        let error = await #expect(throws: Failure.self) { try await newKey(vault) }
        #expect(error?.code == .full)
    }

    // MARK: Files

    @Test("the files of the store show no record without the file key", arguments: both)
    func sealed(_ place: KeyRecord.Protection) async throws {
        let bench = try await VaultBench(place)
        let vault = try await bench.setUp()
        let key = try await newKey(vault)
        let codes = try #require(OneTimeCodes(kind: .hotp))
        let otp = try await newCodes(vault, codes, "12345678901234567890")
        let tag = try #require(DataTag([0x85]))
        try await vault.setData(box("what the site has written"), tag, key: otp.id, of: 1)
        // SQLite keeps deleted rows in free pages, unless it wipes them.
        let old = try await newKey(vault)
        try await vault.delete(old.id, of: 1)
        let secrets = StoreSpace("vault secrets")
        let stored = try #require(bytes(try await bench.store.required().value("1/\(key.id)", in: secrets)))
        let publicKey = try #require(key.publicKey)
        let number = try #require(CredentialNumber(publicKey: publicKey, bits: 64))
        // Everything that was written, as it was written and as a text.
        let plain: [[UInt8]] = [
            stored, publicKey, number.bytes, Array("front door".utf8), Array("12345678901234567890".utf8),
            Array("what the site".utf8), Array("12345678901234567890".prefix(10).utf8), Array("created".utf8),
        ]
        for name in try FileManager.default.contentsOfDirectory(atPath: bench.folder) where name != "store.key" {
            let file = try Data(contentsOf: URL(filePath: bench.folder + "/" + name))
            for secret in plain {
                #expect(file.range(of: Data(secret)) == nil, "\(name)")
                #expect(file.range(of: Data(Hex.encode(secret).utf8)) == nil, "\(name)")
            }
        }
        // Without the key file a copy stays closed, and is not changed.
        let thief = bench.folder + "/thief"
        try FileManager.default.createDirectory(atPath: thief, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: bench.database.path, toPath: thief + "/store.db")
        let places = "\(thief)/store.tpm, \(thief)/store.key"
        #expect(throws: Failure.storeKeyMissing(places)) { _ = try Store(folder: thief) }
        #expect(try Data(contentsOf: URL(filePath: thief + "/store.db")) == Data(contentsOf: bench.database))
    }

    @Test("a TPM that is gone, cleared or forbidden is reported, and the vault is not changed")
    func faultsOfTheTPM() async throws {
        let bench = try await VaultBench(.tpm)
        let device = try #require(bench.device)
        let (first, second): (KeyRecord, KeyRecord)
        do {
            let vault = try await bench.setUp()
            (first, second) = (try await newKey(vault), try await newKey(vault))
            // The deletion of a key does not affect other keys.
            let third = try await newKey(vault)
            try await vault.delete(third.id, of: 1)
            #expect(try device.handles().isEmpty)
            let digest = [UInt8](repeating: 7, count: 32)
            device.stop()
            let key = try await vault.signingKey(first.id, of: 1)
            await #expect(throws: Failure.self) { try await key.sign(digest: digest) }
            // A badged that must not use the TPM has the record, but cannot sign.
            let other = Vault(bench.store)
            let forbidden = try await other.signingKey(first.id, of: 1)
            await #expect(throws: Failure.tpm(.notAllowed)) { try await forbidden.sign(digest: digest) }
            await #expect(throws: Failure.self) { try await newKey(vault) }
            // New keys need the TPM that has sealed the store, also if no TPM is required.
            let automatic = Vault(bench.store, tpm: TPM(device.path, timeLimit: .seconds(240)))
            await #expect(throws: Failure.self) { try await newKey(automatic) }
            try await device.start()
            for record in try await vault.keys(of: 1) {
                #expect(try await vault.signingKey(record.id, of: 1).sign(digest: digest).count == 64)
            }
        }
        bench.close()
        device.stop()
        await #expect(throws: Failure.self) { try await bench.opened().keys(of: 1) }
        try await device.start()
        #expect(Set(try await bench.opened().keys(of: 1).map(\.id)) == [first.id, second.id])
        bench.close()
        let before = try Data(contentsOf: bench.database)
        try device.clear()
        await #expect(throws: Failure.tpm(.foreign).sealing) { try await bench.opened().keys(of: 1) }
        await #expect(throws: Failure.tpm(.foreign).sealing) { try await bench.opened().setUp(2) }
        #expect(try Data(contentsOf: bench.database) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: bench.folder).sorted()
                == ["store.db", "store.db-journal", "store.tpm"]
        )
    }

    @Test("a broken store is reported and not replaced", arguments: both)
    func broken(_ place: KeyRecord.Protection) async throws {
        let bench = try await VaultBench(place)
        do { _ = try await newKeyIn(bench.opened()) }
        let before = Data(repeating: 0x55, count: 8192)
        try before.write(to: bench.database)
        await #expect(throws: Failure.self) { try await bench.opened().keys(of: 1) }
        #expect(try Data(contentsOf: bench.database) == before)
    }

    private func newKeyIn(_ vault: Vault) async throws -> KeyRecord {
        _ = try await vault.setUp(1)
        return try await newKey(vault)
    }

    @Test(
        "after kill -9 at any time every confirmed change is in the vault",
        arguments: (0..<12).map { (KeyRecord.Protection.software, $0) } + (0..<4).map { (.tpm, $0) }
    )
    func killed(_ place: KeyRecord.Protection, _ round: Int) async throws {
        let bench = try await VaultBench(place)
        let arguments = [bench.folder] + (bench.device.map { [$0.path] } ?? [])
        let program = try RunningProgram("badged-test-program", ["vault-writer"] + arguments, input: nil)
        // Different runs are killed after different lines, and at any point of the write behind them.
        let wanted = 6 + 3 * round
        #expect(await program.prints("code \(wanted / 4)\n", on: .output))
        program.signal(SIGKILL)
        _ = await program.exitCode
        // A TPM without a kernel before it keeps what the program has loaded, until it restarts.
        bench.device?.stop()
        try await bench.device?.start()
        let lines = program.text(.output).split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let vault = bench.opened()
        let otp = try #require(lines.first { $0[0] == "otp" }?[1])
        let code = try #require(lines.last { $0[0] == "code" }.flatMap { UInt64($0[1]) })
        #expect(try await vault.counter(otp, of: 1) > code)
        let tag = try #require(DataTag([0x85]))
        let data = try #require(lines.last { $0[0] == "data" }.flatMap { Int($0[2]) })
        let content = try #require(bytes(try await vault.data(tag, key: otp, of: 1)))
        let text = String(decoding: content, as: UTF8.self)
        #expect(try #require(Int(text.split(separator: " ")[1])) >= data)
        let ids = Set(try await vault.keys(of: 1).map(\.id))
        let deleted = Set(lines.filter { $0[0] == "deleted" }.map { $0[1] })
        #expect(ids.isDisjoint(with: deleted))
        if let last = lines.last, last[0] == "key" {
            // The next write, a deletion, may be durable without its line.
            #expect(ids.contains(last[1]) || ids.count == 1)
        }
    }
}

@Suite("Texts of keys")
struct KeyTextTests {
    @Test("numbers have a fixed width and keep leading zeros")
    func numbers() throws {
        var key = [UInt8](repeating: 0, count: 65)
        key[0] = 4
        key.replaceSubrange(22..<33, with: [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 1, 2])
        let views = CredentialNumber.views(of: key)
        #expect(views.map(\.bits) == [64, 75, 128, 200, 256])
        #expect(views[0].hex == "0000000000000102" && views[0].decimal == "258")
        #expect(views[1].hex == "07ff0000000000000102")
        #expect(views[4].bytes.count == 32)
        #expect(CredentialNumber(publicKey: Array(key.dropLast()), bits: 64) == nil)
        #expect(CredentialNumber(publicKey: key, bits: 0) == nil)
    }

    @Test(
        "base64url is that of RFC 4648",
        arguments: [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")]
    )
    func base64(_ plain: String, _ text: String) {
        #expect(Base64.url.encode(Array(plain.utf8)) == text)
        #expect(Base64.url.decode(text) == Array(plain.utf8))
        #expect(Base64.url.decode(text + "=") == nil)
    }

    @Test("bits that are left over, and single characters, are refused", arguments: ["Zh", "Z", "Zm9vY", "Zm9!"])
    func badBase64(_ text: String) { #expect(Base64.url.decode(text) == nil) }

    @Test("times are read as they are written")
    func dates() {
        #expect(DateText.text(0) == "1970-01-01T00:00:00Z")
        #expect(DateText.seconds("2026-11-22T10:00:01Z").map { DateText.text($0) } == "2026-11-22T10:00:01Z")
        for wrong in ["2026-02-30T00:00:00Z", "2026-11-22", "2026-11-22T10:00:01+", "2026-11-22 10:00:01Z"] {
            #expect(DateText.seconds(wrong) == nil)
        }
    }

    @Test("the code of a reader names site, reader and key")
    func readerCode() throws {
        let key = try ECPrivateKey(on: Curve.secp256r1.group).publicKey.uncompressed
        let site = "00112233-4455-6677-8899-aabbccddeeff"
        func text(_ key: String, site: String = site) -> [UInt8] {
            Array(
                #"{"siteUuid":"\#(site)","readerUuid":"ffeeddccbbaa99887766554433221100","publicKey":"\#(key)"}"#.utf8
            )
        }
        let code = try #require(ReaderCode(text(Hex.encode(key))))
        #expect(code.publicKey == key && Hex.encode(code.site) == "00112233445566778899aabbccddeeff")
        #expect(ReaderCode(text(Hex.encode(key.dropFirst()))) == code)
        #expect(ReaderCode(text(Hex.encode(key.dropLast() + [key[64] ^ 1]))) == nil)
        #expect(ReaderCode(text(Hex.encode(key), site: "00")) == nil)
        #expect(ReaderCode(Array("{}".utf8)) == nil && ReaderCode(Array("x".utf8)) == nil)
    }
}

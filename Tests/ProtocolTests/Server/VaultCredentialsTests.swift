// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import DoorFeature
import DoorOpening
import DoorReaders
import DoorTestSupport
import Foundation
import Scanners
import Store
import TestSupport
import Testing
import Text
import Vault

@Suite("Opening door readers with the keys of the vault", .timeLimit(.minutes(5)))
@Loop struct VaultCredentialsTests {
    private static let siteScalar = [UInt8](repeating: 5, count: 32)
    private static let site = [UInt8](repeating: 0x51, count: 16)
    private static let location = [UInt8](repeating: 0x10, count: 16)
    private static let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)

    private let vault: Vault
    private let credentials: VaultCredentials
    private let time = TestTime()
    private let scanner = ScriptedScanner()
    private let clock = ManualClock()
    private let connector = ModelConnector(ModelReader(signer: siteScalar))

    init() async throws {
        let folder = try TemporaryFolder()
        vault = Vault(
            StateStore(folder: folder, "/state"),
            now: { [time] in time.now }
        )
        credentials = VaultCredentials(vault)
        for uid: UInt32 in [1000, 1001] { _ = try await vault.setUp(uid) }
    }

    /// Makes an active key for the site of the reader.
    private func newKey(
        _ uid: UInt32,
        site: [UInt8] = site,
        readers: [[UInt8]] = [],
        until end: Int? = nil
    ) async throws -> KeyRecord {
        let siteKey = try ModelReader.key(Self.siteScalar).publicKey.uncompressed
        return try await vault.makeKey(of: uid, origin: .created) { key in
            (key.isActive, key.endDate) = (true, end)
            key.sites = [Site(id: site, publicKey: siteKey, readers: readers)]
        }
    }

    private func ids(_ uid: UInt32, _ key: String? = nil) async throws -> Set<String> {
        Set(try await credentials.credentials(uid: uid, keyID: key).map(\.id))
    }

    /// Opens the reader as this user, and returns the status.
    private func open(_ uid: UInt32, key: String? = nil) async throws -> String? {
        let server = try await TestServer(
            readers: 0,
            radio: Radio(scanners: [scanner], clock: clock),
            opener: DoorOpener(connector),
            credentials: credentials
        )
        let client = try server.connect(uid: uid)
        // The key signs in the loop of all tests, which may be busy.
        _ = try #require(await client.ask(#"{"cmd":"SET_TIMEOUTS","apduMs":60000}"#, "TIMEOUTS"))
        _ = try #require(await client.answer(to: #"{"cmd":"START_SCAN","lockServiceCodes":[]}"#))
        for _ in 0..<6 {
            clock.advance(100)
            scanner.receive([3, 3, 0xF0, 0xFF], from: Self.address, -35)
        }
        let member = key.map { #","key":"\#($0)""# } ?? ""
        let command = #"{"cmd":"OPEN_READER","reader":"pkoc-C0:00:00:00:00:01","openingType":"proximity"\#(member)}"#
        #expect(await client.ask(command, "OPENING") != nil)
        return await client.next("OPENING_RESULT")?["status"]?.string
    }

    @Test("a key opens for its user, and for no other user, also if that user names it")
    func owners() async throws {
        let key = try await newKey(1000)
        let other = try await newKey(1001, site: Array(repeating: 0x52, count: 16))
        #expect(try await ids(1000) == [key.id])
        #expect(try await ids(1001) == [other.id])
        #expect(try await ids(1001, key.id) == [])
        #expect(try await open(1001) == "keyNotFound")
        #expect(try await open(1001, key: key.id) == "keyNotFound")
        #expect(connector.reader.visitors.isEmpty)
        #expect(try await open(1000) == "success")
        #expect(connector.reader.visitors == [try #require(key.publicKey)])
        // The use counts for its user alone.
        #expect(try await vault.lastAuthentication(of: 1000)?.key == key.id)
        #expect(try await vault.lastAuthentication(of: 1001) == nil)
    }

    @Test("an inactive, a revoked, a pending and an expired key open nothing")
    func notUsable() async throws {
        let key = try await newKey(1000, until: time.now + 60)
        #expect(try await ids(1000) == [key.id])
        _ = try await vault.activate(key.id, false, of: 1000)
        #expect(try await ids(1000) == [])
        #expect(try await open(1000, key: key.id) == "keyNotFound")
        _ = try await vault.activate(key.id, true, of: 1000)
        time.advance(59)
        #expect(try await ids(1000) == [key.id])
        time.advance(1)
        #expect(try await ids(1000) == [])
        #expect(try await open(1000) == "keyNotFound")
        let end = time.now + 3600
        for change in [{ $0.isRevoked = true }, { $0.pendingUntil = end }] as [@Sendable (inout KeyRecord) -> Void] {
            let bad = try await newKey(1000)
            _ = try await vault.change(bad.id, of: 1000) { key in
                change(&key)
            }
            #expect(try await ids(1000) == [])
        }
        #expect(connector.connections == 0)
    }

    @Test("a key opens the readers in the list of its site, and no other reader of the site")
    func readers() async throws {
        let other = try await newKey(1000, readers: [Array(repeating: 0x11, count: 16)])
        #expect(try await open(1000) == "keyNotFound")
        #expect(connector.reader.visitors.isEmpty)
        let key = try await newKey(1000, readers: [Array(repeating: 0x11, count: 16), Self.location])
        #expect(try await open(1000, key: other.id) == "keyNotFound")
        #expect(try await open(1000) == "success")
        #expect(connector.reader.visitors == [try #require(key.publicKey)])
    }
}

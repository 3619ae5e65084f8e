// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedOrigoKeys
import Concurrency
import Crypto
import Dispatch
import DoorFeature
import DoorOpening
import DoorReaders
import DoorTestSupport
import Foundation
import HTTP
import Host
import KeyFeature
import Scanners
import Server
import ServerDoubles
import Store
import TestSupport
import Testing
import Text
import Vault

/// A server on a socket with keys and doors, an issuer, a scripted radio, a reader in software, and an app.
@Loop final class OrigoStage {
    nonisolated static let code = "AB12-CD34-EF56-GH78"
    private nonisolated static let siteScalar = [UInt8](repeating: 5, count: 32)
    private nonisolated static let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)
    nonisolated static let readerID = "pkoc-C0:00:00:00:00:01"

    let issuer: IssuerDouble
    let scanner = ScriptedScanner()
    let clock = ManualClock()
    let connector = ModelConnector(ModelReader(signer: siteScalar))
    let server: TestServer
    let path: String
    let app = SampleApp()

    init(permissions: Permissions = .all, options: [AnyHashable: Any] = [:]) async throws {
        issuer = try IssuerDouble()
        var settings = IssuerSettings()
        settings.place = .web(try #require(WebAddress(issuer.address)))
        settings.fingerprints = [issuer.fingerprint]
        let folder = try TemporaryFolder()
        let vault = Vault(StateStore(folder: folder, "/state"))
        server = try await TestServer(
            readers: 0,
            permissions: permissions,
            radio: Radio(scanners: [scanner], clock: clock),
            opener: DoorOpener(connector),
            credentials: VaultCredentials(vault),
            moreFeatures: { [settings] _ in [KeyFeature(vault, settings)] }
        )
        path = try server.listen()
        app.origoKeysManager = OrigoKeysManager(
            delegate: app,
            options: options,
            socketPath: path,
            callbackQueue: DispatchQueue(label: "callbacks")
        )
    }

    /// The next callback.
    func next() async -> String? { await app.next() }

    /// Makes a call of the app, which blocks, on a thread that nothing else needs.
    func call<Value: Sendable>(
        _ body: @escaping @Sendable (SampleApp, OrigoKeysManager) -> Value
    ) async throws -> Value {
        let (app, manager) = (app, try #require(app.origoKeysManager))
        return await withCheckedContinuation { continuation in
            DispatchQueue(label: "app").async { continuation.resume(returning: body(app, manager)) }
        }
    }

    /// Makes the endpoint with a key for the site of the reader.
    func setUp() async throws {
        let siteKey = try ModelReader.key(Self.siteScalar).publicKey.uncompressed
        let site = JSON.object([
            .init("siteId", .string(String(repeating: "51", count: 16))),
            .init("siteKey", .string(Hex.encode(siteKey))),
        ])
        issuer.invite(Self.code, ["label": .string("main building"), "sites": .array([site])])
        try await call { $1.setupEndpoint(Self.code) }
        #expect(await next() == "setup")
        // The key signs in the loop of all tests, which may be busy.
        try await call { _, manager in
            let limits = OrigoKeysTimeoutConfiguration()
            limits.maxTimeBetweenApdus = 60
            manager.setTimeoutConfiguration(limits)
        }
    }

    /// An iBeacon of a region advertises.
    func beacon(_ uuid: String, major: UInt8) {
        let number = uuid.replacing("-", with: "").lowercased()
        let data: [UInt8] = [26, 0xFF, 0x4C, 0x00, 0x02, 0x15] + (Hex.decode(number) ?? []) + [1, major, 0, 9, 0xC5]
        for _ in 0..<12 {
            clock.advance(100)
            scanner.receive(data, from: DeviceAddress(bits: 0xC000_0000_0100 + UInt64(major), isRandom: true), -50)
        }
    }

    /// The reader advertises; strong enough for proximity, or too weak.
    func advertise(_ rssi: Int8 = -35, times: Int = 12) {
        for _ in 0..<times {
            clock.advance(100)
            scanner.receive([3, 3, 0xF0, 0xFF], from: Self.address, rssi)
        }
    }
}

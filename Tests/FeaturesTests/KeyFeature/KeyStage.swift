// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import HTTP
import Host
import KeyFeature
import Server
import ServerDoubles
import Store
import TestSupport
import Testing
import Text
import Vault

/// A server with the feature, its store and an issuer, and one client.
@Loop final class KeyStage {
    let folder: TemporaryFolder
    let store: StateStore
    let issuer: IssuerDouble
    /// The TPM in which the keys are; nil: they are in software.
    let device: SoftwareTPM?
    let clock = TestTime()
    let server: TestServer
    let client: TestClient

    enum Place { case web, secure, folder, none }

    init(
        issuer place: Place = .web,
        trusts: Bool = true,
        store: StateStore? = nil,
        keys protection: KeyRecord.Protection = .software,
        permissions: Permissions = .all
    ) async throws {
        folder = try TemporaryFolder()
        issuer = try IssuerDouble(isSecure: place == .secure)
        var settings = IssuerSettings()
        settings.network.heartbeat = .patient
        switch place {
        case .web: settings.place = .web(try #require(WebAddress(issuer.address)))
        case .secure:
            settings.place = .web(try #require(WebAddress(issuer.address)))
            settings.authorities = .file(try folder.write("ca.pem", issuer.authority.utf8))
        case .folder: settings.place = .folder(folder.path + "/issuer")
        case .none: break
        }
        if trusts { settings.fingerprints = [issuer.fingerprint] }
        device = protection == .tpm ? try await SoftwareTPM() : nil
        let tpm = device.map { TPM($0.path, isRequired: true, timeLimit: .seconds(240)) }
        let opened = StateStore { [folder] () async throws(Failure) in
            try await Store.open(folder: folder.path + "/state", credentials: nil, tpm: tpm)
        }
        self.store = store ?? opened
        let feature = KeyFeature(Vault(self.store, tpm: tpm, now: { [clock] in clock.now }), settings)
        server = try await TestServer(readers: 0, permissions: permissions, moreFeatures: { _ in [feature] })
        client = try server.connect(uid: 1000, permissions)
    }

    func publish() throws { try issuer.publish(in: folder.path + "/issuer") }

    /// Sends a command and returns its answer.
    func ask(_ command: String, _ members: String = "", by other: TestClient? = nil) async -> JSON {
        let client = other ?? client
        await client.send(#"{"cmd":"\#(command)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
        while let message = await client.next() {
            if message["msg"]?.string != "WALLET_PENDING" { return message }
        }
        return .null
    }

    /// The name of the error with which a command ends; "" after success.
    func error(_ command: String, _ members: String = "", by other: TestClient? = nil) async -> String {
        await ask(command, members, by: other)["error"]?.string ?? ""
    }

    /// Makes a key with an endpoint before it, and returns its id.
    func newKey(_ members: String = "", by other: TestClient? = nil) async throws -> String {
        #expect(await error("SETUP_ENDPOINT", by: other) == "")
        let key = await ask("NEW_KEY", members, by: other)
        return try #require(key["id"]?.string, "\(key)")
    }

    func keys() async -> [JSON] { await ask("GET_KEYS")["keys"]?.array ?? [] }
}

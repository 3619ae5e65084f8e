// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EIDServer
import Foundation
import Synchronization
package import Text
import Vault

/// An issuer of keys for doors: it redeems invitations, enrols keys, and revokes them. docs/protocol/keys.md, Issuer.
package final class IssuerDouble: Sendable {
    /// What goes wrong instead of the answer to a request.
    package enum Fault: String, Sendable, CaseIterable {
        /// Status 503.
        case busy
        /// The connection is closed without an answer.
        case drop
        /// The connection is closed in the middle of the answer.
        case half
        /// Bytes that are no enrolment file.
        case garbled
        /// The signature is wrong.
        case signature
        /// The file is signed by an untrusted key.
        case foreign
        /// More bytes than a client takes.
        case huge
        case redirect
        case forbidden
        /// The file is for another key.
        case otherKey
        /// The answer comes after `release`.
        case held
    }

    private struct State: Sendable {
        /// The members of the files, by thumbprint of the key.
        var files: [String: [String: JSON]] = [:]
        /// By code: what the file will have, and the thumbprint of the key that has redeemed it.
        var invitations: [String: (members: [String: JSON], key: String?)] = [:]
        /// Faults of the next requests, in order.
        var faults: [Fault] = []
        var requests: [String] = []
    }

    /// The shared part, for the threads of the server.
    private final class Core: Sendable {
        let state = Mutex(State())
        /// For the fault `held`.
        let gate = DispatchSemaphore(value: 0)
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let name: String
        let scalar: [UInt8]
        let publicKey: [UInt8]

        init(_ name: String) throws {
            self.name = name
            scalar = try Random.bytes(31)
            publicKey = try ECPrivateKey(Secret(scalar), on: Curve.secp256r1.group).publicKey.uncompressed
        }

        func sign(_ payload: JSON) -> String {
            do {
                let text = SignedText.unsigned(type: Enrolment.type, payload, publicKey: publicKey)
                let key = try ECPrivateKey(Secret(scalar), on: Curve.secp256r1.group)
                let signature = try ECDSA.sign(Array(text.utf8), with: key, digest: .sha256)
                return text + "." + Base64.url.encode(signature)
            } catch {
                return ""
            }
        }

        /// The enrolment file of a key or an invitation.
        func file(_ members: [String: JSON]) -> String {
            var all: [String: JSON] = ["version": .number("1"), "iss": .string(name), "serial": .number("1")]
            all.merge(members) { $1 }
            return sign(.object(all.map { JSON.Member($0.key, $0.value) }))
        }
    }

    private let core: Core
    private let server: WebServer?

    /// Makes an issuer, with a server that uses TLS if `isSecure` is true; nil: there is no server, only files.
    package init(_ name: String = "acme", isSecure: Bool? = false) throws {
        let core = try Core(name)
        self.core = core
        let stranger = try Core(name)
        server = try isSecure.map { isSecure in
            try WebServer(isSecure: isSecure) { request in Self.answer(request, core, stranger) }
        }
    }

    package var address: String { server?.address ?? "" }
    /// The certificate of the authority of the server in PEM.
    package var authority: String { server?.authority ?? "" }
    package var fingerprint: [UInt8] { PublicKeyText.fingerprint(core.publicKey) }
    /// The requests, as method and path.
    package var requests: [String] { core.state.withLock { $0.requests } }

    package func fail(_ faults: Fault...) { fail(faults) }
    package func fail(_ faults: [Fault]) { core.state.withLock { $0.faults += faults } }

    /// Returns when a request with the fault `held` has arrived.
    package func heldRequest() async {
        for await _ in core.arrivals { return }
    }

    /// Answers a request with the fault `held`.
    package func release() { core.gate.signal() }

    /// Makes an invitation, whose file will have these members.
    package func invite(_ code: String, _ members: [String: JSON] = [:]) {
        core.state.withLock { $0.invitations[code] = (members, nil) }
    }

    /// An invitation as a file, which is not bound to a key.
    package func invitationFile(_ members: [String: JSON] = [:]) -> String { core.file(members) }

    /// Enrols a key, or changes what its file has. The serial number increases by one.
    @discardableResult
    package func enrol(_ thumbprint: String, _ members: [String: JSON] = [:]) -> String {
        let file = core.state.withLock { state in
            var all = state.files[thumbprint] ?? [:]
            let serial = (all["serial"]?.int ?? 0) + 1
            all.merge(members) { $1 }
            all["serial"] = members["serial"] ?? .number("\(serial)")
            all["key"] = .string(thumbprint)
            state.files[thumbprint] = all
            return all
        }
        return core.file(file)
    }

    @discardableResult
    package func revoke(_ thumbprint: String) -> String { enrol(thumbprint, ["revoked": .bool(true)]) }

    /// Checks the blob of WALLET_PREPARE, as a backend does. Returns its payload; nil if the signature is wrong.
    package static func check(blob: String) -> JSON? {
        let parts = blob.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, let bytes = Base64.url.decode(parts[1]), let payload = try? JSON(bytes),
            let text = payload["publicKey"]?.string, let point = Hex.decode(text),
            let key = try? ECPublicKey(point, on: .secp256r1), let signature = Base64.url.decode(parts[2]),
            (try? ECDSA.verify(
                signature,
                of: Array("\(parts[0]).\(parts[1])".utf8),
                with: key,
                digest: .sha256
            )) == true
        else { return nil }
        return payload
    }

    /// Writes all files into a folder, as an issuer without a server hands them out.
    package func publish(in folder: String) throws {
        let (files, invitations) = core.state.withLock { ($0.files, $0.invitations) }
        for name in ["keys", "invitations"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        for (thumbprint, members) in files {
            let path = "\(folder)/keys/\(thumbprint).jws"
            try core.file(members).write(toFile: path, atomically: true, encoding: .utf8)
        }
        for (code, invitation) in invitations {
            var members = invitation.members
            members["invitation"] = .string(code)
            let path = "\(folder)/invitations/\(code).jws"
            try core.file(members).write(toFile: path, atomically: true, encoding: .utf8)
        }
    }

    // MARK: Requests

    private static func answer(_ request: WebServer.Request, _ core: Core, _ stranger: Core) -> WebServer.Answer {
        let parts = request.path.split(separator: "/").map(String.init)
        let fault = core.state.withLock { state -> Fault? in
            state.requests.append("\(request.method) \(request.path)")
            return state.faults.isEmpty ? nil : state.faults.removeFirst()
        }
        switch fault {
        case .busy: return WebServer.Answer(status: 503)
        case .drop: return WebServer.Answer(delivery: .reset)
        case .garbled: return WebServer.Answer(Array("not an enrolment file".utf8))
        case .huge: return WebServer.Answer([UInt8](repeating: 0x2E, count: 1 << 20))
        case .redirect: return WebServer.Answer(status: 302, headers: [("Location", "http://127.0.0.1:1/")])
        case .forbidden: return WebServer.Answer(status: 403)
        case .held:
            core.arrival.yield()
            core.gate.wait()
        case nil, .half, .signature, .foreign, .otherKey: break
        }
        guard let kind = parts.first, parts.count == 2, let members = members(kind, parts[1], request, core) else {
            return WebServer.Answer(status: 404)
        }
        var text = (fault == .foreign ? stranger : core).file(members)
        if fault == .otherKey {
            text = core.file(members.merging(["key": .string(String(repeating: "A", count: 43))]) { $1 })
        }
        if fault == .signature { text = String(text.dropLast(4)) + "AAAA" }
        return WebServer.Answer(Array(text.utf8), delivery: fault == .half ? .half : .whole)
    }

    private static func members(
        _ kind: String,
        _ name: String,
        _ request: WebServer.Request,
        _ core: Core
    ) -> [String: JSON]? {
        guard kind == "invitations" else { return core.state.withLock { $0.files[name] } }
        guard request.method == "POST",
            let payload = check(blob: String(decoding: request.body, as: UTF8.self)),
            let key = payload["publicKey"]?.string.flatMap({ Hex.decode($0) })
        else { return nil }
        let thumbprint = PublicKeyText.thumbprint(key)
        return core.state.withLock { state in
            guard let invitation = state.invitations[name], invitation.key == nil || invitation.key == thumbprint
            else { return nil }
            state.invitations[name]?.key = thumbprint
            var members = invitation.members
            members["key"] = .string(thumbprint)
            members["invitation"] = .string(name)
            members["serial"] = .number("1")
            state.files[thumbprint] = members
            return members
        }
    }
}

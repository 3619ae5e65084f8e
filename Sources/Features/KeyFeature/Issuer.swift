// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import HTTP
import Text
import Vault

/// Where enrolment files come from: `[keys]` in badged.conf.
package struct IssuerSettings: Sendable {
    package enum Place: Sendable, Equatable {
        case folder(String)
        case web(WebAddress)
    }

    /// nil: enrolment files come with a command only.
    package var place: Place?
    /// The fingerprints of the keys of trusted issuers: SHA-256 of the SubjectPublicKeyInfo.
    package var fingerprints: Set<[UInt8]> = []
    /// Who may certify the server.
    package var authorities = Authorities.system
    package var network = Network()
    /// How long all requests of one command may last.
    package var timeout = Duration.seconds(60)

    package init() {}
}

/// Gets enrolment files and checks them.
struct Issuer: Sendable {
    let settings: IssuerSettings

    init(_ settings: IssuerSettings) { self.settings = settings }

    /// Parses and verifies a file from the user or from an issuer.
    func read(_ bytes: some Sequence<UInt8>) throws(Failure) -> Enrolment {
        let file = try Enrolment(bytes)
        guard settings.fingerprints.contains(file.issuerFingerprint) else {
            throw Failure(
                .invitationForeign,
                "the issuer is not trusted; to trust it: [keys] issuer_keys = \(Hex.encode(file.issuerFingerprint))"
            )
        }
        return file
    }

    /// The code in an invitation: four times four letters or digits, alone or at the end of an address of the issuer.
    func code(in invitation: String) throws(Failure) -> String {
        var code = invitation
        if code.hasPrefix("https://") || code.hasPrefix("http://") {
            guard case .web(let address) = settings.place, code.hasPrefix(Self.base(address) + "invitations/") else {
                throw Failure.closedService(Phrase("the address is not that of [keys] issuer"))
            }
            code = String(code.dropFirst(Self.base(address).count + "invitations/".count))
        }
        let groups = code.split(separator: "-", omittingEmptySubsequences: false)
        let isCode =
            groups.count == 4
            && groups.allSatisfy { group in
                group.utf8.count == 4
                    && group.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
            }
        guard isCode else {
            throw Failure(
                .invitationInvalid,
                "an invitation is XXXX-XXXX-XXXX-XXXX in capital letters and digits, an enrolment file, or an address "
                    + "of the issuer"
            )
        }
        guard settings.place != nil else {
            throw Failure.closedService(Phrase("no issuer is configured; set [keys] issuer"))
        }
        return code
    }

    private static func base(_ address: WebAddress) -> String {
        address.text.hasSuffix("/") ? address.text : address.text + "/"
    }

    /// The connection for the requests of one command. `close` must follow.
    struct Connection: Sendable {
        fileprivate let place: IssuerSettings.Place
        fileprivate let session: HTTPSession?

        @Loop func close() { session?.close() }
    }

    /// Makes a connection to the issuer; nil if none is configured.
    func connect() -> Connection? {
        switch settings.place {
        case nil: nil
        case .folder(let path): Connection(place: .folder(path), session: nil)
        case .web(let address):
            Connection(
                place: .web(address),
                session: HTTPSession(settings.network, settings.authorities, HTTPLimits())
            )
        }
    }

    /// Redeems an invitation for the key that `proof` is signed with.
    func redeem(_ code: String, proof: String, _ connection: Connection) async throws(Failure) -> Enrolment {
        let found: [UInt8]?
        switch connection.place {
        case .folder(let path): found = try await Self.file("\(path)/invitations/\(code).jws")
        case .web(let address):
            found = try await send(connection, Self.base(address) + "invitations/" + code, .post, Array(proof.utf8))
        }
        guard let found else {
            throw Failure(.invitationInvalid, "the issuer does not know this invitation, or it was used before")
        }
        return try checked(found)
    }

    /// Returns the newest enrolment file of a key; nil if the issuer has none.
    func enrolment(of thumbprint: String, _ connection: Connection) async throws(Failure) -> Enrolment? {
        let found: [UInt8]?
        switch connection.place {
        case .folder(let path): found = try await Self.file("\(path)/keys/\(thumbprint).jws")
        case .web(let address): found = try await send(connection, Self.base(address) + "keys/" + thumbprint, .get, [])
        }
        guard let found else { return nil }
        return try checked(found)
    }

    /// Checks a file that an issuer has sent. A malformed file is reported as `deviceSetupRetry`, because the next
    /// request may succeed.
    private func checked(_ bytes: [UInt8]) throws(Failure) -> Enrolment {
        do throws(Failure) {
            return try read(bytes)
        } catch {
            guard error.keyCode == .invitationInvalid else { throw error }
            throw Failure(.deviceSetupRetry, "the issuer has sent an invalid file: \(error.message)")
        }
    }

    private func send(
        _ connection: Connection,
        _ text: String,
        _ method: HTTPRequest.Method,
        _ body: [UInt8]
    ) async throws(Failure) -> [UInt8]? {
        guard let address = WebAddress(text), let session = connection.session else {
            throw Failure(.communicationFailed, "the address of the issuer cannot be used")
        }
        var request = HTTPRequest(method: method, address: address, maximumLength: Enrolment.maximumCount)
        request.body = body
        request.headers = ["Accept: application/jose"] + (body.isEmpty ? [] : ["Content-Type: application/jose"])
        let answer = try await session.run(request, orThrow: Self.failure)
        switch answer.status {
        case 200: return answer.body
        case 404, 409, 410: return nil
        case 401, 403: throw Failure(.invitationForeign, "the issuer refuses this invitation")
        case 429, 500...599: throw Failure(.deviceSetupRetry, "the issuer cannot answer now (\(answer.status))")
        default: throw Failure(.communicationFailed, "the issuer has answered with HTTP status \(answer.status)")
        }
    }

    private static func failure(_ fault: HTTPFault) -> Failure {
        let text = fault.text(Phrase("the issuer"))
        return switch fault {
        case .cancelled, .timeout, .unreachable, .broken, .proxy, .privateServer: Failure(.communicationRetry, text)
        case .tls: Failure(.communicationFailed, text)
        case .tooLarge: Failure(.deviceSetupRetry, text)
        case .unavailable, .lost: Failure(.internalError, text)
        }
    }

    /// Reads a file of the folder; nil if there is none.
    @concurrent private static func file(_ path: String) async throws(Failure) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw unreadable(path)
        }
        defer { Glibc.close(descriptor) }
        var state = stat()
        guard fstat(descriptor, &state) == 0, state.st_mode & S_IFMT == S_IFREG,
            state.st_size <= off_t(Enrolment.maximumCount)
        else { throw Failure(.deviceSetupRetry, "\(path) is not a file of at most 64 KiB") }
        var bytes = [UInt8](repeating: 0, count: Enrolment.maximumCount)
        let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else { throw unreadable(path) }
        return Array(bytes.prefix(count))
    }

    private static func unreadable(_ path: String) -> Failure {
        Failure(.communicationRetry, "cannot read \(path): \(String(cString: strerror(errno)))")
    }
}

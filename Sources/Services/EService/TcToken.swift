// SPDX-License-Identifier: GPL-3.0-or-later
package import HTTP
package import Text

/// The TcToken of a service: names its eID-Server and the address to which the browser returns. TR-03124-1, 2.6.
package struct TcToken: Sendable {
    /// The maximum length in bytes. TcTokens of services have about 1000 bytes.
    package static let maximumLength = 64 * 1024

    package let serverAddress: WebAddress
    /// Also the identity of the pre-shared key; 1 to 255 bytes.
    package let sessionIdentifier: String
    package let refreshAddress: WebAddress
    package let communicationErrorAddress: WebAddress?
    /// nil when the eID-Server is the server of the TcToken and uses the same TLS session ("attached").
    package let preSharedKey: TLSTrust.PreSharedKey?

    // The limits of libssl: PSK_MAX_IDENTITY_LEN and PSK_MAX_PSK_LEN.
    private static let maximumIdentity = 255
    private static let maximumKey = 256

    /// Reads and checks the document. Developer mode sets `allowsHTTP`: the browser may return to an http address.
    /// - Throws: `InvalidTcToken`.
    package init(_ document: Result<XMLElement, Malformed>, allowsHTTP: Bool = false) throws(InvalidTcToken) {
        let fields: Fields
        do throws(Malformed) {
            fields = try Fields(document.get())
        } catch {
            throw InvalidTcToken(words: "the TcToken cannot be read: \(error.text)")
        }
        var invalid = InvalidTcToken(words: "")
        func isAllowed(_ address: WebAddress) -> Bool { address.isSecure || allowsHTTP }
        invalid.refreshAddress = fields.refreshAddress.flatMap(WebAddress.init).flatMap { isAllowed($0) ? $0 : nil }
        invalid.communicationErrorAddress = fields.communicationErrorAddress.flatMap(WebAddress.init)
            .flatMap { isAllowed($0) ? $0 : nil }
        func refused(_ words: String) -> InvalidTcToken {
            InvalidTcToken(
                words: words,
                refreshAddress: invalid.refreshAddress,
                communicationErrorAddress: invalid.communicationErrorAddress
            )
        }
        guard fields.binding == "urn:liberty:paos:2006-08" else { throw refused("Binding is not PAOS") }
        guard ["urn:ietf:rfc:4279", nil].contains(fields.pathSecurityProtocol) else {
            throw refused("PathSecurity-Protocol is unknown")
        }
        guard let server = fields.serverAddress.flatMap(WebAddress.init), server.isSecure else {
            throw refused("ServerAddress is not an https address")
        }
        guard let refresh = invalid.refreshAddress else { throw refused("RefreshAddress is not an https address") }
        guard let session = fields.sessionIdentifier, (1...Self.maximumIdentity).contains(session.utf8.count) else {
            throw refused("SessionIdentifier is missing or too long")
        }
        if let text = fields.preSharedKey {
            guard var key = Hex.decode(text), (1...Self.maximumKey).contains(key.count) else {
                throw refused("PSK is not hexBinary")
            }
            preSharedKey = TLSTrust.PreSharedKey(identity: Array(session.utf8), key: &key)
        } else {
            preSharedKey = nil
        }
        serverAddress = server
        sessionIdentifier = session
        refreshAddress = refresh
        communicationErrorAddress = invalid.communicationErrorAddress
    }

    /// The texts of the elements.
    private struct Fields {
        let serverAddress, sessionIdentifier, refreshAddress, communicationErrorAddress: String?
        let binding, pathSecurityProtocol, preSharedKey: String?

        init(_ root: XMLElement) throws(Malformed) {
            func text(_ name: String) throws(Malformed) -> String? {
                let text = try root.only(name)?.trimmed
                guard text?.isComparable != false else { throw Malformed("\(name) is no text that can be compared") }
                return text
            }
            serverAddress = try text("ServerAddress")
            sessionIdentifier = try text("SessionIdentifier")
            refreshAddress = try text("RefreshAddress")
            communicationErrorAddress = try text("CommunicationErrorAddress")
            binding = try text("Binding")
            pathSecurityProtocol = try text("PathSecurity-Protocol")
            preSharedKey = try root.only("PathSecurity-Parameters")?.only("PSK")?.trimmed
        }
    }
}

/// Why a TcToken is invalid, with the addresses in it that can still be used.
package struct InvalidTcToken: Error, Sendable, Equatable {
    /// Words for the log.
    package let words: String
    package var refreshAddress: WebAddress?
    package var communicationErrorAddress: WebAddress?
}

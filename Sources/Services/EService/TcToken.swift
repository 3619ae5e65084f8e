// SPDX-License-Identifier: GPL-3.0-or-later

/// What a service gives to whoever wants to authenticate to it: where its eID-Server is, and how to come back.
/// TR-03124-1, 2.6.
package struct TcToken: Sendable, Equatable {
    /// Bytes; those of services have about one thousand.
    package static let maximumLength = 64 * 1024

    package let serverAddress: WebAddress
    /// Also the identity of the pre-shared key; 1 to 255 bytes.
    package let sessionIdentifier: String
    package let refreshAddress: WebAddress
    package let communicationErrorAddress: WebAddress?
    /// nil: the eID-Server is the one that gave the token, on the same TLS session ("attached").
    package let preSharedKey: [UInt8]?

    /// Why it is none, and the ways back that can be read all the same.
    package struct Refusal: Error, Sendable, Equatable {
        /// In words, for the log.
        package let words: String
        package var refreshAddress: WebAddress?
        package var communicationErrorAddress: WebAddress?
    }

    /// Bytes that libssl takes at most: PSK_MAX_IDENTITY_LEN, PSK_MAX_PSK_LEN.
    private static let maximumIdentity = 255
    private static let maximumKey = 256

    /// Reads and judges the document; `allowsHTTP` is developer mode, for the way back.
    /// - Throws: `Refusal`.
    package init(_ document: [UInt8], allowsHTTP: Bool = false) throws(Refusal) {
        let fields: Fields
        do throws(XMLError) {
            fields = try Fields(try XMLReader.read(document, maximumLength: Self.maximumLength))
        } catch {
            throw Refusal(words: "the TcToken cannot be read: \(error)")
        }
        var refusal = Refusal(words: "")
        func isAllowed(_ address: WebAddress) -> Bool { address.isSecure || allowsHTTP }
        refusal.refreshAddress = fields.refreshAddress.flatMap(WebAddress.init).flatMap { isAllowed($0) ? $0 : nil }
        refusal.communicationErrorAddress = fields.communicationErrorAddress.flatMap(WebAddress.init)
            .flatMap { isAllowed($0) ? $0 : nil }
        func refused(_ words: String) -> Refusal {
            Refusal(
                words: words,
                refreshAddress: refusal.refreshAddress,
                communicationErrorAddress: refusal.communicationErrorAddress
            )
        }
        guard fields.binding == "urn:liberty:paos:2006-08" else { throw refused("Binding is not PAOS") }
        guard ["urn:ietf:rfc:4279", nil].contains(fields.pathSecurityProtocol) else {
            throw refused("PathSecurity-Protocol is unknown")
        }
        guard let server = fields.serverAddress.flatMap(WebAddress.init), server.isSecure else {
            throw refused("ServerAddress is no https address")
        }
        guard let refresh = refusal.refreshAddress else { throw refused("RefreshAddress is no https address") }
        guard let session = fields.sessionIdentifier, (1...Self.maximumIdentity).contains(session.utf8.count) else {
            throw refused("SessionIdentifier is missing or too long")
        }
        if let text = fields.preSharedKey {
            guard let key = HexBinary.bytes(text), (1...Self.maximumKey).contains(key.count) else {
                throw refused("PSK is no hexBinary")
            }
            preSharedKey = key
        } else {
            preSharedKey = nil
        }
        (serverAddress, sessionIdentifier, refreshAddress) = (server, session, refresh)
        communicationErrorAddress = refusal.communicationErrorAddress
    }

    /// The texts of the elements, by local name.
    private struct Fields {
        let serverAddress, sessionIdentifier, refreshAddress, communicationErrorAddress: String?
        let binding, pathSecurityProtocol, preSharedKey: String?

        init(_ root: XMLElement) throws(XMLError) {
            func text(_ name: String) throws(XMLError) -> String? { try root.only(name)?.trimmed }
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

// SPDX-License-Identifier: GPL-3.0-or-later
package import HTTP
package import Text

/// A message of the eID-Server: the answer to our HTTP request, which holds the next command. TR-03112-7, 2.6 and 3.6.
///
/// Elements are found by local name; unknown ones are ignored. A repeated element that is allowed only once, or a
/// malformed value, makes the message invalid.
package struct PAOSMessage: Sendable, Equatable {
    /// The maximum length in bytes. A request with a description in PDF has about 100 KiB.
    package static let maximumLength = 1024 * 1024

    package enum Content: Sendable, Equatable {
        case initializeFramework
        case eac1(EAC1Input)
        case eac2(EAC2Input)
        /// The terminal's signature.
        case eacAdditional([UInt8])
        case transmit([InputAPDU])
        case startPAOSResponse(ECardResult)
        /// A known message with an invalid content; text for the log. The server waits for `Pending`, which can carry an
        /// error.
        case invalid(Pending, String)
    }

    /// The answer that the server waits for after it has sent a message.
    package enum Pending: Sendable, Equatable {
        case initializeFrameworkResponse
        case didAuthenticateResponse(EACOutputType)
        case transmitResponse
    }

    package enum EACOutputType: String, Sendable {
        case eac1 = "EAC1OutputType"
        case eac2 = "EAC2OutputType"
    }

    package let messageID: String?
    package let content: Content

    /// The answer that the message asks for; nil for the last message.
    package var pending: Pending? {
        switch content {
        case .initializeFramework: .initializeFrameworkResponse
        case .eac1: .didAuthenticateResponse(.eac1)
        case .eac2, .eacAdditional: .didAuthenticateResponse(.eac2)
        case .transmit: .transmitResponse
        case .startPAOSResponse: nil
        case .invalid(let pending, _): pending
        }
    }

    /// Reads a document that is an envelope with a known message.
    package init(_ document: Result<XMLElement, Malformed>) throws(Malformed) {
        let envelope = try document.get()
        let header = try envelope.only("Header")
        messageID = Self.identifier(try header?.only("MessageID"))
        guard let messages = try envelope.only("Body")?.children, let message = messages.first,
            envelope.name == "Envelope"
        else { throw Malformed("no SOAP envelope with a body") }
        guard messages.count == 1 else { throw Malformed("more than one message") }
        switch message.name {
        case "InitializeFramework":
            content = .initializeFramework
        case "DIDAuthenticate":
            content = try Self.didAuthenticate(message)
        case "Transmit":
            content = Self.reading(.transmitResponse, .transmit(try Self.commands(message)))
        case "StartPAOSResponse":
            content = .startPAOSResponse(Self.result(message))
        default:
            throw Malformed("unknown message: \(message.name.prefix(64))")
        }
    }

    /// Reads an identifier; its length is bounded, since it is sent back in RelatesTo.
    private static func identifier(_ element: XMLElement?) -> String? {
        guard let text = element?.trimmed, !text.isEmpty, text.utf8.count <= 256 else { return nil }
        return text
    }

    private static func didAuthenticate(_ message: XMLElement) throws(Malformed) -> Content {
        guard let data = message.all("AuthenticationProtocolData").first,
            message.all("AuthenticationProtocolData").count == 1, let type = data.attributes["type"]
        else { throw Malformed("DIDAuthenticate without typed data") }
        if type.hasSuffix("EAC1InputType") {
            return reading(.didAuthenticateResponse(.eac1), .eac1(try EAC1Input(data)))
        }
        if type.hasSuffix("EAC2InputType") {
            return reading(.didAuthenticateResponse(.eac2), .eac2(try EAC2Input(data)))
        }
        guard type.hasSuffix("EACAdditionalInputType") else {
            throw Malformed("DIDAuthenticate with data of an unknown type")
        }
        return reading(.didAuthenticateResponse(.eac2), .eacAdditional(try signature(data)))
    }

    private static func signature(_ data: XMLElement) throws(Malformed) -> [UInt8] {
        guard let signature = try data.hex("Signature") else { throw Malformed("Signature is missing") }
        return signature
    }

    private static func reading(_ pending: Pending, _ value: @autoclosure () throws(Malformed) -> Content) -> Content {
        do throws(Malformed) {
            return try value()
        } catch {
            return .invalid(pending, error.text)
        }
    }

    private static func commands(_ message: XMLElement) throws(Malformed) -> [InputAPDU] {
        var commands: [InputAPDU] = []
        for info in message.all("InputAPDUInfo") {
            guard let command = try info.hex("InputAPDU"), command.count >= 4 else {
                throw Malformed("InputAPDU is missing or too short")
            }
            let codes = try info.allHex("AcceptableStatusCode")
            guard codes.allSatisfy({ (1...2).contains($0.count) }) else {
                throw Malformed("AcceptableStatusCode has a wrong length")
            }
            commands.append(InputAPDU(command: command, acceptableStatusCodes: codes))
        }
        guard !commands.isEmpty else { throw Malformed("Transmit without a command") }
        return commands
    }

    /// Reads the result from the element Result or from the message itself. Without a major result it is an error.
    private static func result(_ message: XMLElement) -> ECardResult {
        let result = message.all("Result").first ?? message
        func text(_ name: String) -> String? {
            guard let text = result.all(name).first?.collapsed, !text.isEmpty else { return nil }
            // Scalars, since one character may consist of any number of combining marks.
            return String(String.UnicodeScalarView(text.unicodeScalars.prefix(1024)))
        }
        return ECardResult(
            text("ResultMajor").flatMap(ECardResult.Major.init) ?? .error,
            text("ResultMinor").map { ResultMinor(uri: $0) },
            message: text("ResultMessage").map(Phrase.init(verbatim:)),
            origin: .server
        )
    }
}

extension XMLElement {
    /// The bytes of the child with that name; nil when there is none.
    func hex(_ name: String) throws(Malformed) -> [UInt8]? {
        let values = try allHex(name)
        guard values.count <= 1 else { throw Malformed("\(name) is repeated") }
        return values.first
    }

    /// The bytes of all children with that name.
    func allHex(_ name: String) throws(Malformed) -> [[UInt8]] {
        try all(name).map { element throws(Malformed) in
            guard let bytes = Hex.decode(element.trimmed) else {
                throw Malformed("\(name) is not hexBinary")
            }
            return bytes
        }
    }
}

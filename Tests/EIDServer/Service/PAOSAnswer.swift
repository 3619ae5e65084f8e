// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Writes the messages of the eID-Server. TR-03112-7 3.6.4, TR-03112-6 3.2.5.
enum PAOSAnswer {
    static let major = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#"
    static let minor = "http://www.bsi.bund.de/ecard/api/1.1/resultminor"
    static let contentType = "application/vnd.paos+xml; charset=UTF-8"
    private static let eac = "urn:oid:1.3.162.15480.3.0.14.2"

    /// Writes the SOAP document of a body.
    static func envelope(_ body: XML, id: String, relatesTo: String?) -> [UInt8] {
        var header: [XML] = []
        if let relatesTo { header.append(.element("wsa:RelatesTo", text: relatesTo)) }
        header.append(.element("wsa:MessageID", text: id))
        let spaces = PAOSNamespace.allCases.map { ("xmlns:\($0.prefix)", $0.rawValue) }
        return XML.element(
            "soap:Envelope",
            spaces,
            [.element("soap:Header", [], header), .element("soap:Body", [], [body])]
        ).document
    }

    /// urn:uuid with a random UUID of version 4. RFC 9562 5.4.
    static func messageID() -> String {
        var bytes = (0..<16).map { _ in UInt8.random(in: 0...255) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = Array(Hex.encode(bytes))
        let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
        return "urn:uuid:" + parts.joined(separator: "-")
    }

    static let initializeFramework = XML.element("ecard:InitializeFramework")

    static func didAuthenticate(slot: String, _ type: String, _ fields: [XML]) -> XML {
        let handle = XML.element(
            "iso:ConnectionHandle",
            [("xsi:type", "iso:ConnectionHandleType")],
            [.element("iso:CardApplication", text: "e80704007f00070302"), .element("iso:SlotHandle", text: slot)]
        )
        let data = XML.element(
            "iso:AuthenticationProtocolData",
            [("xsi:type", "iso:\(type)"), ("Protocol", eac)],
            fields
        )
        return .element("iso:DIDAuthenticate", [], [handle, .element("iso:DIDName", text: "PIN"), data])
    }

    /// Writes Transmit; `acceptable` lists prefixes of status words in hexadecimal digits.
    static func transmit(slot: String, _ commands: [(digits: String, acceptable: [String])]) -> XML {
        let infos = commands.map { command in
            XML.element(
                "iso:InputAPDUInfo",
                [],
                [.element("iso:InputAPDU", text: command.digits)]
                    + command.acceptable.map { .element("iso:AcceptableStatusCode", text: $0) }
            )
        }
        return .element("iso:Transmit", [], [.element("iso:SlotHandle", text: slot)] + infos)
    }

    /// Writes the last message: ok, or an error with its minor result.
    static func startPAOSResponse(_ error: ConversationError? = nil) -> XML {
        var result: [XML] = [.element("dss:ResultMajor", text: major + (error == nil ? "ok" : "error"))]
        if let error {
            result.append(.element("dss:ResultMinor", text: minor + error.minor))
            result.append(.element("dss:ResultMessage", [("xml:lang", "en")], text: error.message))
        }
        return .element(
            "iso:StartPAOSResponse",
            [("Profile", PAOSNamespace.ecard.rawValue)],
            [.element("dss:Result", [], result)]
        )
    }

    static let unknown = XML.element("iso:Unheard")

    static let soapFault = XML.element(
        "soap:Fault",
        [],
        [.element("faultcode", text: "soap:Server"), .element("faultstring", text: "requested fault")]
    )
}

/// Why the server ends a conversation. The client gets this error.
struct ConversationError: Error {
    /// The part of the URI after `resultminor`.
    let minor: String
    let message: String

    static func incorrectParameter(_ message: String) -> ConversationError {
        ConversationError(minor: "/al/common#incorrectParameter", message: message)
    }

    static func internalError(_ message: String) -> ConversationError {
        ConversationError(minor: "/al/common#internalError", message: message)
    }
}

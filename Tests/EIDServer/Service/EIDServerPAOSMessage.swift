// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The namespaces of the messages. TR-03112-7, TR-03112-4.
enum PAOSNamespace: String, CaseIterable, Sendable {
    case soap = "http://schemas.xmlsoap.org/soap/envelope/"
    case paos = "urn:liberty:paos:2006-08"
    case wsa = "http://www.w3.org/2005/03/addressing"
    case iso = "urn:iso:std:iso-iec:24727:tech:schema"
    case dss = "urn:oasis:names:tc:dss:1.0:core:schema"
    case ecard = "http://www.bsi.bund.de/ecard/api/1.1"
    case xsi = "http://www.w3.org/2001/XMLSchema-instance"

    /// The prefix in the messages of the server.
    var prefix: String {
        switch self {
        case .soap: "soap"
        case .paos: "paos"
        case .wsa: "wsa"
        case .iso: "iso"
        case .dss: "dss"
        case .ecard: "ecard"
        case .xsi: "xsi"
        }
    }
}

/// A message of the client, read with namespaces.
struct PAOSMessage: Sendable {
    /// Why a document is not a message.
    struct Unreadable: Error {
        let message: String
    }

    /// The result in each answer. TR-03112-1 4.1.
    struct Result: Sendable, Equatable {
        /// The part of the URI after `resultmajor#`.
        let major: String
        /// The part of the URI after `resultminor`, such as `/sal#cancellationByUser`.
        let minor: String?
        let message: String?
    }

    let body: XMLElement
    let messageID: String?
    let relatesTo: String?
    /// Whether the header has the mandatory PAOS block.
    let hasPAOSHeader: Bool

    /// The local name of the element in the SOAP body.
    var name: String { body.name.local }

    init(_ bytes: [UInt8]) throws(Unreadable) {
        let envelope: XMLElement
        do throws(XMLReader.Malformed) {
            envelope = try XMLReader.document(bytes)
        } catch {
            throw Unreadable(message: error.what)
        }
        guard envelope.name == .init(namespace: PAOSNamespace.soap.rawValue, local: "Envelope") else {
            throw Unreadable(message: "no SOAP envelope but \(envelope.name.local)")
        }
        let bodies = envelope.children(.soap, "Body")
        guard bodies.count == 1, bodies[0].children.count == 1 else { throw Unreadable(message: "not one SOAP body") }
        body = bodies[0].children[0]
        let header = envelope.child(.soap, "Header")
        messageID = header?.child(.wsa, "MessageID")?.trimmed
        relatesTo = header?.child(.wsa, "RelatesTo")?.trimmed
        hasPAOSHeader = header?.child(.paos, "PAOS") != nil
    }

    var result: Result? {
        guard let result = body.child(.dss, "Result"), let major = result.child(.dss, "ResultMajor") else { return nil }
        let minor = result.child(.dss, "ResultMinor")?.trimmed
        return Result(
            major: major.trimmed.split(separator: "#").last.map(String.init) ?? "",
            minor: minor.map { $0.hasPrefix(PAOSAnswer.minor) ? String($0.dropFirst(PAOSAnswer.minor.count)) : $0 },
            message: result.child(.dss, "ResultMessage")?.trimmed
        )
    }

    private var protocolData: XMLElement? { body.child(.iso, "AuthenticationProtocolData") }

    /// The type of the protocol data, such as EAC1OutputType, without prefix.
    var protocolType: String? {
        protocolData?.attributes[.init(namespace: PAOSNamespace.xsi.rawValue, local: "type")]
            .flatMap { $0.split(separator: ":").last.map(String.init) }
    }

    /// The text of the first element with this name in the protocol data.
    func field(_ name: String) -> String? { protocolData?.child(.iso, name)?.trimmed }

    func fields(_ name: String) -> [String] { protocolData?.children(.iso, name).map(\.trimmed) ?? [] }

    /// The bytes of such an element; nil when it is missing or not hexBinary.
    func bytes(_ name: String) -> [UInt8]? { field(name).flatMap { Hex.decode($0) } }
}

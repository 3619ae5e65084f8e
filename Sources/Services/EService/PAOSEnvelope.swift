// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import Text

/// Writes our messages to the eID-Server; each is the body of a POST. TR-03112-7, 2.6.
package enum PAOSEnvelope {
    /// The name and version of this program for the server.
    package struct UserAgent: Sendable, Equatable {
        package let name: String
        package let version: (major: Int, minor: Int, patch: Int)

        package init(name: String, version: (major: Int, minor: Int, patch: Int)) {
            self.name = name
            self.version = version
        }

        /// The HTTP headers User-Agent and Server, with the version of the specification. TR-03124-1, 2.2.2.1.
        package var header: String { "\(name)/\(version.major).\(version.minor).\(version.patch) (TR-03124-1/1.4)" }

        package static func == (a: UserAgent, b: UserAgent) -> Bool { a.header == b.header }
    }

    /// Writes the document of a message.
    /// - Parameters:
    ///   - body: the one element of the SOAP body.
    ///   - messageID: a URI, new for each message.
    ///   - relatesTo: the MessageID of the message that this one answers.
    /// - Returns: the document in UTF-8.
    package static func document(_ body: Body, messageID: String, relatesTo: String?) -> [UInt8] {
        let relation = relatesTo.map { element("wsa:RelatesTo", escaped($0)) } ?? ""
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" \
            xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
            xmlns:paos="urn:liberty:paos:2006-08" xmlns:wsa="http://www.w3.org/2005/03/addressing" \
            xmlns:dss="urn:oasis:names:tc:dss:1.0:core:schema" xmlns:ecard="\(eCard)" xmlns:iso="\(iso)">\
            <soap:Header>\
            <paos:PAOS soap:mustUnderstand="1" soap:actor="http://schemas.xmlsoap.org/soap/actor/next">\
            <paos:Version>urn:liberty:paos:2006-08</paos:Version>\
            <paos:EndpointReference>\
            <paos:Address>http://www.projectliberty.org/2006/01/role/paos</paos:Address>\
            <paos:MetaData><paos:ServiceType>\(eCard)/PAOS/GetNextCommand</paos:ServiceType></paos:MetaData>\
            </paos:EndpointReference></paos:PAOS>\
            <wsa:ReplyTo><wsa:Address>http://www.projectliberty.org/2006/02/role/paos</wsa:Address></wsa:ReplyTo>\
            \(relation)<wsa:MessageID>\(escaped(messageID))</wsa:MessageID>\
            </soap:Header><soap:Body>\(body.text)</soap:Body></soap:Envelope>
            """
        return Array(text.utf8)
    }

    /// The content of one message.
    package struct Body: Sendable, Equatable {
        let text: String

        /// The first message: names this program and the session. TR-03112-7, 2.6.1.
        package static func startPAOS(sessionIdentifier: String, _ userAgent: UserAgent) -> Body {
            let version = userAgent.version
            return Body(
                text: """
                    <StartPAOS xmlns="\(iso)">\(element("SessionIdentifier", escaped(sessionIdentifier)))\
                    <ConnectionHandle xsi:type="iso:ConnectionHandleType">\
                    <CardApplication>e80704007f00070302</CardApplication><SlotHandle>00</SlotHandle></ConnectionHandle>\
                    <UserAgent>\(element("Name", escaped(userAgent.name)))\
                    \(element("VersionMajor", "\(version.major)"))\(element("VersionMinor", "\(version.minor)"))\
                    \(element("VersionSubminor", "\(version.patch)"))</UserAgent>\
                    <SupportedAPIVersions><Major>1</Major><Minor>1</Minor><Subminor>5</Subminor>\
                    </SupportedAPIVersions></StartPAOS>
                    """
            )
        }

        package static func initializeFrameworkResponse(_ result: ECardResult) -> Body {
            Body(
                text: """
                    <InitializeFrameworkResponse xmlns="\(eCard)" Profile="\(eCard)">\(PAOSEnvelope.result(result))\
                    <Version><Major>1</Major><Minor>1</Minor><SubMinor>5</SubMinor></Version>\
                    </InitializeFrameworkResponse>
                    """
            )
        }

        /// `namesAuthorities` adds the card's trust points, when the server has sent no chain for them.
        package static func eac1(_ output: EAC1Output, namesAuthorities: Bool) -> Body {
            let references = namesAuthorities ? output.authorityReferences.prefix(2) : []
            return didAuthenticateResponse(
                .eac1,
                .ok,
                hex("CertificateHolderAuthorizationTemplate", output.chat.object.encoded)
                    + references.map { reference in
                        element("CertificationAuthorityReference", escaped(String(decoding: reference, as: UTF8.self)))
                    }.joined()
                    + hex("EFCardAccess", output.efCardAccess) + hex("IDPICC", output.idPICC)
                    + hex("Challenge", output.challenge)
            )
        }

        package static func challenge(_ challenge: [UInt8]) -> Body {
            didAuthenticateResponse(.eac2, .ok, hex("Challenge", challenge))
        }

        package static func eac2(_ output: EAC2Output) -> Body {
            didAuthenticateResponse(
                .eac2,
                .ok,
                hex("EFCardSecurity", output.efCardSecurity) + hex("AuthenticationToken", output.authenticationToken)
                    + hex("Nonce", output.nonce)
            )
        }

        package static func transmitResponse(_ output: [[UInt8]], _ result: ECardResult) -> Body {
            Body(
                text: """
                    <TransmitResponse xmlns="\(iso)" Profile="\(eCard)">\(PAOSEnvelope.result(result))\
                    \(output.map { hex("OutputAPDU", $0) }.joined())</TransmitResponse>
                    """
            )
        }

        /// The answer that the server waits for, with an error and empty fields.
        package static func error(_ result: ECardResult, to pending: PAOSMessage.Pending) -> Body {
            switch pending {
            case .initializeFrameworkResponse:
                initializeFrameworkResponse(result)
            case .didAuthenticateResponse(.eac1):
                didAuthenticateResponse(
                    .eac1,
                    result,
                    hex("EFCardAccess", []) + hex("IDPICC", []) + hex("Challenge", [])
                )
            case .didAuthenticateResponse(.eac2):
                didAuthenticateResponse(
                    .eac2,
                    result,
                    hex("EFCardSecurity", []) + hex("AuthenticationToken", []) + hex("Nonce", [])
                )
            case .transmitResponse:
                transmitResponse([], result)
            }
        }

        private static func didAuthenticateResponse(
            _ type: PAOSMessage.EACOutputType,
            _ result: ECardResult,
            _ fields: String
        ) -> Body {
            Body(
                text: """
                    <DIDAuthenticateResponse xmlns="\(iso)" Profile="\(eCard)">\(PAOSEnvelope.result(result))\
                    <AuthenticationProtocolData xsi:type="iso:\(type.rawValue)" \
                    Protocol="urn:oid:1.3.162.15480.3.0.14.2">\(fields)</AuthenticationProtocolData>\
                    </DIDAuthenticateResponse>
                    """
            )
        }
    }

    private static let iso = "urn:iso:std:iso-iec:24727:tech:schema"
    private static let eCard = "http://www.bsi.bund.de/ecard/api/1.1"

    private static func result(_ result: ECardResult) -> String {
        let minor = result.minor.map { element("ResultMinor", escaped($0.uri)) } ?? ""
        let message = result.message.map { "<ResultMessage xml:lang=\"en\">\(escaped("\($0)"))</ResultMessage>" } ?? ""
        return """
            <Result xmlns="urn:oasis:names:tc:dss:1.0:core:schema">\(element("ResultMajor", result.major.rawValue))\
            \(minor)\(message)</Result>
            """
    }

    private static func element(_ name: String, _ content: String) -> String { "<\(name)>\(content)</\(name)>" }

    private static func hex(_ name: String, _ bytes: [UInt8]) -> String { element(name, Hex.encode(bytes)) }

    /// Escapes character data; a character that XML 1.0 forbids becomes a question mark.
    private static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\t", "\n", " "...: out.unicodeScalars.append(scalar)
            default: out += "?"
            }
        }
        return out
    }
}

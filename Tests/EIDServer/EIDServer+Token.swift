// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The TcToken. TR-03124-1 2.6.
extension EIDServer {
    func token(_ request: HTTPRequest, _ handshake: Handshake, _ listener: ListenerName) throws -> HTTPResponse {
        let options = try ServiceOptions(request.query)
        if let redirect = try redirect(request, options.fault, listener) { return redirect }
        let conversation = try begin(options, on: listener, handshake)
        let token = try document(conversation)
        var response = HTTPResponse(200, "text/xml; charset=utf-8", token)
        response.headers.append(("X-Session", conversation.id))
        response.closes = !options.keepsConnections
        spoil(&response, options.fault)
        return response
    }

    private func redirect(
        _ request: HTTPRequest,
        _ fault: Fault?,
        _ listener: ListenerName
    ) throws -> HTTPResponse? {
        let hop = Int(request.query["hop"] ?? "") ?? 0
        func next() throws -> String {
            var query = request.query
            query["hop"] = String(hop + 1)
            return try tcTokenURL(query, on: listener)
        }
        switch fault {
        case .tcTokenRedirect where hop < 3: return HTTPResponse([302, 303, 307][max(hop, 0)], location: try next())
        case .tcTokenRedirect301 where hop < 1: return HTTPResponse(301, location: try next())
        case .tcTokenRedirectRelative where hop < 5:
            let url = try next()
            let query = url.drop { $0 != "?" }
            let forms = [
                "/tctoken\(query)", "tctoken\(query)", "./a/../tctoken\(query)", "\(query)#part",
                "\(url.drop { $0 != "/" })",
            ]
            return HTTPResponse(302, location: forms[max(hop, 0)])
        case .tcTokenRedirectEmpty: return HTTPResponse(302, location: "")
        case .tcTokenRedirectSchemeHTTP:
            return HTTPResponse(302, location: "http:\(try next().drop { $0 != "/" })")
        case .tcTokenRedirectLoop: return HTTPResponse(302, location: try next())
        case .tcTokenRedirectHTTP:
            return HTTPResponse(302, location: "http://localhost:\(try listeners.port(.plain))/tctoken")
        default: return nil
        }
    }

    private func spoil(_ response: inout HTTPResponse, _ fault: Fault?) {
        switch fault {
        case .tcToken404: response = HTTPResponse(404, text: "requested fault\n")
        case .tcToken500: response = HTTPResponse(500, text: "requested fault\n")
        case .tcTokenEmpty: response.body = []
        case .tcTokenHTML:
            response = HTTPResponse(200, "text/html", Array("<!doctype html><title>Hello</title><p>Hello".utf8))
        case .tcTokenMalformed: response.body.removeLast(4)
        case .tcTokenDoctype: insert("<!DOCTYPE TCTokenType [<!ENTITY a \"b\">]>", into: &response.body)
        case .tcTokenExternalEntity:
            insert("<!DOCTYPE TCTokenType [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>", into: &response.body)
            replace("<Binding>", "<Binding>&a;", in: &response.body)
        case .tcTokenEntities: response.body = Hostile.entities(root: "TCTokenType")
        case .tcTokenAttribute:
            let value = String(repeating: "a", count: 8 << 20)
            replace("<TCTokenType>", "<TCTokenType a=\"\(value)\">", in: &response.body)
        case .tcTokenHuge: response.body = Hostile.huge(response.body)
        case .tcTokenSlow: response.delay = 8
        case .tcTokenDrip: response.delivery = .drip(milliseconds: 1000)
        case .tcTokenClose: response.delivery = .reset
        case .tcTokenTruncate: response.delivery = .half
        default: break
        }
    }

    /// Inserts text after the first line.
    private func insert(_ text: String, into document: inout [UInt8]) {
        let end = document.firstIndex(of: 0x0A) ?? document.startIndex
        document.insert(contentsOf: [0x0A] + Array(text.utf8), at: end)
    }

    private func replace(_ old: String, _ new: String, in document: inout [UInt8]) {
        let parts = String(decoding: document, as: UTF8.self).split(separator: old, maxSplits: 1)
        document = Array(parts.joined(separator: new).utf8)
    }

    // MARK: Content

    private func document(_ conversation: Conversation) throws -> [UInt8] {
        let fault = conversation.options.fault
        let isEmpty = fault == .tcTokenCommErrorOnly
        var fields: [(String, String)] = []
        if fault != .tcTokenNoServerAddress { fields.append(("ServerAddress", try serverAddress(conversation))) }
        if fault != .tcTokenNoSession { fields.append(("SessionIdentifier", conversation.id)) }
        if fault != .tcTokenNoRefresh { fields.append(("RefreshAddress", try refreshAddress(conversation))) }
        fields.append(("Binding", fault == .tcTokenBinding ? "urn:example:binding" : "urn:liberty:paos:2006-08"))
        if isEmpty { fields = fields.map { ($0.0, "") } }
        fields.append(("CommunicationErrorAddress", "\(conversation.origin)/comm-error/\(conversation.id)"))
        var elements = fields.map { XML.element($0, text: $1) }
        if !isEmpty { elements += pathSecurity(conversation) }
        return XML.element("TCTokenType", [], elements).document
    }

    private func pathSecurity(_ conversation: Conversation) -> [XML] {
        let fault = conversation.options.fault
        guard conversation.options.mode == .psk || fault == .tcTokenEmptyParameters else { return [] }
        let key = Hex.encode(conversation.psk) + (fault == .tcTokenPSKOdd ? "z" : "")
        return [
            .element(
                "PathSecurity-Protocol",
                text: fault == .tcTokenPathProtocol ? "urn:ietf:rfc:9999" : "urn:ietf:rfc:4279"
            ),
            .element(
                "PathSecurity-Parameters",
                [],
                fault == .tcTokenEmptyParameters ? [] : [.element("PSK", text: key)]
            ),
        ]
    }

    private func serverAddress(_ conversation: Conversation) throws -> String {
        let fault = conversation.options.fault
        guard conversation.options.mode == .psk || fault?.stage == "tls" else {
            return "\(conversation.origin)/paos/\(conversation.id)"
        }
        let listener: ListenerName =
            switch fault {
            case .tlsUnlisted: .pskUnlisted
            case .tlsExpired: .pskExpired
            case .tlsFuture: .pskFuture
            case .tlsWronghost: .pskWrongHost
            case .tlsWeak: .pskWeak
            case .tlsNoPSK: .pskNoPSK
            case .tlsCiphers: .pskCiphers
            case .tlsV11: .pskTLS11
            case .tlsPlain: .plain
            case .tlsSilent: .silent
            default: .psk
            }
        if fault == .tlsRefused { return "https://localhost:\(try listeners.refusingPort())/paos" }
        let address = "\(try origin(listener))/paos"
        return fault == .tcTokenHTTPServerAddress ? "http" + address.dropFirst(5) : address
    }

    private func refreshAddress(_ conversation: Conversation) throws -> String {
        let address = "\(conversation.origin)/refresh/\(conversation.id)"
        switch conversation.options.fault {
        case .refreshOtherOrigin, .refreshOneHop, .refreshRelative, .refreshEmpty, .refresh404, .refresh200,
            .refreshHTTP, .refreshLoop:
            return "\(try origin(.webOther))/hop/\(conversation.id)"
        case .refreshUnlisted: return "\(try origin(.webUnlisted))/hop/\(conversation.id)"
        case .refreshRefused: return "https://localhost:\(try listeners.refusingPort())/refresh/\(conversation.id)"
        case .tcTokenHTTPRefresh: return "http" + address.dropFirst(5)
        default: return address
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text

/// The web side: the answer to each path.
extension EIDServer {
    func answer(_ request: HTTPRequest, _ handshake: Handshake, _ listener: ListenerName) -> HTTPResponse {
        let words = request.path.split(separator: "/", maxSplits: 1).map(String.init)
        let rest = words.count == 2 ? words[1] : nil
        do {
            switch words.first ?? "" {
            case "tctoken": return try token(request, handshake, listener)
            case "paos": return post(request, handshake, rest)
            case "refresh": return refresh(request, handshake, rest)
            case "hop": return try hop(request, rest)
            case "last-hop": return redirectToService(rest)
            case "comm-error": return communicationError(rest)
            case "report": return Self.json(report(rest == "last" ? nil : rest))
            case "messages": return Self.json(messages(rest == "last" ? nil : rest))
            case "listeners": return Self.json(try allListeners())
            case "": return try index(listener)
            default: return HTTPResponse(404, text: "not found\n")
            }
        } catch let error as ServiceOptions.Wrong {
            return HTTPResponse(400, text: error.message + "\n")
        } catch {
            return HTTPResponse(500, text: "\(error)\n")
        }
    }

    static func json(_ value: JSON?) -> HTTPResponse {
        guard let value else { return HTTPResponse(404, text: "no such run\n") }
        return HTTPResponse(200, "application/json", value.bytes + [0x0A])
    }

    private func allListeners() throws -> JSON {
        var members: [JSON.Member] = []
        for name in ListenerName.allCases { members.append(.init(name.rawValue, .string(try origin(name)))) }
        return .object(members)
    }

    /// Answers with a page that has a link for a browser.
    private func index(_ listener: ListenerName) throws -> HTTPResponse {
        let url = try tcTokenURL(on: listener)
        let link = "http://127.0.0.1:24727/eID-Client?tcTokenURL=\(Percent.encode(url))"
        let page = "<!doctype html><title>Testdienst</title><p><a href=\"\(link)\">Authenticate</a><p>\(url)\n"
        return HTTPResponse(200, "text/html; charset=utf-8", Array(page.utf8))
    }

    // MARK: PAOS

    private func post(_ request: HTTPRequest, _ handshake: Handshake, _ id: String?) -> HTTPResponse {
        guard request.method == "POST" else { return HTTPResponse(405, text: "only POST\n") }
        guard let conversation = conversation(handshake.pskIdentity ?? id ?? "") else {
            return HTTPResponse(404, text: "no such run\n")
        }
        guard conversation.options.mode == .attached || handshake.pskIdentity == conversation.id else {
            return HTTPResponse(403, text: "a pre-shared key is needed\n")
        }
        return conversation.answer(request, handshake)
    }

    // MARK: The refresh address

    private func refresh(_ request: HTTPRequest, _ handshake: Handshake, _ id: String?) -> HTTPResponse {
        guard let conversation = conversation(id ?? "") else { return HTTPResponse(404, text: "no such run\n") }
        conversation.locked { conversation in
            let query = request.query.sorted { $0.key < $1.key }.map { JSON.Member($0, .string($1)) }
            conversation.report.refresh = .object([
                .init("method", .string(request.method)), .init("query", .object(query)), .init("tls", handshake.json),
            ])
            conversation.report.event("refresh")
            if let major = request.query["ResultMajor"], major != "ok", major != "error" {
                conversation.report.note("the refresh address was called with ResultMajor \(major)")
            }
        }
        return Self.json(conversation.json)
    }

    private func communicationError(_ id: String?) -> HTTPResponse {
        guard let conversation = conversation(id ?? "") else { return HTTPResponse(404, text: "no such run\n") }
        conversation.locked { $0.report.event("communication error") }
        return Self.json(conversation.json)
    }

    /// Answers at the refresh address with another origin.
    private func hop(_ request: HTTPRequest, _ id: String?) throws -> HTTPResponse {
        guard let conversation = conversation(id ?? "") else { return HTTPResponse(404, text: "no such run\n") }
        conversation.locked { $0.report.event("hop", [.init("method", .string(request.method))]) }
        switch conversation.options.fault {
        case .refresh404: return HTTPResponse(404, text: "requested fault\n")
        case .refresh200: return HTTPResponse(200, text: "requested fault\n")
        case .refreshHTTP:
            return HTTPResponse(302, location: "http://localhost:\(try listeners.port(.plain))/refresh")
        case .refreshLoop: return HTTPResponse(302, location: "\(try origin(.webOther))/hop/\(conversation.id)")
        case .refreshRelative:
            let service = "\(conversation.origin)/refresh/\(conversation.id)"
            let forms = ["../hop/\(conversation.id)?hop=1", "?hop=2", "\(service.drop { $0 != "/" })"]
            let hop = Int(request.query["hop"] ?? "") ?? 0
            return HTTPResponse(302, location: forms.indices.contains(hop) ? forms[hop] : service)
        case .refreshEmpty: return HTTPResponse(302, location: "")
        case .refreshOneHop: return HTTPResponse(302, location: "\(conversation.origin)/refresh/\(conversation.id)")
        default: return HTTPResponse(302, location: "\(conversation.origin)/last-hop/\(conversation.id)")
        }
    }

    private func redirectToService(_ id: String?) -> HTTPResponse {
        guard let conversation = conversation(id ?? "") else { return HTTPResponse(404, text: "no such run\n") }
        return HTTPResponse(302, location: "\(conversation.origin)/refresh/\(conversation.id)")
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Name and version of the program that answers, as `?Status` shows them. TR-03124-1 2.2.3.
package struct ActivationIdentity: Sendable, Equatable {
    package let name: String
    package let version: String
    /// The members of the status, in the order of the output.
    package let fields: [(key: String, value: String)]

    package init(name: String, version: String, fields: [(key: String, value: String)]) {
        self.name = name
        self.version = version
        self.fields = fields
    }

    /// TR-03124-1 2.2.2.1.
    var serverHeader: String { "\(name)/\(version) (TR-03124-1/1.4)" }

    package static func == (left: ActivationIdentity, right: ActivationIdentity) -> Bool {
        left.serverHeader == right.serverHeader && left.fields.elementsEqual(right.fields, by: ==)
    }
}

/// A complete HTTP/1.1 answer. Each answer ends its connection.
package struct HTTPAnswer: Sendable, Equatable {
    package let status: Int
    /// `Name: value`.
    package let headers: [String]
    private let text: String
    /// A page for a person instead of `text`.
    private let page: Page?

    /// What has happened, and what the person does next. Each text is HTML.
    private struct Page: Sendable {
        let title: Phrase
        let text: Phrase
        let next: [Phrase]
    }

    package static func == (left: HTTPAnswer, right: HTTPAnswer) -> Bool {
        left.status == right.status && left.headers == right.headers && left.body() == right.body()
    }

    /// Reports that an authentication has begun and that the answer follows later. RFC 2518 10.1.
    package static let processing = Array("HTTP/1.1 102 Processing\r\n\r\n".utf8)

    private init(
        _ status: Int,
        _ identity: ActivationIdentity,
        _ headers: [String] = [],
        body: String = "",
        page: Page? = nil
    ) {
        self.status = status
        text = body
        self.page = page
        self.headers = ["Server: \(identity.serverHeader)"] + headers
    }

    /// Allows any web page to read the status, also pages of other computers.
    private static let crossOrigin = [
        "Access-Control-Allow-Origin: *", "Access-Control-Allow-Private-Network: true",
    ]
    private static let uncached = ["Cache-Control: no-cache, no-store", "Pragma: no-cache"]

    // MARK: Answers

    static func status(_ identity: ActivationIdentity) -> HTTPAnswer {
        let body = identity.fields.map { "\($0.key): \($0.value)\n" }.joined()
        return HTTPAnswer(200, identity, ["Content-Type: text/plain; charset=utf-8"] + crossOrigin, body: body)
    }

    static func statusJSON(_ identity: ActivationIdentity) -> HTTPAnswer {
        let object = JSON.object(identity.fields.map { JSON.Member($0.key, .string($0.value)) })
        let body = String(decoding: object.bytes, as: UTF8.self)
        return HTTPAnswer(200, identity, ["Content-Type: application/json"] + crossOrigin, body: body)
    }

    static func preflight(_ identity: ActivationIdentity) -> HTTPAnswer { HTTPAnswer(204, identity, crossOrigin) }

    static func forbidden(_ identity: ActivationIdentity) -> HTTPAnswer {
        let text = Phrase("badged refuses requests of other pages, and to other names than <code>localhost</code>.")
        return page(403, identity, Phrase("Refused"), text, next: again)
    }

    static func malformed(_ identity: ActivationIdentity) -> HTTPAnswer {
        page(400, identity, Phrase("Bad request"), Phrase("The request is not valid HTTP."), next: again)
    }

    static func notFound(_ identity: ActivationIdentity) -> HTTPAnswer {
        page(404, identity, Phrase("Not found"), Phrase("There is nothing at this address."), next: again)
    }

    static func upgradeRequired(_ identity: ActivationIdentity) -> HTTPAnswer {
        let text = Phrase("This address is for programs that open a WebSocket, not for a browser.")
        return page(426, identity, Phrase("WebSocket only"), text, next: again, headers: ["Upgrade: websocket"])
    }

    static func wrongWebSocketKey(_ identity: ActivationIdentity) -> HTTPAnswer {
        let text = Phrase("The header Sec-WebSocket-Key must be the base 64 of 16 bytes.")
        return page(400, identity, Phrase("Wrong WebSocket handshake"), text, next: Phrase("Correct the program."))
    }

    static func wrongWebSocketVersion(_ identity: ActivationIdentity) -> HTTPAnswer {
        let text = Phrase("WebSockets must have the version of RFC 6455, which is 13.")
        let next = Phrase("Update the program that opens the WebSocket.")
        return page(
            400,
            identity,
            Phrase("Wrong WebSocket version"),
            text,
            next: next,
            headers: ["Sec-WebSocket-Version: 13"]
        )
    }

    /// The answer at the end of an authentication or of ShowUI. TR-03124-1 2.7.
    package static func end(_ outcome: ActivationOutcome, _ identity: ActivationIdentity) -> HTTPAnswer {
        switch outcome {
        case .redirect(let url):
            guard !url.isEmpty, url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                return end(.failed, identity)
            }
            return HTTPAnswer(303, identity, ["Location: \(url)"] + uncached)
        case .shown: return HTTPAnswer(200, identity, crossOrigin)
        case .noToken:
            let text = Phrase("The service gave no valid TcToken, which is how an authentication begins.")
            return page(404, identity, Phrase("No authentication"), text, next: again, tellService)
        case .unreachable:
            let text = Phrase("badged got no answer of the service over a connection that it can trust.")
            let next = Phrase("Check whether this computer is online.")
            return page(404, identity, Phrase("No connection"), text, next: next, again, tellService)
        case .insecure:
            let text = Phrase("The address with which an authentication begins must begin with https.")
            return page(400, identity, Phrase("No safe address"), text, next: tellServiceNow)
        case .noAddress:
            let text = Phrase("The authentication has ended, but the service sent no valid address for your return.")
            return page(400, identity, Phrase("No return address"), text, next: again, tellService)
        case .busy:
            let next = Phrase("Finish or cancel it in the program that asks you for the PIN, then reload this page.")
            let text = Phrase("Another authentication or change of the PIN is running.")
            return page(409, identity, Phrase("Busy"), text, next: next)
        case .noUserInterface:
            let next = Phrase(
                """
                Start \u{201C}ID card online\u{201D} from the menu, or <code>badgectl agent</code> in a terminal, then \
                reload this page.
                """
            )
            let text = Phrase("No program can ask you for your consent.")
            return page(503, identity, Phrase("No user interface"), text, next: next)
        case .failed:
            let log = Phrase("If it fails again, <code>journalctl -u badged</code> says why.")
            let text = Phrase("badged could not finish the authentication.")
            return page(500, identity, Phrase("Internal error"), text, next: again, log)
        }
    }

    private static let again = Phrase("Go back to the page of the service and start the authentication again.")
    private static let tellServiceNow = Phrase("Tell the service.")
    private static let tellService = Phrase("If it fails again, tell the service.")

    private static func page(
        _ status: Int,
        _ identity: ActivationIdentity,
        _ title: Phrase,
        _ text: Phrase,
        next: Phrase...,
        headers: [String] = []
    ) -> HTTPAnswer {
        let page = Page(title: title, text: text, next: next)
        return HTTPAnswer(status, identity, ["Content-Type: text/html; charset=utf-8"] + headers + uncached, page: page)
    }

    /// The body, in the language of a catalogue.
    package func body(_ language: String = "en", _ catalogue: Catalogue = .english) -> String {
        guard let page else { return text }
        let title = catalogue.text(page.title)
        let next = page.next.map(catalogue.text).joined(separator: " ")
        return "<!doctype html><html lang=\"\(language)\"><title>\(title)</title><h1>\(title)</h1>"
            + "<p>\(catalogue.text(page.text))</p><p>\(next)</p></html>\n"
    }
}

/// The end of a request that the daemon has handled.
package enum ActivationOutcome: Sendable, Equatable {
    /// The browser goes to this URL, which has ResultMajor and ResultMinor.
    case redirect(String)
    case shown
    /// The service gave no TcToken.
    case noToken
    /// The service could not be reached over a trusted connection.
    case unreachable
    /// The address of the TcToken is not one of https.
    case insecure
    /// The TcToken has no address for the browser.
    case noAddress
    /// Another authentication or change of the PIN is running.
    case busy
    /// No client has registered as the user interface.
    case noUserInterface
    case failed
}

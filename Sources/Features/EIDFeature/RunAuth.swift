// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import EService
import Host
import Server
import Text

/// A browser that waits for an authentication.
@Loop final class BrowserVisit {
    fileprivate(set) var workflow: Workflow?
    /// Whether the browser has disconnected. Then no browser can return to the service.
    private(set) var hasLostBrowser = false

    func browserLeft() {
        // The daemon ends both connections, and a user who has cancelled may close the browser.
        if workflow?.isCancelled == false { hasLostBrowser = true }
        workflow?.cancel()
    }
}

/// RUN_AUTH. docs/protocol/eid.md, RUN_AUTH.
extension EIDFeature {
    func runAuth(_ call: Call) throws(Failure) -> Reply {
        let url = try call.arguments.sdk("tcTokenURL", .tcTokenURL, \.string) ?? ""
        guard Self.hasHost(url) else { throw Failure(.wrongArgument, "Validation of tcTokenURL failed") }
        let readerName = try call.arguments.sdk("reader", .reader, \.string)
        let developerMode = call.arguments["developerMode"]?.bool ?? false
        guard !developerMode || services.allowsDeveloperMode else {
            throw Failure(
                .wrongArgument,
                "Developer mode is off",
                advice: "set developer_mode = yes in [eid] of badged.conf, and restart badged"
            )
        }
        let authenticate = authentication(at: url, readerName: readerName, developerMode: developerMode)
        return .workflow("AUTH", announcedBy: WrittenMessage(AuthEndedMessage.name)) { workflow in
            Reply(AuthEndedMessage(end: await authenticate(workflow, nil)))
        }
    }

    /// Starts AUTH for a browser in the session of its user interface, which runs no workflow. `ended` is called before
    /// the user interface gets the final message.
    func authenticate(
        in session: Session,
        at url: String,
        ended: @escaping @Loop (AuthenticationResult) -> Void
    ) -> BrowserVisit {
        let visit = BrowserVisit()
        let authenticate = authentication(at: url)
        let permission: Permissions = [.cards, .agent]
        visit.workflow = session.start("AUTH", needs: permission, announcedBy: WrittenMessage(AuthEndedMessage.name)) {
            workflow in
            let end = await authenticate(workflow, visit)
            ended(end)
            return Reply(AuthEndedMessage(end: end))
        }
        return visit
    }

    private func authentication(
        at url: String,
        readerName: String? = nil,
        developerMode: Bool = false
    ) -> @Loop (Workflow, BrowserVisit?) async -> AuthenticationResult {
        { [registry, services, now, automaticPINs] workflow, visit in
            let authentication = Authentication(
                registry,
                workflow,
                services.connect(url, developerMode),
                readerName: readerName,
                now: now,
                today: services.today(),
                automaticPINs: automaticPINs,
                for: visit
            )
            let result = await authentication.run()
            var end = visit?.hasLostBrowser == true ? result.withoutBrowser : result
            if workflow.isDenied, end.reason == .userCancelled { end = end.withoutPermission }
            let outcome = end.reason.map { "\($0.rawValue) \(end.detail)" } ?? "success"
            let session = workflow.session
            let isNotable = end.reason != nil && end.reason != .userCancelled
            session.log(isNotable ? .notice : .info, "\(session.name): AUTH ended, \(outcome)")
            return end
        }
    }

    /// Whether the text is an address with a host. Other faults of an address appear when the address is used.
    static func hasHost(_ url: String) -> Bool {
        let bytes = Array(url.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let start = bytes.indices.first(where: { bytes[$0...].starts(with: [0x2F, 0x2F]) })
        else { return false }
        let scheme = bytes[..<start]
        guard scheme.isEmpty || scheme.last == UInt8(ascii: ":") && scheme.dropLast().allSatisfy(isSchemeCharacter)
        else {
            return false
        }
        let authority = bytes[(start + 2)...].prefix { !"/?#".utf8.contains($0) }
        let host = authority.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false).last ?? []
        return host.first.map { $0 != UInt8(ascii: ":") } ?? false
    }

    /// RFC 3986 3.1.
    private static func isSchemeCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

extension AuthenticationResult {
    /// The result of an authentication that was cancelled because the client has lost the permission.
    fileprivate var withoutPermission: AuthenticationResult {
        AuthenticationResult(
            result: ECardResult(.permissionLost),
            reason: .accessDenied,
            url: url,
            sent: sent,
            detail: "\(Workflow.denied)"
        )
    }

    /// The result after the browser has disconnected. This is the reason, unless another failure occurred first.
    fileprivate var withoutBrowser: AuthenticationResult {
        guard reason == nil || reason == .userCancelled else { return self }
        return AuthenticationResult(
            result: ECardResult(.browserUnreachable),
            reason: .browserSendFailed,
            url: nil,
            sent: sent,
            detail: "the browser has left"
        )
    }
}

extension ECardResult {
    /// `message` for a person. What a server has written is a quotation, so that nobody takes it for words of badged.
    var words: Phrase? {
        guard let message else { return nil }
        return origin == .server ? "The service says: \(message.description.quoted())" : message
    }
}

/// AUTH at the end.
struct AuthEndedMessage: Message {
    static let name: StaticString = "AUTH"
    let end: AuthenticationResult

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.object("result") { result in
            let minor = end.result.minor
            result.member("major", end.result.major.rawValue)
            if let minor { result.member("minor", minor.uri) }
            if let message = end.result.words { result.member("message", message) }
            if let description = minor?.description { result.member("description", description) }
            // The language of `message` and `description`.
            if minor != nil || end.result.message != nil { result.member("language", "en") }
            if let reason = end.reason { result.member("reason", reason.rawValue) }
            if let network = end.result.network { result.member("network", network.rawValue) }
        }
        if let url = end.url { object.member("url", url) }
        object.member("sent", end.sent.state.rawValue)
        if end.sent.state != .none { object.member("rights", end.sent.rights) }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import EService
import Host
import Server
import Wire

/// One RUN_AUTH or ACTIVATE, from its start to its end.
@Loop final class Authentication {
    fileprivate(set) var workflow: Workflow?
    /// Whether the browser that began the authentication has disconnected. Then no browser can return to the service.
    fileprivate var hasLostBrowser = false

    func browserLeft() {
        hasLostBrowser = true
        workflow?.cancel()
    }
}

/// RUN_AUTH. docs/protocol/eid.md, RUN_AUTH.
extension EIDFeature {
    func runAuth(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        func refuse(_ error: String) -> CommandOutcome {
            session.answer(AuthRefusedMessage(error: error), to: command)
            return .answered
        }
        let url: String
        switch command.string("tcTokenURL") {
        case .missing: return refuse("tcTokenURL cannot be undefined")
        case .invalid: return refuse("Invalid tcTokenURL")
        case .value(let text): url = text
        }
        guard Self.hasHost(url) else { return refuse("Validation of tcTokenURL failed") }
        var readerName: String?
        switch command.string("reader") {
        case .missing: break
        case .invalid: return refuse("Invalid name")
        case .value(let name): readerName = name
        }
        var developerMode = false
        if case .value(let flag) = command.bool("developerMode") { developerMode = flag }
        if let refusal = session.workflowRefusal() { return refuse(refusal) }
        session.takeStatusFlag(command)
        authenticate(in: session, at: url, readerName: readerName, developerMode: developerMode)
        return .answered
    }

    /// Starts AUTH in a session that runs no workflow. `ended` is called before the client gets the final message.
    @discardableResult
    func authenticate(
        in session: Session,
        at url: String,
        readerName: String? = nil,
        developerMode: Bool = false,
        ended: @escaping @Loop (AuthenticationResult) -> Void = { _ in }
    ) -> Authentication {
        let authentication = Authentication()
        let service = services.connect(url, developerMode)
        authentication.workflow = session.start("AUTH", announcedBy: AuthStartedMessage()) {
            [registry, services, now] workflow in
            let authenticate = Authenticate(
                registry,
                workflow,
                service,
                readerName: readerName,
                now: now,
                today: services.today()
            )
            let result = await authenticate.run()
            let end = authentication.hasLostBrowser ? result.withoutBrowser : result
            let outcome = end.reason.map { "\($0.rawValue) \(end.detail)" } ?? "success"
            session.server.log(end.reason.logLevel, "\(session.name): AUTH ended, \(outcome)")
            session.server.log(.debug, "\(session.name): AUTH took, in ms: \(authenticate.times.text)")
            ended(end)
            return AuthEndedMessage(end: end)
        }
        return authentication
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
    /// The result after the browser has disconnected. This is the reason, unless another failure occurred first.
    fileprivate var withoutBrowser: AuthenticationResult {
        guard reason == nil || reason == .userCancelled else { return self }
        return AuthenticationResult(
            result: ECardResult(.browserUnreachable),
            reason: .browserSendFailed,
            url: nil,
            detail: "the browser has left"
        )
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Text
import Wire
import Workflows

/// RUN_AUTH and the commands that it waits for. docs/protocol.md, RUN_AUTH.
extension Session {
    func runAuth(_ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        guard workflow == nil else { return false }
        func refuse(_ error: String) -> Bool {
            answer(.authRefused(error: error), request)
            return true
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
        if case .value(let flag) = command.bool("status") { wantsStatus = flag }

        authenticate(at: url, readerName: readerName, developerMode: developerMode)
        return true
    }

    /// Begins AUTH; no workflow may be running. `ended` hears how it ended, before the client does.
    @discardableResult
    func authenticate(
        at url: String,
        readerName: String? = nil,
        developerMode: Bool = false,
        ended: @escaping @Loop (AuthenticationResult) -> Void = { _ in }
    ) -> RunningWorkflow {
        let running = RunningWorkflow(.auth, self)
        workflow = running
        push(.authStarted)
        let services = server.services
        let authenticate = Authenticate(
            server.registry,
            running,
            services.connect(url, developerMode),
            readerName: readerName,
            now: server.now,
            today: services.today()
        )
        running.start { [self] in
            let run = await authenticate.run()
            let end = running.hasLostBrowser ? run.withoutBrowser : run
            await running.takeCardsBack()
            let outcome = end.reason.map { "\($0.rawValue) \(end.detail)" } ?? "success"
            server.log(.info, "\(name): AUTH ended, \(outcome)")
            server.log(.debug, "\(name): AUTH took, in ms: \(authenticate.times.text)")
            ended(end)
            push(.authEnded(AuthResult(end)))
            workflowEnded()
        }
        return running
    }

    /// Is it an address with a host? Whatever else is wrong with it shows when it is used.
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

    // MARK: Access rights

    /// The consent that waits for the client; nil: it does not fit the moment.
    private var openConsent: Consent? { workflow?.state == .accessRights ? workflow?.consent : nil }

    func getAccessRights(_ request: UnsafeRawBufferPointer?) -> Bool {
        guard let consent = openConsent else { return false }
        answer(.accessRights(AccessRightsState(consent), error: nil), request)
        return true
    }

    func getCertificate(_ request: UnsafeRawBufferPointer?) -> Bool {
        guard let consent = openConsent else { return false }
        answer(.certificate(CertificateState(consent.certificate)), request)
        return true
    }

    func accept() -> Bool {
        guard let consent = openConsent else { return false }
        workflow?.accept(consent)
        return true
    }

    func setAccessRights(_ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        guard var consent = openConsent else { return false }
        func refuse(_ error: String) -> Bool {
            answer(.accessRights(AccessRightsState(consent), error: error), request)
            return true
        }
        var names: [String] = []
        switch command.array("chat") {
        case .missing: return refuse("'chat' cannot be undefined")
        case .invalid: return refuse("Invalid 'chat' data")
        case .value(let entries):
            for entry in entries {
                guard let name = entry.string else { return refuse("Entry in 'chat' data needs to be string") }
                names.append(name)
            }
        }
        do throws(Consent.Refusal) {
            try consent.choose(names)
        } catch {
            return refuse(error.rawValue)
        }
        workflow?.consent = consent
        answer(.accessRights(AccessRightsState(consent), error: nil), request)
        return true
    }
}

extension AccessRightsState {
    init(_ consent: Consent) {
        self.init(
            required: consent.requiredNames,
            optional: consent.optionalNames,
            effective: consent.effectiveNames,
            transactionInfo: consent.transactionInfo,
            auxiliary: AuxiliaryState(
                ageVerificationDate: consent.ageVerificationDate,
                requiredAge: consent.requiredAge,
                validityDate: consent.validityDate,
                communityID: consent.communityID.map { Hex.encode($0) }
            )
        )
    }
}

extension CertificateState {
    fileprivate init(_ certificate: Consent.Certificate) {
        self.init(
            issuerName: certificate.issuerName,
            issuerURL: certificate.issuerURL,
            subjectName: certificate.subjectName,
            subjectURL: certificate.subjectURL,
            termsOfUsage: certificate.termsOfUsage,
            purpose: certificate.purpose,
            effectiveDate: certificate.effectiveDate,
            expirationDate: certificate.expirationDate
        )
    }
}

extension AuthResult {
    fileprivate init(_ end: AuthenticationResult) {
        let result = end.result
        self.init(
            major: result.major.rawValue,
            minor: result.minor?.uri,
            message: result.message,
            description: result.minor?.description,
            reason: end.reason?.rawValue,
            url: end.url
        )
    }
}

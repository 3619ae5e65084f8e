// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Document
package import Host
package import MobileDocument
package import Server
import Text

/// Reads mobile documents from phones. docs/protocol/mdoc.md.
@Loop package final class MdocFeature: Feature {
    /// Returns whom the site trusts at a time in seconds since 1970.
    package typealias Authorities = @Sendable (Int) async -> MdocAuthorities

    private static let run = "RUN_READ_MDOC"
    /// How long badged may take to find its readers, in seconds.
    private static let settling: Int64 = 5

    private let registry: ReaderRegistry
    private let authorities: Authorities
    private let identities: [String: DeviceRequest.Identity]
    private let bluetooth: (any MdocBluetooth)?
    private let virtualAuthority: @Sendable () -> [UInt8]?
    private let time: @Sendable () -> Int
    private let second: Int64
    private let isSettled: ContinuousClock.Instant
    private let now: Now
    private var readings = LabelledCounter(
        "badged_mdocs_total",
        "Readings of phones that have shown a mobile document, by verdict.",
        by: "verdict"
    )
    /// The readings that run, by their sessions.
    private var running: [ObjectIdentifier: ReadMdoc] = [:]

    /// - Parameters:
    ///   - registry: the readers.
    ///   - authorities: whom the site trusts.
    ///   - identities: the keys of the site that sign its requests, by name.
    ///   - bluetooth: nil without a radio.
    ///   - virtualAuthority: the certificate of the authority of virtual phones, which counts in virtual readers only.
    ///   - time: seconds since 1970.
    ///   - second: the milliseconds of a second of `timeout`; tests have shorter ones.
    ///   - now: the clock of dialogues.
    package init(
        _ registry: ReaderRegistry,
        authorities: @escaping Authorities,
        identities: [String: DeviceRequest.Identity] = [:],
        bluetooth: (any MdocBluetooth)? = nil,
        virtualAuthority: @escaping @Sendable () -> [UInt8]? = { nil },
        time: @escaping @Sendable () -> Int = { Int(Loop.wallClock / 1000) },
        second: Int64 = 1000,
        now: @escaping Now = { ContinuousClock.now }
    ) {
        self.registry = registry
        self.authorities = authorities
        self.identities = identities
        self.bluetooth = bluetooth
        self.virtualAuthority = virtualAuthority
        self.time = time
        self.second = second
        isSettled = now() + .milliseconds(Self.settling * second)
        self.now = now
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec(
                Self.run,
                MdocReport.name,
                permission: [.cards, .documents],
                isForIdle: true,
                refusal: Self.refusal,
                runReadMdoc
            ),
            CommandSpec("SET_ENGAGEMENT", "INSERT_CARD", permission: [.cards, .documents], setEngagement),
        ]
    }

    /// MDOC after a failure.
    private static func refusal(_ failure: Failure, _: Session) -> Reply {
        Reply(MdocReport.name) { object in
            object.member("success", false)
            object.member("error", failure.code.rawValue)
            object.member("message", failure.message)
            for member in failure.details {
                object.key(member.key)
                object.value(member.value)
            }
        }
    }

    package func health() async -> [HealthCheck] { await bluetooth?.checks() ?? [] }

    package func metrics() -> [Metric] { [readings.metric] }

    // MARK: Commands

    /// The text of a QR code, while a reading waits for a phone.
    private func setEngagement(_ call: Call) throws(Failure) -> Reply {
        guard call.session.workflow != nil, let reading = running[ObjectIdentifier(call.session)],
            reading.waitsForEngagement
        else { throw .badState }
        reading.accept(try MdocRequest.engagement(call.arguments, "value"))
        return .none
    }

    private func runReadMdoc(_ call: Call) throws(Failure) -> Reply {
        let request = try MdocRequest(call)
        let identity = try identity(request.identity)
        return .workflow("READ_MDOC", announcedBy: WrittenMessage("MDOC")) {
            [self] workflow throws(Failure) in
            try await read(request, identity, workflow)
        }
    }

    private func identity(_ wanted: MdocRequest.Identity) throws(Failure) -> DeviceRequest.Identity? {
        switch wanted {
        case .unsigned: return nil
        case .named(let name):
            guard let identity = identities[name] else {
                throw Failure(
                    .wrongArgument,
                    "identity must be a name in [mdoc] identities of badged.conf: there is no \(name)",
                    details: [JSON.Member("member", .string("identity"))]
                )
            }
            return identity
        case .only:
            guard identities.count <= 1 else {
                throw Failure(
                    .missingArgument,
                    "identity is missing: badged.conf has several, \(identities.keys.sorted().joined(separator: ", "))",
                    details: [JSON.Member("member", .string("identity"))]
                )
            }
            return identities.values.first
        }
    }

    private func read(
        _ request: MdocRequest,
        _ identity: DeviceRequest.Identity?,
        _ workflow: Workflow
    ) async throws(Failure) -> Reply {
        let (authorities, virtualAuthority, time) = (authorities, virtualAuthority, time)
        let reading = ReadMdoc(
            request,
            identity,
            workflow,
            registry,
            bluetooth,
            second: second,
            isSettled: isSettled,
            now: now
        ) { (request: DeviceRequest, binding, isVirtual) in
            // The phone may have been waited for for minutes.
            let time = time()
            var trusted = await authorities(time)
            if isVirtual, let bytes = virtualAuthority(), let certificate = try? DocumentCertificate(bytes) {
                try? trusted.anchors.trust(certificate)
            }
            return MdocCheck(request, binding, trusted, at: time)
        }
        let id = ObjectIdentifier(workflow.session)
        running[id] = reading
        defer { running[id] = nil }
        let report = MdocReport(outcome: try await reading.run(), request: request)
        guard report.secretCapacity < MdocReport.maximumLength else { throw .messageTooLarge }
        readings.add(report.verdict.rawValue)
        workflow.session.log(.info, "\(workflow.session.name): phone read, \(report.verdict.rawValue)")
        return Reply(report)
    }
}

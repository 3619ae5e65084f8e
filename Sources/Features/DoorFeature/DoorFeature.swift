// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorOpening
import DoorReaders
package import Host
package import Scanners
package import Server
package import Store
import Text

/// Scans for door readers that advertise over Bluetooth, and reports them. docs/protocol/door-readers.md.
@Loop package final class DoorFeature: Feature {
    /// The Bluetooth radio; nil if badged runs without one.
    let radio: Radio?
    /// Opens readers; nil if badged connects to none.
    let opener: DoorOpener?
    /// The keys of the users; nil if badged has no key store.
    let credentials: (any CredentialProvider)?
    /// The keys of readers with changing addresses; nil if badged has no store.
    let readerKeys: ReaderKeys?
    private var scans: [ObjectIdentifier: ScanSubscription] = [:]
    var openingClients: [ObjectIdentifier: OpeningClient] = [:]
    /// How many openings run on each adapter, also those that wait for their keys.
    var openingsByAdapter: [Int: Int] = [:]
    private var lastToken = 0
    /// The clients that receive OPENING_REPORT.
    var openingWatchers: [ObjectIdentifier: Session] = [:]
    var openingCount = 0
    var countedOpenings = LabelledCounter(
        "badged_openings_total",
        "Openings of door readers that have ended.",
        by: "status",
        "decision"
    )
    var openingTimes = Histogram(0.25, 0.5, 1, 2, 5, 10)

    package init(
        _ radio: Radio?,
        opener: DoorOpener? = nil,
        credentials: (any CredentialProvider)? = nil,
        store: StateStore? = nil
    ) {
        self.radio = radio
        readerKeys = store.map { ReaderKeys($0) }
        self.opener = opener
        self.credentials = credentials
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_SCAN", ScanMessage.name, permission: .scan, refusal: scanRefusal, startScan),
            CommandSpec("STOP_SCAN", ScanMessage.name, permission: .scan) { [self] call in
                endScan(of: call.session)
                return Reply(ScanMessage(scan: scanState(of: call.session)))
            },
            CommandSpec("GET_SCAN", ScanMessage.name, permission: .scan) { [self] call in
                Reply(ScanMessage(scan: scanState(of: call.session)))
            },
            CommandSpec("GET_DOOR_READER_LIST", DoorReaderListMessage.name, permission: .scan, listReaders),
            CommandSpec("GET_CLOSEST_DOOR_READER", ClosestDoorReaderMessage.name, permission: .scan, findClosest),
        ] + openingCommands + readerKeyCommands
    }

    /// The keys of readers, for GET_HEALTH.
    package static var recordKinds: [RecordKind] { [ReaderKeys.recordKind] }

    private func scanRefusal(_ failure: Failure, _ session: Session) -> Reply {
        var state = scanState(of: session)
        state.error = failure.message
        state.errorAgo = nil
        return Reply(ScanMessage(scan: state))
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        let new = session.permissions
        if !new.isSuperset(of: [.scan, .open]) { denyOpenings(of: session) }
        if !new.contains(.openings), openingWatchers.removeValue(forKey: ObjectIdentifier(session)) != nil {
            session.push(OpeningsMessage(isWatching: false, error: Workflow.denied))
        }
        guard let scan = scans[ObjectIdentifier(session)] else { return }
        // Without `admin` the scan would continue without the captures that its client has asked for.
        guard !new.contains(.scan) || scan.isCapturing && !new.contains(.admin) else { return }
        endScan(of: session)
        var state = scanState(of: session)
        state.error = Workflow.denied
        state.errorAgo = nil
        session.push(ScanMessage(scan: state), coalescing: "SCAN")
    }

    package func sessionEnded(_ session: Session) {
        endScan(of: session)
        endOpenings(of: session)
        openingWatchers[ObjectIdentifier(session)] = nil
    }

    package func health() async -> [HealthCheck] { await radio?.checks() ?? [] }

    package func metrics() -> [Metric] {
        var metrics = [
            countedOpenings.metric,
            Metric(
                "badged_opening_duration_seconds",
                .histogram,
                "How long openings of door readers take.",
                [.init(.histogram(openingTimes))]
            ),
        ]
        guard let radio else { return metrics }
        var readers: [String: Int] = [:]
        for reader in radio.tracker.readers where reader.isActive(at: radio.now) {
            readers[reader.profile.rawValue, default: 0] += 1
        }
        let received = radio.received.sorted { $0.key < $1.key }.map {
            Metric.Sample(.whole($1), [Metric.Label("backend", $0)])
        }
        metrics += [
            .gauge("badged_door_readers", "Door readers that are received.", by: "profile", readers),
            Metric("badged_advertisements_total", .counter, "Advertisements that were received.", received),
            .counter("badged_scan_restarts_total", "Steps that were taken to recover the radio.", radio.restarts),
        ]
        return metrics
    }

    /// The filter of the scan of a session; nil if it does not scan.
    func scanFilter(of session: Session) -> ScanFilter? { scans[ObjectIdentifier(session)]?.filter }

    /// A number that identifies an opening or a question.
    func nextToken() -> Int {
        lastToken += 1
        return lastToken
    }

    // MARK: Scan

    private func startScan(_ call: Call) throws(Failure) -> Reply {
        let session = call.session
        guard let radio else {
            let fault = ScannerFault.disabled
            throw Failure(.init("NoRadio"), fault.text, advice: fault.advice)
        }
        let settings = try ScanSettings(call.arguments, mayCapture: session.permissions.contains(.admin))
        loadReaderKeys()
        let new = ScanSubscription(session, self, radio, settings)
        forgetReaders(of: session)
        let old = scans.updateValue(new, forKey: ObjectIdentifier(session))
        radio.add(new)
        // End the old scan after the start of the new one, so that the radio does not stop in between.
        if let old { radio.remove(old) }
        session.log(.info, "\(session.name) asks for a scan")
        return Reply(ScanMessage(scan: scanState(of: session)), then: new.begin)
    }

    private func endScan(of session: Session) {
        guard let old = scans.removeValue(forKey: ObjectIdentifier(session)) else { return }
        radio?.remove(old)
        session.log(.info, "\(session.name) has stopped its scan")
    }

    func scanState(of session: Session) -> ScanState {
        var state = ScanState()
        state.isWanted = scans[ObjectIdentifier(session)] != nil
        guard let radio else { return state }
        let now = radio.now
        state.isListening = radio.state.isListening
        state.backend = radio.state.backend
        state.adapters = radio.state.adapters
        state.lastAdvertAgo = radio.lastReceived.map { now - $0 }
        state.error = radio.state.error
        state.errorAgo = radio.state.errorSince.map { now - $0 }
        return state
    }

    // MARK: Readers

    private func listReaders(_ call: Call) throws(Failure) -> Reply {
        let activeOnly = try call.arguments.flag("activeOnly") ?? true
        guard let radio, let filter = scans[ObjectIdentifier(call.session)]?.filter else {
            return Reply(DoorReaderListMessage(readers: []))
        }
        let now = radio.now
        let readers = radio.tracker.readers(filter, activeOnly: activeOnly, at: now)
        return Reply(DoorReaderListMessage(readers: readers.map { DoorReaderState($0, at: now, withHistory: true) }))
    }

    private func findClosest(_ call: Call) throws(Failure) -> Reply {
        Reply(closest(try call.arguments.openingType(), scans[ObjectIdentifier(call.session)]?.filter))
    }

    private func closest(_ type: OpeningType, _ filter: ScanFilter?) -> ClosestDoorReaderMessage {
        guard let radio, let filter else { return .none(ReaderTracker.Absence.none.rawValue) }
        guard filter.openingTypes.contains(type) else { return .none(ReaderTracker.Absence.notSupported.rawValue) }
        let now = radio.now
        switch radio.tracker.closest(for: type, filter, at: now) {
        case .reader(let reader): return .reader(DoorReaderState(reader, at: now, withHistory: true))
        case .none(let absence): return .none(absence.rawValue)
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorOpening
import DoorReaders
package import Host
package import Scanners
package import Server
import Text
import Wire

/// Scans for door readers that advertise over Bluetooth, and reports them. docs/protocol/door-readers.md.
@Loop package final class DoorFeature: Feature {
    /// The Bluetooth radio; nil if badged runs without one.
    let radio: Radio?
    /// Opens readers; nil if badged connects to none.
    let opener: DoorOpener?
    /// The keys of the users; nil if badged has no key store.
    let credentials: (any CredentialProvider)?
    private var scans: [ObjectIdentifier: ScanSubscription] = [:]
    var openingClients: [ObjectIdentifier: OpeningClient] = [:]
    private var lastToken = 0

    package init(_ radio: Radio?, opener: DoorOpener? = nil, credentials: (any CredentialProvider)? = nil) {
        (self.radio, self.opener, self.credentials) = (radio, opener, credentials)
    }

    package var commands: [CommandSpec] { scanCommands + openingCommands }

    private var scanCommands: [CommandSpec] {
        [
            CommandSpec("START_SCAN", permission: .scan) { [self] session, command in
                startScan(session, command)
                return .answered
            },
            CommandSpec("STOP_SCAN", permission: .scan) { [self] session, command in
                endScan(of: session)
                session.answer(ScanMessage(scan: scanState(of: session)), to: command)
                return .answered
            },
            CommandSpec("GET_SCAN", permission: .scan) { [self] session, command in
                session.answer(ScanMessage(scan: scanState(of: session)), to: command)
                return .answered
            },
            CommandSpec("GET_DOOR_READER_LIST", permission: .scan) { [self] session, command in
                listReaders(session, command)
                return .answered
            },
            CommandSpec("GET_CLOSEST_DOOR_READER", permission: .scan) { [self] session, command in
                findClosest(session, command)
                return .answered
            },
        ]
    }

    package func sessionEnded(_ session: Session) {
        endScan(of: session)
        endOpenings(of: session)
    }

    package func health() async -> [HealthCheck] { await radio?.checks() ?? [] }

    /// The filter of the scan of a session; nil if it does not scan.
    func scanFilter(of session: Session) -> ScanFilter? { scans[ObjectIdentifier(session)]?.filter }

    /// A number that identifies an opening or a question.
    func nextToken() -> Int {
        lastToken += 1
        return lastToken
    }

    // MARK: Scan

    private func startScan(_ session: Session, _ command: Command) {
        func refuse(_ error: String) {
            var state = scanState(of: session)
            (state.error, state.errorAgo) = (error, nil)
            session.answer(ScanMessage(scan: state), to: command)
        }
        guard let radio else { return refuse("badged runs without the Bluetooth radio") }
        let new: ScanSubscription
        do throws(ParameterError) {
            let settings = try ScanSettings(command, mayCapture: session.permissions.contains(.admin))
            new = ScanSubscription(session, self, radio, settings)
        } catch {
            return refuse(error.text)
        }
        forgetReaders(of: session)
        let old = scans.updateValue(new, forKey: ObjectIdentifier(session))
        radio.add(new)
        // End the old scan after the start of the new one, so that the radio does not stop in between.
        if let old { radio.remove(old) }
        session.answer(ScanMessage(scan: scanState(of: session)), to: command)
        session.server.log(.info, "\(session.name) scans")
        new.begin()
    }

    private func endScan(of session: Session) {
        guard let old = scans.removeValue(forKey: ObjectIdentifier(session)) else { return }
        radio?.remove(old)
        session.server.log(.info, "\(session.name) has stopped its scan")
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

    private func listReaders(_ session: Session, _ command: Command) {
        var activeOnly = true
        switch command.bool("activeOnly") {
        case .missing: break
        case .invalid:
            let error = ParameterError(parameter: "activeOnly").text
            return session.answer(DoorReaderListRefusedMessage(error: error), to: command)
        case .value(let value): activeOnly = value
        }
        guard let radio, let filter = scans[ObjectIdentifier(session)]?.filter else {
            return session.answer(DoorReaderListMessage(readers: []), to: command)
        }
        let now = radio.now
        let readers = radio.tracker.readers(filter, activeOnly: activeOnly, at: now)
        session.answer(
            DoorReaderListMessage(readers: readers.map { DoorReaderState($0, at: now, withHistory: true) }),
            to: command
        )
    }

    private func findClosest(_ session: Session, _ command: Command) {
        session.answer(closest(command, scans[ObjectIdentifier(session)]?.filter), to: command)
    }

    private func closest(_ command: Command, _ filter: ScanFilter?) -> ClosestDoorReaderMessage {
        switch command.string("openingType") {
        case .missing: return .refused("Opening type cannot be undefined")
        case .invalid: return .refused("Invalid opening type")
        case .value(let word):
            guard let type = OpeningType(name: word) else { return .refused("Unknown opening type") }
            guard let radio, let filter else { return .none(ReaderTracker.Absence.none.rawValue) }
            guard filter.openingTypes.contains(type) else {
                return .none(ReaderTracker.Absence.notSupported.rawValue)
            }
            let now = radio.now
            switch radio.tracker.closest(for: type, filter, at: now) {
            case .success(let reader): return .reader(DoorReaderState(reader, at: now, withHistory: true))
            case .failure(let absence): return .none(absence.rawValue)
            }
        }
    }
}

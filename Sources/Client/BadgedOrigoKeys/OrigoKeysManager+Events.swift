// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Synchronization
import Text

/// Handles the events of badged about readers and openings.
extension OrigoKeysManager {
    func receive(_ event: Event, _ connection: DaemonConnection) {
        switch event.message {
        case is DoorReader:
            if let reader = event.json["reader"].flatMap(OrigoKeysReader.init) { received(reader) }
        case let lost as DoorReaderLost: lose(lost.id)
        case let question as DoorOpeningQuestion: ask(question, connection)
        case let opening as DoorOpening where opening.state == "connected": connected(opening)
        case let result as DoorOpeningResult: openingEnded(result)
        default: break
        }
    }

    // MARK: Readers

    private func received(_ reader: OrigoKeysReader) {
        guard state.withLock({ $0.scan != nil }) else { return }
        if let uuid = reader.beaconUUID { return received(beacon: reader, uuid) }
        state.withLock { $0.readers[reader.id] = reader }
        notify { [weak self] delegate in
            guard let self, delegate.origoKeysShouldInteract(withScannedReader: reader) else { return }
            if state.withLock({ $0.shown.insert(reader.id).inserted }) {
                delegate.origoKeysReaderAppeared(reader)
            } else {
                delegate.origoKeysReaderUpdated(reader)
            }
        }
    }

    private func received(beacon: OrigoKeysReader, _ uuid: String) {
        guard uuid == region else { return }
        let isFirst = state.withLock { state in
            defer { state.beacons[beacon.id] = beacon }
            return state.beacons.isEmpty
        }
        if isFirst { notify { ($0 as? any OrigoKeysManagerExtendedDelegate)?.origoKeysUserDidEnterReaderRegion(uuid) } }
    }

    /// Forgets an iBeacon, or all of them, and notifies the app if it was the last one.
    func leaveRegion(_ id: String? = nil) {
        let isLast = state.withLock { state in
            let hadSome = !state.beacons.isEmpty
            state.beacons = state.beacons.filter { id != nil && $0.key != id }
            return hadSome && state.beacons.isEmpty
        }
        guard isLast, let region else { return }
        notify { ($0 as? any OrigoKeysManagerExtendedDelegate)?.origoKeysUserDidExitReaderRegion(region) }
    }

    private func lose(_ id: String) {
        leaveRegion(id)
        guard let reader = state.withLock({ $0.readers.removeValue(forKey: id) }) else { return }
        notify { [weak self] delegate in
            if self?.state.withLock({ $0.shown.remove(id) }) != nil { delegate.origoKeysReaderDisappeared(reader) }
        }
    }

    // MARK: Openings

    private func ask(_ question: DoorOpeningQuestion, _ connection: DaemonConnection) {
        guard let reader = state.withLock({ $0.readers[question.readerID] }) else { return }
        let type = OrigoKeysOpeningType(name: question.openingType)
        notify { [weak self] delegate in
            guard let self else { return }
            let isAllowed =
                delegate.origoKeysShouldInteract(withScannedReader: reader)
                && delegate.origoKeysShouldAttempt(toOpen: reader, openingType: type)
            calls.start { [weak self] in await self?.answer(question, reader, isAllowed, connection) }
        }
    }

    /// Answers a question. A reader that is being opened meanwhile, by a call of the app, is not opened once more.
    private func answer(
        _ question: DoorOpeningQuestion,
        _ reader: OrigoKeysReader,
        _ isAllowed: Bool,
        _ connection: DaemonConnection
    ) async {
        let type = OrigoKeysOpeningType(name: question.openingType)
        let number = isAllowed ? state.withLock { $0.begin(reader, type, isCall: false) } : nil
        do throws(ClientError) {
            let answer = try await connection.answerOpening(question, allow: number != nil)
            guard case .ended(let result)? = answer, let opening = take(number, of: reader.id) else { return }
            ended(opening, OrigoKeysOpeningResult(result))
        } catch {
            // The question was too old, or the connection has ended.
            _ = take(number, of: reader.id)
        }
    }

    private func connected(_ message: DoorOpening) {
        let opening = state.withLock { state in
            state.openings[message.readerID]?.isConnected = true
            return state.openings[message.readerID]
        }
        if let opening { notify { $0.origoKeysDidConnect(to: opening.reader, openingType: opening.type) } }
    }

    /// Ends all openings, because the connection to badged has ended. The next connection reports its readers again.
    func connectionEnded() {
        let (openings, readers) = state.withLock { state in
            defer { state.openings = [:] }
            return (state.openings.values.map(\.self), state.readers.keys.sorted())
        }
        for opening in openings { ended(opening, OrigoKeysOpeningResult(.bluetoothCommunicationFailed)) }
        for id in readers { lose(id) }
        leaveRegion()
    }

    private func openingEnded(_ result: DoorOpeningResult) {
        guard let id = result.readerID,
            let opening = state.withLock({ $0.openings.removeValue(forKey: id) })
        else { return }
        ended(opening, OrigoKeysOpeningResult(result))
    }

    /// Forgets the opening with this number.
    /// - Returns: the opening; nil if it has ended.
    func take(_ number: Int?, of reader: String) -> Opening? {
        state.withLock { state in
            guard let number, state.openings[reader]?.number == number else { return nil }
            return state.openings.removeValue(forKey: reader)
        }
    }

    /// Reports the end of an opening that was taken out of `openings`.
    func ended(_ opening: Opening, _ result: OrigoKeysOpeningResult) {
        if opening.isCall { end() }
        let (reader, type) = (opening.reader, opening.type)
        notify { delegate in
            if opening.isConnected {
                delegate.origoKeysDidDisconnect(from: reader, openingType: type, openingResult: result)
            } else {
                delegate.origoKeysDidFailToConnect(to: reader, openingType: type, openingStatus: result.status)
            }
        }
    }
}

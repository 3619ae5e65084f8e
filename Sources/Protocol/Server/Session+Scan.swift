// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc
import Scanners
import Text
import Wire

/// The commands about door readers. docs/protocol.md, Door readers.
extension Session {
    private struct Refusal: Error {
        var error: String

        init(_ error: String) { self.error = error }
        init(parameter: String) { error = "Parameter '\(parameter)' is invalid" }
    }

    // MARK: Scan

    func startScan(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        func refuse(_ error: String) {
            var state = scanState()
            (state.error, state.errorAgo) = (error, nil)
            answer(.door(.scan(state)), request)
        }
        guard let radio = server.radio else { return refuse("badged runs without the Bluetooth radio") }
        let new: ScanSubscription
        do throws(Refusal) {
            new = try subscription(command, radio)
        } catch {
            return refuse(error.error)
        }
        let old = scan
        scan = new
        radio.add(new)
        // After the new one, so that the radio does not stop in between.
        if let old { radio.remove(old) }
        answer(.door(.scan(scanState())), request)
        server.log(.info, "\(name) scans")
        new.begin()
    }

    func stopScan(_ request: UnsafeRawBufferPointer?) {
        endScan()
        answer(.door(.scan(scanState())), request)
    }

    func endScan() {
        guard let old = scan else { return }
        scan = nil
        server.radio?.remove(old)
        server.log(.info, "\(name) does not scan any more")
    }

    private func subscription(_ command: Command, _ radio: Radio) throws(Refusal) -> ScanSubscription {
        var filter = ScanFilter()
        if let types: [OpeningType] = try list(command, "openingTypes", { $0.string.flatMap(OpeningType.init(name:)) })
        {
            guard !types.isEmpty else { throw Refusal(parameter: "openingTypes") }
            filter.openingTypes = types.reduce(into: []) { $0.formUnion(OpeningTypes($1)) }
        }
        if let codes: [Int] = try list(
            command,
            "lockServiceCodes",
            { $0.int.flatMap { LockServiceCode.range.contains($0) ? $0 : nil } }
        ) {
            filter.lockServiceCodes = Set(codes)
        }
        if let profiles: [ReaderProfile] = try list(
            command,
            "profiles",
            { $0.string.flatMap(ReaderProfile.init(rawValue:)) }
        ) {
            guard !profiles.isEmpty else { throw Refusal(parameter: "profiles") }
            filter.profiles = Set(profiles)
        }
        let mode = try word(command, "mode", ScanDemand.Mode.init(rawValue:)) ?? .powerSaving
        let adverts = try word(command, "adverts", ScanSubscription.Adverts.init(rawValue:))
        if adverts != nil, !permissions.contains(.admin) {
            throw Refusal("Parameter 'adverts' needs the permission admin")
        }
        var updates = 500
        switch command.int("updates") {
        case .missing: break
        case .invalid: throw Refusal(parameter: "updates")
        case .value(let number):
            guard let number, (0...60_000).contains(number) else { throw Refusal(parameter: "updates") }
            updates = number
        }
        return ScanSubscription(
            self,
            radio,
            filter,
            mode: mode,
            updates: Milliseconds(updates),
            adverts: adverts
        )
    }

    /// Most entries of a list.
    private static let longestList = 1000

    private func list<Value>(
        _ command: Command,
        _ key: StaticString,
        _ read: (JSON) -> Value?
    ) throws(Refusal) -> [Value]? {
        switch command.array(key) {
        case .missing: return nil
        case .invalid: throw Refusal(parameter: key.description)
        case .value(let items):
            let values = items.prefix(Self.longestList).compactMap(read)
            guard values.count == items.count else { throw Refusal(parameter: key.description) }
            return values
        }
    }

    private func word<Value>(
        _ command: Command,
        _ key: StaticString,
        _ read: (String) -> Value?
    ) throws(Refusal) -> Value? {
        switch command.string(key) {
        case .missing: return nil
        case .invalid: throw Refusal(parameter: key.description)
        case .value(let text):
            guard let value = read(text) else { throw Refusal(parameter: key.description) }
            return value
        }
    }

    func scanState() -> ScanState {
        var state = ScanState()
        state.isWanted = scan != nil
        guard let radio = server.radio else { return state }
        let now = radio.now
        state.isListening = radio.state.isListening
        state.backend = radio.state.backend
        state.adapters = radio.state.adapters.map {
            .init(address: $0.address, name: $0.name, isPowered: $0.isPowered)
        }
        state.lastAdvertAgo = radio.lastReceived.map { now - $0 }
        state.error = radio.state.error
        state.errorAgo = radio.state.errorSince.map { now - $0 }
        return state
    }

    // MARK: Readers

    func getDoorReaderList(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        var activeOnly = true
        switch command.bool("activeOnly") {
        case .missing: break
        case .invalid:
            return answer(.door(.refused(.list, error: "Parameter 'activeOnly' is invalid")), request)
        case .value(let value): activeOnly = value
        }
        guard let radio = server.radio, let filter = scan?.filter else { return answer(.door(.list([])), request) }
        let now = radio.now
        let readers = radio.tracker.readers(filter, activeOnly: activeOnly, at: now)
        answer(.door(.list(readers.map { state(of: $0, at: now, withHistory: true) })), request)
    }

    func getClosestDoorReader(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        func refuse(_ error: String) { answer(.door(.refused(.closest, error: error)), request) }
        switch command.string("openingType") {
        case .missing: refuse("Opening type cannot be undefined")
        case .invalid: refuse("Invalid opening type")
        case .value(let word):
            guard let type = OpeningType(name: word) else { return refuse("Unknown opening type") }
            guard let radio = server.radio, let filter = scan?.filter else {
                return answer(.door(.closest(nil, reason: ReaderTracker.Absence.none.rawValue)), request)
            }
            guard filter.openingTypes.contains(type) else {
                return answer(.door(.closest(nil, reason: ReaderTracker.Absence.notSupported.rawValue)), request)
            }
            let now = radio.now
            switch radio.tracker.closest(for: type, filter, at: now) {
            case .success(let reader):
                answer(.door(.closest(state(of: reader, at: now, withHistory: true), reason: nil)), request)
            case .failure(let absence): answer(.door(.closest(nil, reason: absence.rawValue)), request)
            }
        }
    }

    func state(of reader: DoorReader, at now: Milliseconds, withHistory: Bool) -> DoorReaderState {
        let signal = reader.signal
        var strength = DoorReaderState.Strength(
            age: now - signal.lastSeen,
            average: signal.average,
            last: signal.last,
            level: signal.level,
            list: signal.list(at: now)
        )
        strength.mean = signal.mean(at: now)
        strength.median = signal.median(at: now)
        if withHistory { strength.history = signal.history }
        var state = DoorReaderState(
            id: reader.id,
            profile: reader.profile.rawValue,
            address: reader.address.description,
            addressType: reader.address.kind.rawValue,
            strength: strength
        )
        let types = reader.openingTypes.types
        state.name = reader.name
        state.lockServiceCode = reader.lockServiceCode
        state.openingTypes = types.map(\.name)
        state.limits = types.map { type in
            let limit = reader.limit(type)
            return .init(type: type.name, value: limit.value, source: limit.source.rawValue)
        }
        state.distance = reader.distance.map { .init(metres: $0.metres, low: $0.low, high: $0.high) }
        state.inRange = Set(reader.inRange.types.map(\.name))
        state.isActive = reader.isActive(at: now)
        state.coolsDown = reader.coolsDown(at: now)
        state.isUnavailable = reader.isUnavailable
        let since1970 = Self.since1970 - now
        state.firstSeen = since1970 + reader.firstSeen
        state.lastSeen = since1970 + reader.lastSeen
        state.adverts = reader.adverts
        state.interval = reader.interval
        state.txPower = reader.txPower
        state.adapter = "hci\(reader.adapter)"
        return state
    }

    /// Milliseconds.
    private static var since1970: Milliseconds {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Milliseconds(time.tv_sec) * 1000 + Milliseconds(time.tv_nsec) / 1_000_000
    }
}

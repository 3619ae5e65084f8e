// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Foundation
import Synchronization
import Text

extension OrigoKeysManager {
    // MARK: Scan

    /// Starts to look for readers; a scan that runs is replaced.
    ///
    /// If the delegate allows it, badged opens readers that come into range: with `seamless` in `openingTypes` hands
    /// free, otherwise with `proximity`, otherwise with `enhancedTap`.
    ///
    /// - Parameters:
    ///   - scanMode: how much of the time the radio listens.
    ///   - openingTypes: the ways of opening, or their raw values.
    ///   - lockServiceCodes: the codes of Seos-style readers; empty: 2. Readers of other profiles have no code.
    ///   - error: why the scan was not started. With the code `bluetoothLENotAvailable` it begins when Bluetooth works.
    public func startReaderScan(
        in scanMode: OrigoKeysScanMode,
        supportedOpeningTypes openingTypes: [Any],
        lockServiceCodes: [Any],
        error: NSErrorPointer
    ) {
        let types = openingTypes.compactMap(OrigoKeysOpeningType.init(element:)).filter { $0 != .unknown }
        let codes = lockServiceCodes.compactMap { Int("\($0)") }
        guard !types.isEmpty, types.count == openingTypes.count, codes.count == lockServiceCodes.count else {
            error?.pointee = NSError(
                .badScanConfiguration,
                "the scan needs opening types, and lock service codes that are numbers"
            )
            return
        }
        // With `applicationSpecific` the program may choose any reader, so the scan has no filter.
        let filter = types.contains(.applicationSpecific) ? nil : types.compactMap(\.name)
        let options = ScanOptions(
            mode: scanMode == .optimizePerformance ? .performance : .powerSaving,
            openingTypes: filter,
            lockServiceCodes: codes.isEmpty ? nil : codes,
            profiles: region.map { _ in ["seos", "pkoc", "aliro", "ccc", "ibeacon"] }
        )
        let failure = wait(error, or: nil) { [self] in try await scan(try await calls.connection(), options, types) }
        if let failure { error?.pointee = failure }
    }

    /// Starts the scan on a connection, and remembers it if badged has not refused it.
    /// - Returns: why the radio does not work now.
    private func scan(
        _ connection: DaemonConnection,
        _ options: ScanOptions,
        _ types: [OrigoKeysOpeningType]
    ) async throws -> NSError? {
        let status: ScanStatus
        do throws(ClientError) {
            status = try await connection.startScan(options)
        } catch {
            if case .refused(let text) = error { throw NSError(.badScanConfiguration, text) }
            throw error
        }
        state.withLock { state in
            (state.scan, state.openingTypes) = (options, types)
            state.resetPause()
        }
        let automatic = [.seamless, .proximity, .enhancedTap].first { types.contains($0) }?.name
        // A user without the permission to open still receives readers.
        _ = try? await connection.setAutomaticOpening(automatic == nil ? .off : .ask, by: automatic ?? "proximity")
        return status.error.map { NSError(.bluetoothLENotAvailable, $0) }
    }

    /// Changes the ways of opening of a scan that runs.
    public func setSupportedOpeningTypes(_ openingTypes: [Any]) {
        let types = openingTypes.compactMap(OrigoKeysOpeningType.init(element:))
        let running = state.withLock { state in
            state.openingTypes = types
            return state.scan
        }
        guard var options = running else { return }
        options.openingTypes = types.contains(.applicationSpecific) ? nil : types.compactMap(\.name)
        _ = try? calls.wait { [self, options] in
            try await scan(try await calls.connection(), options, types)
        }
    }

    public func stopReaderScan() {
        state.withLock { state in
            state.scan = nil
            state.readers = [:]
            state.shown = []
        }
        leaveRegion()
        _ = try? calls.wait { [self] in
            let connection = try await calls.connection()
            _ = try await connection.setAutomaticOpening(.off)
            _ = try await connection.stopScan()
        }
    }

    /// Whether the app wants to scan. The radio may be off meanwhile.
    public func isScanning() -> Bool { state.withLock { $0.scan != nil } }

    // MARK: Readers

    /// Returns the readers that were received in the last ten seconds, strongest first; none without a scan.
    public func listReaders() -> [OrigoKeysReader] {
        let answer = wait(nil, or: JSON.null) { [self] in
            try await calls.connection().request("GET_DOOR_READER_LIST").json
        }
        return (answer["readers"]?.array ?? []).compactMap(OrigoKeysReader.init).filter { $0.beaconUUID == nil }
    }

    /// Returns the closest reader, if it is in range for a way of opening and was not opened just now.
    public func closestReader(withinRangeOf openingType: OrigoKeysOpeningType) -> OrigoKeysReader? {
        guard let type = openingType.name else { return nil }
        guard openingType != .applicationSpecific else {
            return listReaders().first { $0.isInRange(for: .applicationSpecific) }
        }
        let answer = wait(nil, or: JSON.null) { [self] in
            let members = [JSON.Member("openingType", .string(type))]
            return try await calls.connection().request("GET_CLOSEST_DOOR_READER", members).json
        }
        return answer["reader"].flatMap(OrigoKeysReader.init)
    }

    /// An addition of badged: the iBeacons of the region that are received now, by identifier. They are not readers.
    public func beacons() -> [OrigoKeysReader] { state.withLock { $0.beacons }.sorted { $0.key < $1.key }.map(\.value) }

    /// Has no effect: a scan finds all readers.
    public func enableNearByReaders(_ enable: Bool) {}

    /// The same as `listReaders()`. badged keeps no favourites.
    public func getPrioritizedNearByReaders() -> [OrigoKeysReader] { listReaders() }

    // MARK: Opening

    /// Opens a reader. The delegate is called after the connection and at the end. If the opening was not begun,
    /// `error` says why, and there is no callback; `apiIsBusy`, too, while badged opens this reader by itself.
    public func connect(to reader: OrigoKeysReader, openingType: OrigoKeysOpeningType, error: NSErrorPointer) {
        guard let type = openingType.name, state.withLock({ $0.openingTypes.contains(openingType) }) else {
            error?.pointee = NSError(.openingTypeNotPermitted, "the scan was not started for \(openingType)")
            return
        }
        guard let number = begin(reader, openingType) else {
            error?.pointee = Self.busy
            return
        }
        wait(error, or: ()) { [self] in
            do {
                let answer = try await calls.connection().openDoorReader(reader.id, by: type)
                guard case .ended(let result) = answer, let opening = take(number, of: reader.id) else { return }
                ended(opening, OrigoKeysOpeningResult(result))
            } catch {
                // An opening that has ended with the connection has its callback, and so no error.
                guard take(number, of: reader.id) != nil else { return }
                end()
                throw error
            }
        }
    }

    /// Takes the right to open a reader by a call.
    /// - Returns: the number of the opening; nil: another call runs, or badged opens this reader already.
    private func begin(_ reader: OrigoKeysReader, _ type: OrigoKeysOpeningType) -> Int? {
        guard begin() else { return nil }
        let number = state.withLock { $0.begin(reader, type, isCall: true) }
        if number == nil { end() }
        return number
    }

    /// An addition of badged for programs without the sensors of a phone: opens the closest reader by `motion`.
    public func unlockGesture() {
        notify { $0.origoKeysUserDidUnlockGesture() }
        guard let reader = closestReader(withinRangeOf: .motion) else { return }
        connect(to: reader, openingType: .motion, error: nil)
    }

    /// Sets the time limits of openings.
    public func setTimeoutConfiguration(_ timeoutConfiguration: OrigoKeysTimeoutConfiguration) {
        func limit(_ seconds: Double) -> Duration {
            let isNumber = seconds > 0.05
            return .milliseconds(Int((isNumber ? min(seconds, 60) : 0.05) * 1000))
        }
        let limits = (
            limit(timeoutConfiguration.maxTimeBetweenFragments), limit(timeoutConfiguration.maxTimeBetweenApdus),
            limit(timeoutConfiguration.maxConnectionTime)
        )
        _ = try? calls.wait { [self] in
            // If badged cannot be reached now, the next connection gets the limits.
            let connection = try? await calls.connection()
            state.withLock { $0.timeouts = limits }
            if let connection { await setTimeouts(of: connection) }
        }
    }

    private func setTimeouts(of connection: DaemonConnection) async {
        guard let limits = state.withLock({ $0.timeouts }) else { return }
        _ = try? await connection.setOpeningTimeouts(
            fragment: limits.fragment,
            apdu: limits.apdu,
            connect: limits.connect
        )
    }

    /// Prepares a new connection as the app wants it, and reads its events.
    func prepare(_ connection: DaemonConnection) async {
        calls.start { [weak self, connection] in
            for await event in connection.events { self?.receive(event, connection) }
            self?.connectionEnded()
            await self?.resume()
        }
        await setTimeouts(of: connection)
        let (options, types) = state.withLock { ($0.scan, $0.openingTypes) }
        if let options { _ = try? await scan(connection, options, types) }
    }

    /// Connects again while the app wants to scan, because badged may have been restarted. badged that serves no more
    /// clients accepts a connection and closes it.
    private func resume() async {
        while isScanning() {
            try? await Task.sleep(for: state.withLock { $0.nextPause() })
            guard isScanning(), (try? await calls.connection()) == nil else { return }
        }
    }
}

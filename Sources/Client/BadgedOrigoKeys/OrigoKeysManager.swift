// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Dispatch
public import Foundation
import Synchronization
import Text

/// Keeps keys and opens door readers with them, through badged. The names are those of the Origo SDK.
///
/// Calls that end with a callback return at once. All others wait for badged; do not call them on the pool of `async`
/// functions. `startup()` need not be the first call.
public final class OrigoKeysManager: NSObject, Sendable {
    /// An opening that has begun.
    struct Opening {
        let number: Int
        let reader: OrigoKeysReader
        let type: OrigoKeysOpeningType
        /// Whether the app has called `connect`. false: badged opens the reader because it came into range.
        let isCall: Bool
        var isConnected = false
    }

    struct State {
        /// Whether a call that ends with a callback runs.
        var isBusy = false
        /// The scan that the app wants.
        var scan: ScanOptions?
        var openingTypes: [OrigoKeysOpeningType] = []
        var timeouts: (fragment: Duration, apdu: Duration, connect: Duration)?
        /// The readers that were received, by identifier.
        var readers: [String: OrigoKeysReader] = [:]
        /// The iBeacons of the region that are received, by identifier.
        var beacons: [String: OrigoKeysReader] = [:]
        /// The readers that appeared to the app.
        var shown: Set<String> = []
        /// By identifier of the reader: of openings of one reader, badged carries out one.
        var openings: [String: Opening] = [:]
        private var lastOpening = 0
        var unlockOpeningType = OrigoKeysUnlockOpeningType.none
        /// The pause before the next try to connect again. It doubles until badged answers START_SCAN.
        private(set) var pause = Self.firstPause

        static let firstPause = Duration.milliseconds(100)

        mutating func resetPause() { pause = Self.firstPause }

        mutating func nextPause() -> Duration {
            defer { pause = min(pause * 2, .seconds(10)) }
            return pause
        }

        /// Notes that an opening begins.
        /// - Returns: its number; nil: an opening of this reader runs already.
        mutating func begin(_ reader: OrigoKeysReader, _ type: OrigoKeysOpeningType, isCall: Bool) -> Int? {
            guard openings[reader.id] == nil else { return nil }
            lastOpening += 1
            openings[reader.id] = Opening(number: lastOpening, reader: reader, type: type, isCall: isCall)
            return lastOpening
        }
    }

    /// Unchecked: the reference crosses threads, but the delegate is called on the callback queue alone.
    private struct Reference: @unchecked Sendable {
        weak var delegate: (any OrigoKeysManagerDelegate)?
    }

    let state = Mutex(State())
    /// The UUID of the region to watch, in lower case; nil: none.
    let region: String?
    let wantsPhoneWallet: Bool
    private let reference: Reference
    private let queue: DispatchQueue
    private let link = Mutex<DaemonCalls?>(nil)
    private let socketPath: String?

    /// Makes a manager that uses the default socket, and calls back on the main queue.
    public convenience init(delegate: any OrigoKeysManagerDelegate, options: [AnyHashable: Any]) {
        self.init(delegate: delegate, options: options, socketPath: nil)
    }

    /// - Parameters:
    ///   - delegate: receives the results of calls and the events of readers. The reference is weak.
    ///   - options: values of `OrigoKeysOption` names.
    ///   - socketPath: the socket of badged; nil: the default of this system.
    ///   - callbackQueue: the serial queue on which the delegate is called. The main queue needs `dispatchMain()` or a run
    ///     loop; an app without these passes another queue.
    public init(
        delegate: any OrigoKeysManagerDelegate,
        options: [AnyHashable: Any],
        socketPath: String?,
        callbackQueue: DispatchQueue = .main
    ) {
        reference = Reference(delegate: delegate)
        self.socketPath = socketPath
        queue = callbackQueue
        region = Self.region(options)
        wantsPhoneWallet = options[OrigoKeysOptionTargets].map { "\($0)".contains("Wallet") } ?? false
        super.init()
    }

    /// Reads the options about the region.
    private static func region(_ options: [AnyHashable: Any]) -> String? {
        let uuid = options[OrigoKeysOptionBeaconUUID].map { "\($0)".lowercased() }
        guard let uuid, uuid != "default", !uuid.isEmpty else {
            let isOn = options[OrigoKeysOptionEnableBeaconBLEScan].map {
                ["true", "yes", "1"].contains("\($0)".lowercased())
            }
            return uuid != nil || isOn == true ? OrigoKeysDefaultBeaconUUID : nil
        }
        return uuid
    }

    // MARK: Calls

    typealias Callback = @Sendable (any OrigoKeysManagerDelegate) -> Void

    func notify(_ callback: @escaping Callback) {
        queue.async { [reference] in
            if let delegate = reference.delegate { callback(delegate) }
        }
    }

    var calls: DaemonCalls {
        link.withLock { link in
            if let link { return link }
            let new = DaemonCalls(socketPath) { [weak self] connection in await self?.prepare(connection) }
            link = new
            return new
        }
    }

    /// Sends a command for keys.
    func ask(_ command: String, _ members: [JSON.Member] = []) async throws -> JSON {
        try await calls.connection().keyRequest(command, members).get()
    }

    /// Sends a command for keys and waits. A failure is in `error`; then the answer is null.
    func ask(_ command: String, _ members: [JSON.Member] = [], _ error: NSErrorPointer) -> JSON {
        wait(error, or: .null) { [self] in try await ask(command, members) }
    }

    /// Runs a call and waits. A failure is in `error`; then the result is `other`.
    func wait<Value: Sendable>(
        _ error: NSErrorPointer,
        or other: Value,
        _ body: @escaping @Sendable () async throws -> Value
    ) -> Value {
        do throws(NSError) {
            return try calls.wait(body)
        } catch let failure {
            error?.pointee = failure
            return other
        }
    }

    static let busy = NSError(.apiIsBusy, "another call has not ended: wait for its callback")

    /// Takes the right to run a call that ends with a callback.
    func begin() -> Bool {
        state.withLock { state in
            defer { state.isBusy = true }
            return !state.isBusy
        }
    }

    func end() { state.withLock { $0.isBusy = false } }

    private func run(
        _ failed: @escaping @Sendable (any OrigoKeysManagerDelegate, NSError) -> Void,
        _ body: @escaping @Sendable (OrigoKeysManager) async throws -> Callback
    ) {
        guard begin() else { return notify { failed($0, Self.busy) } }
        calls.start { [self] in
            let callback: Callback
            do {
                callback = try await body(self)
            } catch {
                callback = { failed($0, NSError.of(error)) }
            }
            end()
            notify(callback)
        }
    }

    // MARK: Endpoint

    /// Checks that badged can be reached and that its store can be used.
    public func startup() {
        run({ $0.origoKeysDidFail(toStartup: $1) }) { manager in
            _ = try await manager.ask("START")
            return { $0.origoKeysDidStartup() }
        }
    }

    /// Returns if there is an endpoint.
    /// - Throws: `NSError` with the code `endpoint` if there is none.
    public func isEndpointSetup() throws {
        var error: NSError?
        let info = endpointInfo(&error)
        if let error { throw error }
        guard info.isSetup else {
            throw NSError(.endpoint, "there is no endpoint: call setupEndpoint", name: "Endpoint")
        }
    }

    /// Sets up the endpoint with an invitation: a code such as XXXX-XXXX-XXXX-XXXX, its address, or an enrolment file.
    public func setupEndpoint(_ invitationCode: String) {
        run({ $0.origoKeysDidFail(toSetupEndpoint: $1) }) { manager in
            _ = try await manager.ask("SETUP_ENDPOINT", [.init("invitation", .string(invitationCode))])
            return { $0.origoKeysDidSetupEndpoint() }
        }
    }

    /// Compares the keys with the issuer.
    public func updateEndpoint() {
        let begun = Date()
        run({ $0.origoKeysDidFail(toUpdateEndpoint: $1) }) { manager in
            let summary = OrigoKeysEndpointUpdateSummary(try await manager.ask("UPDATE_ENDPOINT"), begun: begun)
            return { delegate in
                delegate.origoKeysDidUpdateEndpoint()
                delegate.origoKeysDidUpdateEndpoint(with: summary)
            }
        }
    }

    /// Removes the endpoint with all keys of this user. A failure is reported as that of an update.
    public func unregisterEndpoint() {
        run({ $0.origoKeysDidFail(toUpdateEndpoint: $1) }) { manager in
            _ = try await manager.ask("REMOVE_ENDPOINT", [.init("confirm", .bool(true))])
            return { $0.origoKeysDidTerminateEndpoint() }
        }
    }

    /// Returns what is known of the endpoint. With an error nothing is set up in the result.
    public func endpointInfo(_ error: NSErrorPointer) -> OrigoKeysEndpointInfo {
        OrigoKeysEndpointInfo(ask("GET_ENDPOINT", [], error))
    }

    /// Returns the identifier of the endpoint; empty without one.
    public func getOrigoEndPointID() -> String { endpointInfo(nil).id }

    /// Returns the version of badged; empty if badged cannot be reached.
    public func apiVersion() -> String {
        wait(nil, or: "") { [self] in try await calls.connection().info().version }
    }
}

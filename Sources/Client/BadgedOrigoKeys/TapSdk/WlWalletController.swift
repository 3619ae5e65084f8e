// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Dispatch
import Synchronization
import Text

/// Adds passes for doors, whose keys badged keeps. The names are those of the WaveLynx SDK.
///
/// Every call returns at once, and ends with one call of the delegate; `saveToWallet` may report before that the pass
/// is pending.
public final class WlWalletController: Sendable {
    /// The controller of this process. It uses the default socket, and calls back on the main queue.
    public static let shared = WlWalletController()

    /// Unchecked: the reference crosses threads, but the delegate is called on the callback queue alone.
    private struct Reference: @unchecked Sendable {
        weak var delegate: (any WlWalletControllerDelegate)?
    }

    private let socketPath: String?
    private let queue: DispatchQueue
    private let reference = Mutex(Reference())

    /// - Parameters:
    ///   - socketPath: the socket of badged; nil: the default of this system.
    ///   - callbackQueue: the serial queue on which the delegate is called. The main queue needs `dispatchMain()` or a run
    ///     loop; an app without these passes another queue.
    public init(socketPath: String? = nil, callbackQueue: DispatchQueue = .main) {
        self.socketPath = socketPath
        queue = callbackQueue
    }

    /// Receives the results. The reference is weak.
    public var delegate: (any WlWalletControllerDelegate)? {
        get { reference.withLock(\.self).delegate }
        set {
            let new = Reference(delegate: newValue)
            reference.withLock { $0 = new }
        }
    }

    /// Asks whether badged can keep passes.
    public func checkEligibility() {
        run { connection throws(ClientError) in
            let answer = try await connection.keyRequest("WALLET_CHECK")
            let isEligible = (try? answer.get()) != nil
            return { $0.wlWalletController($1, onEligibilityResult: isEligible) }
        }
    }

    /// Makes a new key, and a blob that proves it.
    public func startPassProvisioning() {
        run { connection throws(ClientError) in
            // A user without an endpoint gets one; otherwise this changes nothing.
            _ = try await connection.keyRequest("SETUP_ENDPOINT")
            switch try await connection.keyRequest("WALLET_PREPARE") {
            case .success(let answer):
                let blob = answer["blob"]?.string ?? ""
                return { $0.wlWalletController($1, onProvisioningReady: blob) }
            case .failure(let failure): return Self.error(failure.reason)
            }
        }
    }

    /// Saves a pass.
    ///
    /// - Parameters:
    ///   - parentViewController: what a phone shows the pass over; badged shows none.
    ///   - thumbnail: a picture; badged shows none.
    ///   - displayName: the name of the key; empty: the name that the issuer has given.
    ///   - description: a text; badged shows none.
    ///   - saveLink: the reference of the backend: an enrolment file, or the thumbprint of the key.
    public func saveToWallet(
        parentViewController: Any? = nil,
        thumbnail: Any? = nil,
        displayName: String = "",
        description: String = "",
        saveLink: String
    ) {
        run { [self] connection throws(ClientError) in
            let display = JSON.object([.init("displayName", .string(displayName))])
            let members = [JSON.Member("reference", .string(saveLink)), JSON.Member("display", display)]
            let id = try await connection.send("WALLET_SAVE", members)
            for await event in connection.events {
                switch event.name {
                case "WALLET_PENDING": notify { $0.wlWalletControllerProvisioningPending($1) }
                case "WALLET_SAVED": return { $0.wlWalletControllerProvisioningSuccess($1) }
                case "WALLET_ERROR": return Self.error(event.json["reason"]?.string ?? "")
                default: if event.answers(id) { return Self.error("") }
                }
            }
            throw connection.ending ?? .closed
        }
    }

    // MARK: Calls

    private typealias Callback = @Sendable (any WlWalletControllerDelegate, WlWalletController) -> Void

    private static func error(_ reason: String) -> Callback {
        let result = WlPassResult(rawValue: reason) ?? .controllerNotBound
        return { $0.wlWalletController($1, onError: result) }
    }

    private func notify(_ callback: @escaping Callback) {
        let reference = reference.withLock(\.self)
        queue.async { [self] in
            if let delegate = reference.delegate { callback(delegate, self) }
        }
    }

    /// Runs a call on a connection of its own.
    private func run(_ body: @escaping @Sendable (DaemonConnection) async throws(ClientError) -> Callback) {
        Task { [self] in
            do throws(ClientError) {
                let connection = try await DaemonConnection.connect(to: socketPath ?? SocketPath.standard)
                defer { connection.close() }
                notify(try await body(connection))
            } catch {
                notify(Self.error(""))
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
public import Dispatch
import Synchronization
import Text

/// Starts workflows, answers their questions, and reports what happens to all registered callbacks.
///
/// Every call returns at once. Without a connection a command is not sent, and `onWrapperError` reports that.
public final class WorkflowController: Sendable {
    /// The number of digits of a PIN.
    public static let pinLength = 6
    /// The number of digits of the transport PIN, which is in the letter that came with the card.
    public static let transportPinLength = 5
    /// The number of digits of a PUK.
    public static let pukLength = 10
    /// The number of digits of a CAN.
    public static let canLength = 6

    private struct State {
        var callbacks: [WeakCallbacks] = []
        var isStarted = false
        var isStarting = false
        /// `question` of the last ENTER message that was reported to the callbacks.
        var question: JSON?
    }

    private let transport: any SDKConnection
    private let queue: DispatchQueue
    private let state = Mutex(State())

    /// - Parameters:
    ///   - transport: the connection to the SDK.
    ///   - callbackQueue: the serial queue on which callbacks run. The main queue needs `dispatchMain()` or a run loop;
    ///     an app without these passes another queue.
    public init(transport: any SDKConnection = DaemonTransport(), callbackQueue: DispatchQueue = .main) {
        self.transport = transport
        queue = callbackQueue
    }

    // Otherwise the transport would keep the connection, and with it a running workflow.
    deinit { transport.stop() }

    /// Whether commands can be sent now.
    public var isStarted: Bool { state.withLock { $0.isStarted } }

    /// Connects; `onStarted` or `onWrapperError` follows. A second call does nothing.
    public func start() {
        let isFirst = state.withLock { state in
            defer { state.isStarting = true }
            return !state.isStarting
        }
        guard isFirst else { return }
        transport.start { [weak self] event in self?.receive(event) }
    }

    /// Disconnects, which ends a running workflow; `onDisconnected` follows.
    public func stop() { transport.stop() }

    // MARK: Callbacks

    /// Reports everything to these callbacks from now on. The reference is weak; registering twice has no effect.
    public func registerCallbacks(_ callbacks: any WorkflowCallbacks) {
        state.withLock { state in
            state.callbacks.removeAll { $0.isGone }
            if !state.callbacks.contains(where: { $0.refers(to: callbacks) }) {
                state.callbacks.append(WeakCallbacks(callbacks))
            }
        }
    }

    public func unregisterCallbacks(_ callbacks: any WorkflowCallbacks) {
        state.withLock { state in
            state.callbacks.removeAll { $0.isGone || $0.refers(to: callbacks) }
        }
    }

    private func receive(_ event: SDKEvent) {
        switch event {
        case .connected:
            state.withLock { ($0.isStarted, $0.question) = (true, nil) }
            report { $0.onStarted() }
        case .message(let message):
            // This runs on the queue. Until the callbacks have received the new question, an answer is for the earlier
            // one.
            queue.async { [self] in
                if message.isQuestion { state.withLock { $0.question = message["question"] } }
                reportNow { message.deliver(to: $0) }
            }
        case .ended(let error):
            let wasStarted = state.withLock { state in
                defer { (state.isStarted, state.isStarting) = (false, false) }
                return state.isStarted
            }
            let method = wasStarted ? "WorkflowController::connection" : "WorkflowController::start"
            let failure = error.map { WrapperError(msg: method, error: $0) }
            report { callbacks in
                if let failure { callbacks.onWrapperError(error: failure) }
                callbacks.onDisconnected(error: failure)
            }
        }
    }

    private func report(_ body: @escaping @Sendable (any WorkflowCallbacks) -> Void) {
        queue.async { [self] in reportNow(body) }
    }

    private func reportNow(_ body: (any WorkflowCallbacks) -> Void) {
        // A callback may change the list; the change counts from the next message on.
        for callbacks in state.withLock({ $0.callbacks }) { callbacks.object.map(body) }
    }

    // MARK: Commands

    func send(_ command: SDKCommand) {
        guard isStarted else {
            let error = WrapperError(msg: command.name, error: "AusweisApp2 SDK Wrapper not started")
            return report { $0.onWrapperError(error: error) }
        }
        transport.send(command)
    }

    /// Answers the question that was reported last, and no later one. docs/protocol/eid.md, RUN_CHANGE_PIN.
    func answer(_ command: String, _ value: SecretBox?) {
        let question = state.withLock { $0.question }
        send(SDKCommand(command, question.map { [.init("question", $0)] } ?? [], value: value))
    }
}

/// A weak reference to callbacks. Unchecked: the reference crosses threads, but the callbacks are used on the callback
/// queue alone.
private struct WeakCallbacks: @unchecked Sendable {
    private(set) weak var object: (any WorkflowCallbacks)?

    init(_ object: any WorkflowCallbacks) { self.object = object }

    var isGone: Bool { object == nil }

    func refers(to other: any WorkflowCallbacks) -> Bool { object === other }
}

/// The entry point of an app. An app that imports this module instead of `AusweisApp2SDKWrapper` uses badged.
public enum AA2SDKWrapper {
    /// The controller of this process. It uses the default socket and calls back on the main queue.
    public static let workflowController = WorkflowController()
}

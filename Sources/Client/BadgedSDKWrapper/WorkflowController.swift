// SPDX-License-Identifier: Apache-2.0
public import Dispatch
import Secrets
import Synchronization
import Text
import Wire

/// Starts workflows, answers their questions, and tells all registered callbacks what happens.
///
/// Every call returns at once. A command without a connection is not sent, and said so by `onWrapperError`.
public final class WorkflowController: Sendable {
    /// Digits of a PIN.
    public static let pinLength = 6
    /// Digits of the PIN of a new card, in the letter that came with it.
    public static let transportPinLength = 5
    /// Digits of a PUK.
    public static let pukLength = 10
    /// Digits of a CAN.
    public static let canLength = 6

    private struct State {
        var callbacks: [WeakCallbacks] = []
        var isStarted = false
        var isStarting = false
        /// `question` of the ENTER message that callbacks were told last.
        var question: JSON?
    }

    private let transport: any SDKConnection
    private let queue: DispatchQueue
    private let state = Mutex(State())

    /// - Parameters:
    ///   - transport: the way to the SDK.
    ///   - callbackQueue: where callbacks run, one at a time. The main queue needs an app that runs it, by
    ///     `dispatchMain()` or a run loop; others take a queue of their own.
    public init(transport: any SDKConnection = DaemonTransport(), callbackQueue: DispatchQueue = .main) {
        (self.transport, queue) = (transport, callbackQueue)
    }

    /// Are commands taken?
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

    /// From now on these callbacks are told everything. They are held weakly, and each but once.
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
            tell { $0.onStarted() }
        case .message(let message):
            // Not before they are told: what an app says until then it says of the question before.
            queue.async { [self] in
                if message.isQuestion { state.withLock { $0.question = message["question"] } }
                tellNow { message.tell($0) }
            }
        case .ended(let error):
            let wasStarted = state.withLock { state in
                defer { (state.isStarted, state.isStarting) = (false, false) }
                return state.isStarted
            }
            let method = wasStarted ? "WorkflowController::connection" : "WorkflowController::start"
            let failure = error.map { WrapperError(msg: method, error: $0) }
            tell { callbacks in
                if let failure { callbacks.onWrapperError(error: failure) }
                callbacks.onDisconnected(error: failure)
            }
        }
    }

    private func tell(_ body: @escaping @Sendable (any WorkflowCallbacks) -> Void) {
        queue.async { [self] in tellNow(body) }
    }

    private func tellNow(_ body: (any WorkflowCallbacks) -> Void) {
        // As they are registered now; what one of them does to the list counts from the next message on.
        for callbacks in state.withLock({ $0.callbacks }) { callbacks.object.map(body) }
    }

    // MARK: Commands

    func send(_ command: SDKCommand) {
        guard isStarted else {
            let error = WrapperError(msg: command.name, error: "AusweisApp2 SDK Wrapper not started")
            return tell { $0.onWrapperError(error: error) }
        }
        transport.send(command)
    }

    /// The answer to the question that callbacks were told last, and to no later one. docs/protocol.md, RUN_CHANGE_PIN.
    func answer(_ command: String, _ value: SecretBox?) {
        let question = state.withLock { $0.question }
        send(SDKCommand(command, question.map { [.init("question", $0)] } ?? [], value: value))
    }
}

/// A reference that keeps nobody alive. Callbacks are used on the callback queue alone; what crosses threads here is the
/// reference.
private struct WeakCallbacks: @unchecked Sendable {
    private(set) weak var object: (any WorkflowCallbacks)?

    init(_ object: any WorkflowCallbacks) { self.object = object }

    var isGone: Bool { object == nil }

    func refers(to other: any WorkflowCallbacks) -> Bool { object === other }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import Synchronization
import Text

/// Reports the steps of a reading in STATUS.
final class MdocProgress: Sendable {
    enum Step: String {
        case engaging
        case connecting
        case waitingForHolder
        case receiving
        case checking

        fileprivate var percent: Int {
            switch self {
            case .engaging: 0
            case .connecting: 20
            case .waitingForHolder: 40
            case .receiving: 60
            case .checking: 90
            }
        }
    }

    private static let interval = Duration.milliseconds(200)

    private struct State {
        /// Counts the steps: a report of bytes that is late does not bring the last one back.
        var step = 0
        /// When bytes were reported.
        var time: ContinuousClock.Instant?
    }

    private let show: @Loop @Sendable (Step, Int?) -> Void
    private let state = Mutex(State())

    @Loop init(_ workflow: Workflow) {
        show = { [weak workflow] step, bytes in
            guard let workflow, !workflow.isOver, !workflow.isCancelled else { return }
            let count = bytes.map { [JSON.Member("bytes", .number(String($0)))] } ?? []
            workflow.progress(step.percent, details: [JSON.Member("step", .string(step.rawValue))] + count)
        }
    }

    @Loop func report(_ step: Step) {
        state.withLock { $0 = State(step: $0.step + 1) }
        show(step, nil)
    }

    /// Reports the bytes that have come: the first ones, and then five times a second at most. May be called from any
    /// thread.
    func received(_ bytes: Int) {
        let step: Int? = state.withLock { state in
            let now = ContinuousClock.now
            if let last = state.time, now - last < Self.interval { return nil }
            state.time = now
            return state.step
        }
        guard let step else { return }
        Task { @Loop in
            if state.withLock({ $0.step == step }) { show(.receiving, bytes) }
        }
    }
}

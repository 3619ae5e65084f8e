// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
package import ReadersVirtual
import Synchronization

extension PICC {
    /// A virtual card as a contactless card. Each call is a new insertion of the card.
    package static func virtual(
        _ card: VirtualCard,
        _ technology: Technology = .a,
        frameSizeCode: UInt8 = 8,
        waitingTimeCode: UInt8 = 9
    ) -> PICC {
        let insertion = insertions.wrappingAdd(1, ordering: .relaxed).newValue
        let executor = executors[Int(insertion % UInt64(executors.count))]
        return PICC(
            technology,
            frameSizeCode: frameSizeCode,
            waitingTimeCode: waitingTimeCode,
            historicalBytes: card.historicalBytes,
            onReset: { _ = wait(executor) { await card.reset() } },
            application: { command in
                switch wait(executor, { await card.exchange(command, insertion: insertion) }) {
                case .answer(let bytes): .answer(bytes)
                case .mute, nil: .mute
                case .removed: .removed
                }
            }
        )
    }

    private static let insertions = Atomic<UInt64>(0)

    /// Run the cards. All threads of the pool may wait for a field whose card works. A card that computes for long must not
    /// keep those of other tests from answering in time, so there are several.
    private static let executors = (0..<16).map { _ in QueueExecutor() }

    private final class QueueExecutor: TaskExecutor {
        private let queue = DispatchQueue(label: "virtual-picc")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }

    /// Waits for an async function, which runs on a thread of its own.
    private static func wait<Value: Sendable>(
        _ executor: QueueExecutor,
        _ body: @escaping @Sendable () async -> Value
    ) -> Value? {
        let result = Mutex<Value?>(nil)
        let done = DispatchSemaphore(value: 0)
        let box = Box(result: result)
        Task(executorPreference: executor) {
            let value = await body()
            box.result.withLock { $0 = value }
            done.signal()
        }
        done.wait()
        return box.result.withLock { $0 }
    }

    private final class Box<Value: Sendable>: Sendable {
        let result: Mutex<Value?>
        init(result: consuming Mutex<Value?>) { self.result = result }
    }
}

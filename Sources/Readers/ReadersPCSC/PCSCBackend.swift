// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Host
package import ISO7816
package import Readers
import Synchronization
import Threads

/// Readers of pcscd, through libpcsclite.
package final class PCSCBackend: ReaderBackend {
    package let name = "pcsc"
    private let watch = Mutex<Watch?>(nil)
    private let gate = ReaderGate()

    package init() {}

    deinit { watch.withLock { $0 }?.stop() }

    /// Starts watching pcscd; a second stream ends the first. Readers and cards come as events of pcscd, `added` before
    /// `inserted`, `removed` last. A reader whose features were not known at first, or that another program has held
    /// exclusively and lets go, comes again as `changed`.
    package var events: AsyncStream<ReaderEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        let new = Watch(events: continuation)
        // On another thread: whoever cancels the consumer holds the runtime's lock on that task here, and a thread that
        // publishes an event holds the watch's lock and wants the runtime's.
        continuation.onTermination = { [weak new] _ in
            if let new { _ = startThread("pcsc-stop") { new.stop() } }
        }
        let old = watch.withLock { watch in
            defer { watch = new }
            return watch
        }
        old?.stop()
        return stream
    }

    /// Waits while another program holds a transaction, and while an earlier connection to the same reader lasts. Ends
    /// with an error at once when the task is cancelled or the card leaves.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let watch = watch.withLock({ $0 }) else { throw .serviceUnavailable }
        let reader = insertion.reader
        let turn = gate.enter(reader)
        let first = watch.atEnd(of: insertion) { turn.fill(false) }
        defer { watch.forget(first) }
        guard await turn.value(whenCancelled: false) else { throw Self.whyNot(insertion, watch) }
        guard let thread = ThreadQueue(thread: "pcsc-card", onEnd: { [gate] in gate.leave(reader) }) else {
            gate.leave(reader)
            throw .other("no thread left for the card")
        }

        let wait = TransactionWait()
        let outcome = OneShot<Result<PCSCConnection, CardError>?>()
        let second = watch.atEnd(of: insertion) { outcome.fill(nil) }
        defer { watch.forget(second) }
        thread.async {
            let result: Result<PCSCConnection, CardError>
            do throws(CardError) {
                let link = try CardLink(insertion, watch: watch, wait: wait)
                result = .success(PCSCConnection(thread: thread, link: link))
            } catch {
                result = .failure(error)
            }
            // A connection that nobody takes any more closes itself when it is dropped here.
            if !outcome.fill(result) { thread.finish() }
            if case .failure = result { thread.finish() }
        }
        guard let result = await outcome.value(whenCancelled: nil) else {
            wait.giveUp()
            throw Self.whyNot(insertion, watch)
        }
        let connection = try result.get()
        guard connection.features.executePACE != nil else { return connection }
        return PCSCKeypadConnection(connection)
    }

    /// Why somebody who waited for a connection does not get it.
    private static func whyNot(_ insertion: Insertion, _ watch: Watch) -> CardError {
        let (entry, isConnected) = watch.entry(of: insertion)
        return entry != nil ? .other("cancelled") : isConnected ? .removed : .serviceUnavailable
    }

    package func currentHealth() async -> [HealthCheck] {
        guard let watch = watch.withLock({ $0 }) else { return [] }
        let (entries, isConnected) = watch.state.withLock { ($0.table.entries, $0.context != nil) }
        guard isConnected else {
            // Whoever asks has perhaps just mended something that gives no event.
            watch.retry()
            return []
        }
        return [USBReaders.check(USBReaders.missing(USBReaders.connected(), in: entries.map(\.features)))]
    }
}

/// The wait for a transaction, which another thread can end; a connect that waits for one cannot be ended.
final class TransactionWait: Sendable {
    private let card = Mutex<PCSCCard?>(nil)

    init() {}

    /// Blocks until no other program holds a transaction. The C function is SCardBeginTransaction.
    func begin(_ card: PCSCCard) -> PCSCCode {
        self.card.withLock { $0 = card }
        defer { self.card.withLock { $0 = nil } }
        return card.beginTransaction()
    }

    var isWaiting: Bool { card.withLock { $0 != nil } }

    /// Does not block.
    func giveUp() {
        guard let card = card.withLock({ $0 }) else { return }
        _ = startThread("pcsc-cancel") { card.abandon() }
    }
}

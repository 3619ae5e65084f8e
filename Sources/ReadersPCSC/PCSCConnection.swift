// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import Synchronization

/// A card held in a transaction of pcscd, on a thread of its own that ends with it.
final class PCSCConnection: CardConnection {
    private let thread: CardThread
    private let link: CardLink
    /// The reader was left at work; the thread gives the card back by itself when that is done.
    private let isAbandoned = Mutex(false)

    init(thread: CardThread, link: CardLink) {
        (self.thread, self.link) = (thread, link)
    }

    deinit { thread.finish { [link] in link.close() } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let answer = await thread.run { [link] in link.transmit(command) }
        return try (answer ?? .failure(CardLink.closed)).get()
    }

    func disconnect(reset: Bool) async {
        // The reader is still busy with somebody at its keypad: nothing to wait for.
        guard !isAbandoned.withLock({ $0 }) else { return }
        _ = await thread.run { [link] in link.close(reset: reset) }
        thread.finish {}
    }

    var features: ReaderFeatures { link.features }

    /// Has the reader itself do something.
    ///
    /// With `isCancellable` it returns at once when the task is cancelled. The reader cannot be stopped; when it is done
    /// the card is reset and given back, and until then the reader is taken.
    func control(_ function: UInt32, _ input: [UInt8], isCancellable: Bool) async throws(CardError) -> [UInt8] {
        guard isCancellable else {
            let answer = await thread.run { [link] in link.control(function, input) }
            return try (answer ?? .failure(CardLink.closed)).get()
        }
        let handover = Handover<Result<[UInt8], CardError>>()
        let isQueued = thread.async { [link] in
            if !handover.give(link.control(function, input)) { link.close(reset: true) }
        }
        guard isQueued else { throw CardLink.closed }
        let answer = await handover.value { [self] in
            isAbandoned.withLock { $0 = true }
            thread.finish { [link] in link.close() }
        }
        return try (answer ?? .failure(.other("cancelled"))).get()
    }

    /// After an answer that is too short to be one.
    func whyNoAnswer() async -> CardError {
        await thread.run { [link] in link.whyNoAnswer() } ?? CardLink.closed
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Threads

/// A card held in a transaction of pcscd, on a thread of its own that ends with it.
final class PCSCConnection: CardConnection {
    private let thread: ThreadQueue
    private let link: CardLink

    init(thread: ThreadQueue, link: CardLink) {
        (self.thread, self.link) = (thread, link)
    }

    deinit { thread.finish { [link] in link.close() } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let answer = await thread.run { [link] in link.transmit(command) }
        return try (answer ?? .failure(CardLink.closed)).get()
    }

    func disconnect(reset: Bool) async {
        // Not when the reader was left at work: then the thread gives the card back by itself, and takes no more jobs.
        _ = await thread.run { [link] in link.close(reset: reset) }
        thread.finish()
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
        let answer = OneShot<Result<[UInt8], CardError>?>()
        let isQueued = thread.async { [link] in answer.fill(link.control(function, input)) }
        guard isQueued else { throw CardLink.closed }
        guard let result = await answer.value(whenCancelled: nil) else {
            thread.finish { [link] in link.close(reset: true) }
            throw .other("cancelled")
        }
        return try result.get()
    }

    /// After an answer that is too short to be one.
    func whyNoAnswer() async -> CardError {
        await thread.run { [link] in link.whyNoAnswer() } ?? CardLink.closed
    }
}

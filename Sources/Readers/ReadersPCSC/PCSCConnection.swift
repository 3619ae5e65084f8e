// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Threads

/// A connection to a card in a transaction of pcscd. A thread of its own runs all calls and ends with the connection.
final class PCSCConnection: CardConnection {
    private let thread: JobQueue
    private let link: CardLink

    init(thread: JobQueue, link: CardLink) {
        (self.thread, self.link) = (thread, link)
    }

    deinit { thread.finish { [link] in link.close() } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let answer = await thread.run { [link] in link.transmit(command) }
        return try (answer ?? .failure(CardLink.closed)).get()
    }

    func disconnect(reset: Bool) async {
        // After a cancelled `control` the queue is closed, and its thread disconnects the card.
        _ = await thread.run { [link] in link.close(reset: reset) }
        thread.finish()
    }

    var features: ReaderFeatures { link.features }

    /// Runs a function of the reader itself.
    ///
    /// With `isCancellable` a cancelled task returns at once. The reader cannot be stopped: when it has finished, the
    /// card is reset and disconnected. Until then the reader is in use.
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
            throw .cancelled
        }
        return try result.get()
    }

    /// The error for an answer that is too short.
    func missingAnswerError() async -> CardError {
        await thread.run { [link] in link.missingAnswerError() } ?? CardLink.closed
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers

/// A connection to a virtual card.
final class VirtualConnection: CardConnection {
    let insertion: Insertion
    let readers: VirtualReaders

    init(to insertion: Insertion, in readers: VirtualReaders) {
        (self.insertion, self.readers) = (insertion, readers)
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await readers.transmit(command.bytes, for: self)
    }

    func disconnect(reset: Bool) async {
        await readers.release(self, reset: reset)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Server
package import Text

/// A prompt about the card in a reader. It ends when the card leaves.
package protocol CardPrompt: Prompt {
    var lease: CardLease { get }
}

extension CardPrompt {
    @Loop package var isCurrent: Bool { lease.isCurrent }

    /// The message of a question about the card, with its reader as the client sees it.
    @Loop package func question(
        _ number: Int,
        to session: Session,
        error: Phrase?,
        _ body: @escaping (inout JSONWriter) -> Void = { _ in }
    ) -> WrittenMessage {
        let (reader, level) = (lease.readerState(for: session), session.level)
        return question(number, error: error) { object in
            body(&object)
            object.object("reader") { reader.write(to: &$0, level) }
        }
    }
}

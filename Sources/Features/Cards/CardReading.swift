// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Host
import ISO7816
package import Readers

/// Reads cards after their recognition, without a workflow.
@Loop package protocol CardReading: AnyObject {
    /// Whether a card with this profile is to be read now.
    func wants(_ profile: any CardProfile) -> Bool

    /// Called once per insertion when a card was recognised, after READER was sent.
    ///
    /// `lease` has the connection of the recognition if the card was wanted. It must be released.
    func cardRecognized(in reader: Reader, _ lease: CardLease?)
}

/// Lends cards to readings. A reading waits in line with the workflows, and they wait for its end.
extension ReaderRegistry {
    /// Claims a reader that has no owner.
    func claimForReading(_ reader: Reader) {
        reader.isRead = true
        _ = claim(reader, for: ObjectIdentifier(self))
    }

    /// Lends a recognised card to a reading, after the owner of the reader and those who asked for the card before.
    ///
    /// Waits while another program holds the card. The result is nil if the card has left or does not answer, or if the
    /// task was cancelled.
    package func lendForReading(_ reader: Reader, _ insertion: Insertion) async -> CardLease? {
        let place = makePlace()
        func canTake(_ candidate: Reader) -> Bool {
            candidate === reader && reader.insertion == insertion && reader.owner == nil && !reader.isHindered
        }
        enterQueue(CardQueue.Waiter(place: place, canTake: canTake))
        defer { leaveQueue(place) }
        while !Task.isCancelled, reader.insertion == insertion {
            guard canTake(reader), isFirst(place, for: reader) else {
                await nextChange()
                continue
            }
            claimForReading(reader)
            do throws(CardError) {
                return try await CardLease(reader, insertion, self)
            } catch {
                release(reader)
                switch CardVerdict(error) {
                case .hindered(let obstacle): hinder(reader, insertion, obstacle)
                case .ended: if !Task.isCancelled { hinder(reader, insertion, .exclusive) }
                case .cardLeft: return nil
                case .cardFailed:
                    log(.notice, "card in '\(reader.name)' could not be read: \(error)", reader.name)
                    return nil
                }
            }
        }
        return nil
    }
}

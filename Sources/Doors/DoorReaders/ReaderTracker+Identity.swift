// SPDX-License-Identifier: GPL-3.0-or-later

/// Recognises known readers whose address has changed.
extension ReaderTracker {
    /// Senders that may be held at the same time; further ones are reported at once.
    private static let maximumHeld = 64
    /// How long a sender without a name is held, in listening time.
    private static let nameTime: Milliseconds = 2000
    /// An advertisement of the old address can arrive after the first one of the new address by this time, for example
    /// through another adapter.
    private static let overlap: Milliseconds = 200

    private enum Decision {
        /// The sender is this reader.
        case known(DoorReader)
        /// The sender is a reader of its own.
        case new(ReaderIdentity)
        /// Undecided until this listening time.
        case wait(until: Milliseconds)
    }

    /// Adds the sender as a reader, joins it to a known one, or holds it.
    func settle(_ sender: HeldSender, isNew: Bool = false, at now: Milliseconds) {
        switch decision(on: sender, at: now) {
        case .known(let reader): join(sender, to: reader, at: now)
        case .new(let identity): addReader(sender, identity, at: now)
        case .wait(let deadline):
            if held.count < Self.maximumHeld {
                held[sender.address] = sender
                schedule(deadline, now)
            } else {
                addReader(sender, .ephemeral(sender.address), at: now)
            }
        }
        // With a name the sender can be recognised, now or under its next address.
        if isNew, sender.facts.name == nil, sender.aliroReader == nil, !sender.address.isStable { wantsNames?() }
    }

    /// Decides on the senders that have been held long enough.
    func settleHeldSenders(at now: Milliseconds) {
        for address in held.keys { if let sender = held.removeValue(forKey: address) { settle(sender, at: now) } }
    }

    private func decision(on sender: HeldSender, at now: Milliseconds) -> Decision {
        let (facts, heard) = (sender.facts, time.heard(at: now))
        let identity = ReaderIdentity(
            sender.address,
            sender.profile,
            sender.aliroReader,
            codes: facts.lockServiceCodes,
            name: facts.name,
            key: keyName(of: sender.address)
        )
        switch identity {
        case .aliro, .address, .resolved: return table.reader(identity).map { .known($0) } ?? .new(identity)
        case .fingerprint(let profile, _, let name):
            guard let known = table.reader(profile, codes: facts.lockServiceCodes, named: name) else {
                return .new(identity)
            }
            if sender.isDistinct { return .new(.ephemeral(sender.address)) }
            let deadline = known.lastHeard + Self.quietTime(known)
            return heard > deadline ? .known(known) : .wait(until: deadline + 1)
        case .ephemeral:
            let deadline = sender.since + Self.nameTime
            guard facts.name == nil, heard <= deadline,
                table.hasNamedReader(sender.profile, codes: facts.lockServiceCodes)
            else { return .new(identity) }
            return .wait(until: deadline + 1)
        }
    }

    /// A reader that was not received for this time may have a new address: four of its intervals, 0.5 to 2 s. The time
    /// is shorter than `SignalTrack.freshness`, so that a reader does not leave the range because of its new address.
    private static func quietTime(_ reader: DoorReader) -> Milliseconds {
        min(max(4 * (reader.interval ?? 0), 500), 2000)
    }

    /// A known reader was received. Senders with its identity that were received before are different readers.
    func releaseRivals(of reader: DoorReader, at now: Milliseconds) {
        guard !held.isEmpty else { return }
        for (address, sender) in held {
            guard let name = sender.facts.name, time.heard(at: now) - sender.since > Self.overlap,
                table.reader(sender.profile, codes: sender.facts.lockServiceCodes, named: name) === reader
            else { continue }
            held[address] = nil
            var sender = sender
            sender.isDistinct = true
            settle(sender, at: now)
        }
    }

    /// A known reader continues with the address, the facts and the samples of the sender.
    private func join(_ sender: HeldSender, to reader: DoorReader, at now: Milliseconds) {
        table.change(reader, address: sender.address)
        reader.facts.update(sender.facts)
        for sample in sender.samples { reader.add(sample) }
        reader.updateRange(at: now)
        table.reorder(reader)
        let wasLost = reader.isLost
        reader.isLost = false
        reportPresence(of: reader, wasLost: wasLost)
    }

    /// Handles a name that a scan response adds to a reader with a changing address after the reader was reported. The
    /// name can show that the reader is a known one with a new address. Then the known reader continues and this one is
    /// removed.
    /// - Returns: true when the readers were merged; the observer has been called.
    func mergeIntoKnownReader(_ reader: DoorReader, wasLost: Bool, at now: Milliseconds) -> Bool {
        guard case .ephemeral = reader.identity, let name = reader.name else { return false }
        let codes = reader.lockServiceCodes
        let identity = ReaderIdentity(reader.address, reader.profile, nil, codes: codes, name: name)
        guard case .fingerprint = identity else { return false }
        guard let known = table.reader(reader.profile, codes: codes, named: name) else {
            table.change(reader, identity: identity)
            return false
        }
        let isQuiet = time.heard(at: now) - known.lastHeard > Self.quietTime(known)
        let wereTogether = reader.isDistinct || known.lastSeen > reader.firstSeen + Self.overlap
        guard wereTogether ? known.isLost : isQuiet else { return false }
        table.remove(reader)
        if !wasLost { observer?(.lost, reader) }
        table.change(known, address: reader.address)
        known.facts.update(reader.facts)
        known.signals = reader.signals
        known.lastSeen = reader.lastSeen
        known.lastHeard = reader.lastHeard
        known.inRange = reader.inRange
        known.adverts += reader.adverts
        table.reorder(known)
        let knownWasLost = known.isLost
        known.isLost = false
        reportPresence(of: known, wasLost: knownWasLost)
        return true
    }
}

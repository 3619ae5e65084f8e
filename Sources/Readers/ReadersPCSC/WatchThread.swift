// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Readers
import Synchronization

/// The life of one thread `pcsc-watch`: everything that one connection to pcscd says about readers and cards.
///
/// While nothing happens it blocks without limit. (libpcsclite itself looks once a minute whether pcscd's socket still
/// exists; that is the only wake-up of an idle process, and not ours to take away.)
struct WatchThread: Sendable {
    let watch: Watch
    let context: PCSCContext
    let generation: UInt64

    /// pcscd serves at most 16 readers, and libpcsclite takes no longer list.
    private static let longestList = 16

    func run() {
        do throws(PCSCCode) {
            try follow()
        } catch {
            // Whatever it is: this connection is no good any more. The other thread finds out why.
        }
        watch.ended(generation)
    }

    /// - Throws: the code that ends the connection. Returns when the watch is over.
    private func follow() throws(PCSCCode) {
        var plugAndPlay = ReaderState(name: .plugAndPlay, flags: [], counter: 0)
        // Newer pcscd (2.1) counts the comings and goings of readers. Taken before the list is read, that number makes
        // sure that no reader appears unseen between the list and the wait.
        _ = wait(&plugAndPlay, milliseconds: 0)
        // Older ones do not count. There the list is read once more, one second after it has changed, and then no more.
        var isSettled = plugAndPlay.counter != 0
        var refreshes: [Watch.Refresh] = []
        defer { for refresh in refreshes { refresh.done.signal() } }

        while true {
            if try updateList() { isSettled = plugAndPlay.counter != 0 }

            let isCurrent = watch.state.withLock { state in
                guard state.generation == generation, state.context != nil else { return false }
                refreshes += state.refreshes
                state.refreshes = []
                return !state.isStopped
            }
            guard isCurrent else { return }

            let anew = !refreshes.isEmpty
            var states = watch.state.withLock { $0.table.request(anew: anew) }
            if anew, refreshes.allSatisfy({ $0.reader != nil }) {
                states.removeAll { state in !refreshes.contains { $0.reader == state.name } }
            }
            if states.count < Self.longestList { states.append(plugAndPlay) }
            let limit: UInt32 = anew ? 0 : isSettled ? PCSCContext.forever : 1000

            let code = context.wait(&states, milliseconds: limit)
            switch code {
            case .success, .timeout:
                if code == .success {
                    if let last = states.last, last.name == .plugAndPlay { plugAndPlay.counter = last.counter }
                    apply(states)
                } else if !anew {
                    isSettled = true
                }
                // With no reader there is nothing to ask, and the time is over at once: that is fresh enough.
                for refresh in refreshes { refresh.done.signal() }
                refreshes = []
            case .cancelled, .unknownReader:
                // Somebody wants everything anew, or a reader left after the list was read.
                break
            default:
                throw code
            }
        }
    }

    private func wait(_ state: inout ReaderState, milliseconds: UInt32) -> PCSCCode {
        var states = [state]
        let code = context.wait(&states, milliseconds: milliseconds)
        if let first = states.first { state.counter = first.counter }
        return code
    }

    /// Reads the list of readers and tells who came and went.
    /// - Returns: whether it has changed.
    private func updateList() throws(PCSCCode) -> Bool {
        let names = try context.readers()
        let known = watch.state.withLock { $0.table.entries.map(\.name) }
        let gone = known.filter { !names.contains($0) }
        let new = names.filter { !known.contains($0) }
        if !gone.isEmpty { publish { state in gone.flatMap { state.table.remove($0) } } }
        for name in new {
            let features = readFeatures(name)
            publish { state in
                switch features {
                case .success(let features): state.table.add(name, features: features)
                case .failure: state.table.add(name, features: nil, isHeld: true)
                }
            }
        }
        return !gone.isEmpty || !new.isEmpty
    }

    private func apply(_ states: [ReaderState]) {
        var freed: [ReaderName] = []
        publish { state in
            states.filter { $0.name != .plugAndPlay }.flatMap { reader in
                let (events, becameFree) = state.table.update(reader)
                if becameFree { freed.append(reader.name) }
                return events
            }
        }
        for name in freed {
            let isMissing = watch.state.withLock { state in
                state.table.entries.contains { $0.name == name && $0.featuresAreMissing }
            }
            if isMissing, case .success(let features?) = readFeatures(name) {
                publish { $0.table.update(name, features: features) }
            }
        }
    }

    private func publish(_ body: (inout Watch.State) -> [ReaderEvent]) {
        watch.publish { state in
            guard state.generation == generation, state.context != nil else { return [] }
            return body(&state)
        }
    }

    // MARK: - Features

    /// How long a new reader may keep the others waiting.
    private static let patience = DispatchTimeInterval.milliseconds(250)

    /// Asks the reader what it can do, which takes less than a millisecond.
    ///
    /// It takes long when another program holds a transaction on the reader (pcscd lets a connect wait for its end) or
    /// the driver is slow. So a thread of its own asks, and after 0.25 s the reader is told as a basic one; when the
    /// answer comes after all, as `.changed`. The connection is made for the reader, not for the card (DIRECT), and
    /// lasts for the two questions only: in that moment another program could not get the reader exclusively.
    /// - Returns: nil for not yet.
    private func readFeatures(_ name: ReaderName) -> Result<ReaderFeatures?, PCSCCode> {
        let answer = Answer()
        let isStarted = startThread("pcsc-probe") {
            let result = Self.probe(name)
            guard answer.give(result) == .late else { return }
            switch result {
            case .success(let features): publish { $0.table.update(name, features: features) }
            case .failure: watch.note(held: name)
            }
        }
        guard isStarted else { return .success(ReaderFeatures()) }
        switch answer.take(within: Self.patience) {
        case .success(let features): return .success(features)
        case .failure(let code): return .failure(code)
        case nil: return .success(nil)
        }
    }

    /// - Returns: the code only for a reader that is held exclusively. One that does not know these questions, or left
    ///   meanwhile, has no features.
    private static func probe(_ name: ReaderName) -> Result<ReaderFeatures, PCSCCode> {
        do throws(PCSCCode) {
            let reader = try PCSCContext().connect(name, .direct)
            var features = ReaderFeatures(features: ask(reader, ReaderFeatures.request))
            if let code = features.tlvProperties { features.add(properties: ask(reader, code)) }
            reader.disconnect(reset: false)
            return .success(features)
        } catch .sharingViolation {
            return .failure(.sharingViolation)
        } catch {
            return .success(ReaderFeatures())
        }
    }

    private static func ask(_ reader: PCSCCard, _ function: UInt32) -> [UInt8] {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            let (code, length) = reader.control(function, UnsafeRawBufferPointer(start: nil, count: 0), answer: buffer)
            return code == .success ? Array(buffer.prefix(length)) : []
        }
    }

    /// The features on their way from the probing thread to the waiting one.
    private final class Answer: Sendable {
        enum Arrival { case inTime, late }
        private let state = Mutex<(result: Result<ReaderFeatures, PCSCCode>?, isGivenUp: Bool)>((nil, false))
        private let arrived = DispatchSemaphore(value: 0)

        func give(_ result: Result<ReaderFeatures, PCSCCode>) -> Arrival {
            let isGivenUp = state.withLock { state in
                state.result = result
                return state.isGivenUp
            }
            arrived.signal()
            return isGivenUp ? .late : .inTime
        }

        func take(within limit: DispatchTimeInterval) -> Result<ReaderFeatures, PCSCCode>? {
            _ = arrived.wait(timeout: .now() + limit)
            return state.withLock { state in
                state.isGivenUp = state.result == nil
                return state.result
            }
        }
    }
}

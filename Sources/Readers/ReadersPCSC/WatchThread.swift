// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Readers
import Synchronization

/// The body of one thread `pcsc-watch`: it follows the readers and cards of one connection to pcscd.
///
/// The thread blocks while nothing happens. libpcsclite itself wakes up once a minute and checks the socket of pcscd.
struct WatchThread: Sendable {
    let watch: Watch
    let context: PCSCContext
    let generation: UInt64

    /// pcscd has at most 16 readers, and libpcsclite takes no longer list.
    private static let longestList = 16

    func run() {
        do throws(PCSCCode) {
            try follow()
        } catch {
            // The connection has failed; the thread `pcsc-socket` finds out why.
        }
        watch.ended(generation)
    }

    /// Returns when the watch ends.
    /// - Throws: the code that ends the connection.
    private func follow() throws(PCSCCode) {
        var plugAndPlay = PCSCReaderState(name: .plugAndPlay, flags: [], counter: 0)
        // pcscd 2.1 counts changes of the list of readers. The counter is read before the list, so that no change
        // between the list and the wait is lost.
        _ = wait(&plugAndPlay, milliseconds: 0)
        // Older versions do not count. There the list is read again one second after it has changed.
        var isSettled = plugAndPlay.counter != 0
        var refreshes: [Watch.Refresh] = []
        defer { for refresh in refreshes { refresh.done.signal() } }
        var hasReaderLeft = false

        while true {
            let isCurrent = watch.state.withLock { state in
                guard state.generation == generation, state.context != nil else { return false }
                refreshes += state.refreshes
                state.refreshes = []
                return !state.isStopped
            }
            guard isCurrent else { return }

            let isRefresh = !refreshes.isEmpty
            let isOfSome = isRefresh && refreshes.allSatisfy { $0.reader != nil }
            // Somebody waits for the states of some readers. The list is read afterwards, unless it lacks one of them.
            if !isOfSome || hasReaderLeft, try updateList() { isSettled = plugAndPlay.counter != 0 }
            var states = watch.state.withLock { $0.table.request(all: isRefresh) }
            if isOfSome { states.removeAll { state in !refreshes.contains { $0.reader == state.name } } }
            if states.count < Self.longestList { states.append(plugAndPlay) }
            let limit: UInt32 = isRefresh ? 0 : isSettled ? PCSCContext.forever : 1000

            let code = context.wait(&states, milliseconds: limit)
            hasReaderLeft = code == .unknownReader
            switch code {
            case .success, .timeout:
                if code == .success {
                    if let last = states.last, last.name == .plugAndPlay { plugAndPlay.counter = last.counter }
                    apply(states)
                } else if !isRefresh {
                    isSettled = true
                }
                // Without readers the wait times out at once, which ends a refresh as well.
                for refresh in refreshes { refresh.done.signal() }
                refreshes = []
            case .cancelled, .unknownReader:
                // A refresh is requested, or a reader has left after the list was read.
                break
            default:
                throw code
            }
        }
    }

    private func wait(_ state: inout PCSCReaderState, milliseconds: UInt32) -> PCSCCode {
        var states = [state]
        let code = context.wait(&states, milliseconds: milliseconds)
        if let first = states.first { state.counter = first.counter }
        return code
    }

    /// Reads the list of readers and publishes the changes.
    /// - Returns: whether the list has changed.
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

    private func apply(_ states: [PCSCReaderState]) {
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

    /// How long the features of one reader may delay the others.
    private static let featureTimeout = DispatchTimeInterval.milliseconds(250)

    /// Reads the features of a reader, mostly in less than a millisecond.
    ///
    /// A transaction of another program or a slow driver can delay this, so it runs on a thread of its own. After the
    /// time limit the reader is published as a basic one, and later features come as `.changed`. The connection is made
    /// to the reader, not to the card (DIRECT), and is short, because no other program can get the reader exclusively
    /// meanwhile.
    /// - Returns: nil when the features are not known yet.
    private func readFeatures(_ name: ReaderName) -> Result<ReaderFeatures?, PCSCCode> {
        let answer = Answer()
        let isStarted = startThread("pcsc-probe") {
            let result = Self.probe(name)
            guard answer.deliver(result) == .late else { return }
            switch result {
            case .success(let features): publish { $0.table.update(name, features: features) }
            case .failure: watch.note(held: name)
            }
        }
        guard isStarted else { return .success(nil) }
        switch answer.receive(within: Self.featureTimeout) {
        case .success(let features): return .success(features)
        case .failure(let code): return .failure(code)
        case nil: return .success(nil)
        }
    }

    /// Asks the reader. A reader that does not support these requests, or was removed, has no features.
    /// - Returns: the code only for a reader that is held exclusively.
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

    /// Passes the features from the probing thread to the waiting thread.
    private final class Answer: Sendable {
        enum Arrival { case inTime, late }
        private let state = Mutex<(result: Result<ReaderFeatures, PCSCCode>?, isGivenUp: Bool)>((nil, false))
        private let arrived = DispatchSemaphore(value: 0)

        func deliver(_ result: Result<ReaderFeatures, PCSCCode>) -> Arrival {
            let isGivenUp = state.withLock { state in
                state.result = result
                return state.isGivenUp
            }
            arrived.signal()
            return isGivenUp ? .late : .inTime
        }

        func receive(within limit: DispatchTimeInterval) -> Result<ReaderFeatures, PCSCCode>? {
            _ = arrived.wait(timeout: .now() + limit)
            return state.withLock { state in
                state.isGivenUp = state.result == nil
                return state.result
            }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
import Host
import Synchronization
import Text

/// One run of badged-network, for one dialogue with servers. It ends with this object, with `close`, and at its first
/// message that is not as it must be.
@Loop package final class NetworkJob {
    private let network: Network
    private let user: UInt32?
    private var channel: ProgramChannel?
    /// The process behind the channel, if that is a child of this one. It ends with the channel.
    private var process: Child?
    /// Set by `close` and by an end of badged-network; later transfers fail with it.
    private var end: HTTPFault?
    private let ending = OneShot<HTTPFault?>()
    private var sessions: UInt8 = 0
    /// Whether the run has waited for this dialogue, and is asked first whether it lives: until it has answered, or
    /// another run has taken its place.
    private var isUnproven = false
    /// The transfers that wait for this.
    private var proofs: [OneShot<Void>] = []
    /// The sessions so far, which the other run has to know.
    private var unproven: [(session: UInt8, trust: TLSTrust)] = []
    private var lastNumber: UInt32 = 0
    private var waiting: [UInt32: Waiting] = [:]

    /// A transfer without a report.
    private struct Waiting {
        let result: OneShot<Result<Received, HTTPFault>>
        let maximumReport: Int
        /// A run that says nothing long after its own limits is ended.
        let alarm: Loop.Alarm
    }

    /// A report before it is parsed, and the room that it has. It may hold a share of a secret, so it is wiped.
    private final class Received: Sendable {
        private let bytes: Mutex<[UInt8]>
        private let room: ReportRoom.Share

        init(_ bytes: [UInt8], _ room: ReportRoom.Share) {
            self.bytes = Mutex(bytes)
            self.room = room
        }

        deinit { bytes.withLock { $0.wipe() } }

        /// Parses and wipes the report; nil if it is malformed.
        func parse() -> NetworkReport? {
            bytes.withLock { bytes in
                defer { bytes.wipe() }
                return NetworkReport(bytes: bytes)
            }
        }
    }

    /// The room of the report that is being received.
    private var room: ReportRoom.Share?

    /// How long a run may say nothing after the limits of its transfer, in milliseconds.
    private let grace: Int64

    package nonisolated init(_ network: Network, grace: Int64 = 5000) {
        self.network = network
        self.grace = grace
        user = Requester.uid
    }

    isolated deinit { close() }

    /// Ends the run. Transfers end with `cancelled`.
    package func close() { finish(.cancelled, later: .cancelled) }

    /// Ends the run after a fault of badged-network.
    private func fail(_ words: Phrase) { finish(.lost(words), later: .unavailable(words)) }

    private func finish(_ fault: HTTPFault, later: HTTPFault) {
        if end == nil { end = later }
        ending.fill(fault)
        settle()
        for transfer in waiting.values { transfer.result.fill(.failure(fault)) }
        waiting = [:]
        guard let channel else { return }
        self.channel = nil
        channel.close()
        process?.end()
        room = nil
        ReportRoom.forget(self)
        NetworkSlots.release(for: user)
        // The answer to the client comes first.
        if let spare = network.spare { Task { [network] in spare.prepare(network) } }
    }

    /// Returns the fault of the run as soon as no later transfer can succeed; nil if the task is cancelled before. May
    /// be called once.
    package func interruption() async -> HTTPFault? { await ending.value(whenCancelled: nil) }

    // MARK: Transfers

    /// Makes a session, for the first transfer of which the run starts.
    func open(_ trust: TLSTrust) throws(HTTPFault) -> UInt8 {
        try start()
        guard sessions < NetworkMessage.maximumSessions else { throw .unavailable("too many sessions") }
        sessions += 1
        if isUnproven { unproven.append((sessions, trust)) }
        channel?.send(NetworkRequest.open(session: sessions, trust).bytes)
        return sessions
    }

    /// Runs a transfer. A cancelled task gets `cancelled` at once, and the transfer ends.
    func transfer(
        _ request: HTTPRequest,
        in session: UInt8,
        _ conditions: TLSConditions,
        proxy: Proxy?,
        connectMilliseconds: UInt32,
        totalMilliseconds: UInt32
    ) async throws(HTTPFault) -> NetworkReport {
        try start()
        if isUnproven {
            let proof = OneShot<Void>()
            proofs.append(proof)
            await proof.value(whenCancelled: ())
            if Task.isCancelled { throw .cancelled }
            try start()
        }
        lastNumber += 1
        let number = lastNumber
        let result = OneShot<Result<Received, HTTPFault>>()
        let alarm = Loop.Alarm { [weak self] in
            self?.fail("badged-network does not answer")
        }
        alarm.set(after: Int64(totalMilliseconds) + grace)
        waiting[number] = Waiting(
            result: result,
            maximumReport: NetworkMessage.maximumReport(request),
            alarm: alarm
        )
        channel?.isNeeded = true
        let transfer = NetworkRequest.Transfer(
            number: number,
            session: session,
            request,
            conditions,
            proxy: proxy,
            connectMilliseconds: connectMilliseconds,
            totalMilliseconds: totalMilliseconds
        )
        channel?.send(NetworkRequest.transfer(transfer).bytes)
        let received = await result.value(whenCancelled: .failure(.cancelled))
        if case .failure(.cancelled) = received, waiting[number] != nil { channel?.send(NetworkRequest.stop.bytes) }
        return try await parse(try received.get())
    }

    /// Parses a report where others need not wait.
    private func parse(_ received: Received) async throws(HTTPFault) -> NetworkReport {
        let report = try await Pool.run(orIfCancelled: HTTPFault.cancelled, received.parse())
        guard let report else {
            ended(.violation)
            throw .lost(Self.violation)
        }
        return report
    }

    // MARK: The run

    private func start() throws(HTTPFault) {
        if let end { throw end }
        guard channel == nil else { return }
        guard NetworkSlots.acquire(for: user) else {
            throw .unavailable("too many connections to servers are open: try again when one of them has ended")
        }
        do throws(HTTPFault) {
            let spare = network.spare?.take()
            let run = if let spare { spare } else { try network.start() }
            channel = try connect(run, isSpare: spare != nil)
            if spare != nil { askSpare() }
        } catch {
            NetworkSlots.release(for: user)
            throw error
        }
    }

    /// Milliseconds in which a run that has waited says that it lives. After them a new one is quicker.
    private static let spareTime: Int64 = 1000

    private func connect(_ run: BesideProgram, isSpare: Bool = false) throws(HTTPFault) -> ProgramChannel {
        process = run.process
        var heartbeat = network.heartbeat
        if isSpare { heartbeat.start = min(heartbeat.start, Self.spareTime) }
        do throws(SystemError) {
            return try ProgramChannel(
                run.socket,
                .lengths(
                    maximum: { [weak self] in self?.waiting.values.map(\.maximumReport).max() ?? 0 },
                    admits: { [weak self] in self?.admit($0) ?? false }
                ),
                asking: Network.program,
                heartbeat,
                onMessage: { [weak self] in self?.handle($0) ?? false },
                onEnd: { [weak self] in self?.ended($0) }
            )
        } catch {
            process?.end()
            throw .unavailable(Phrase(verbatim: error.description))
        }
    }

    /// Asks a run that has waited for this dialogue whether it lives. Nothing that a server would see is sent before.
    private func askSpare() {
        isUnproven = true
        Task { @Loop [weak self, channel] in if await channel?.answers() == true { self?.settle() } }
    }

    /// Has another run take the place of one that has waited, and hangs or has ended.
    private func replaceSpare() {
        process?.end()
        do throws(HTTPFault) {
            let new = try connect(try network.start())
            for (session, trust) in unproven { new.send(NetworkRequest.open(session: session, trust).bytes) }
            channel = new
        } catch {
            channel = nil
            end = error
            ending.fill(error)
            NetworkSlots.release(for: user)
        }
        settle()
    }

    private func settle() {
        isUnproven = false
        unproven = []
        for proof in proofs { proof.fill(()) }
        proofs = []
    }

    private func ended(_ ending: ProgramChannel.Ending) {
        guard !isUnproven else { return replaceSpare() }
        switch ending {
        case .closed: fail("badged-network has ended unexpectedly")
        case .violation: fail(Self.violation)
        case .silent: fail("badged-network does not answer")
        }
    }

    private static let violation: Phrase = "badged-network has sent a message that is not allowed"

    /// Whether there is room for a report. If there is none, it waits in badged-network.
    private func admit(_ count: Int) -> Bool {
        room = ReportRoom.take(count, for: user)
        if room == nil { ReportRoom.wait(self) }
        return room != nil
    }

    /// Called when there is room again.
    func resume() { channel?.resume() }

    /// Takes a report.
    /// - Returns: false if it belongs to no transfer.
    private func handle(_ bytes: [UInt8]) -> Bool {
        guard let number = NetworkReport.number(of: bytes), let transfer = waiting.removeValue(forKey: number),
            let room
        else { return false }
        self.room = nil
        channel?.isNeeded = !waiting.isEmpty
        _ = transfer.result.fill(.success(Received(bytes, room)))
        return true
    }
}

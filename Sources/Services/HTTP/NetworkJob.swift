// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
import Host
import Threads

/// One run of badged-network, for one dialogue with servers. It ends with this object, with `close`, and at its first
/// message that is not as it must be.
@Loop package final class NetworkJob {
    private let network: Network
    private let user: UInt32?
    private var run: Run?
    /// Set by `close` and by an end that badged did not ask for; later transfers fail with it.
    private var end: HTTPFault?
    private var sessions: UInt8 = 0
    private var lastNumber: UInt32 = 0
    private var waiting: [UInt32: Waiting] = [:]
    private var unsent: [UInt8] = []
    private var received: [UInt8] = []

    private struct Run {
        let descriptor: Int32
        let registration: Loop.Registration
        let process: Int32?
    }

    /// A transfer without a report.
    private struct Waiting {
        let result: OneShot<Result<NetworkReport, HTTPFault>>
        let maximumReport: Int
        /// A run that says nothing long after its own limits is ended.
        let alarm: Loop.Alarm
    }

    /// How long a run may say nothing after the limits of its transfer, in milliseconds.
    private let grace: Int64

    package nonisolated init(_ network: Network, grace: Int64 = 5000) {
        (self.network, self.grace) = (network, grace)
        user = Requester.uid
    }

    isolated deinit { close() }

    /// Ends the run. Transfers end with `cancelled`.
    package func close() { finish(.cancelled) }

    private func finish(_ fault: HTTPFault) {
        if end == nil { end = fault }
        for (_, transfer) in waiting { transfer.result.fill(.failure(fault)) }
        waiting = [:]
        (unsent, received) = ([], [])
        guard let run else { return }
        self.run = nil
        run.registration.cancel()
        Glibc.close(run.descriptor)
        NetworkSlots.giveBack(for: user)
        if let process = run.process { ChildProcess.end(process) }
    }

    // MARK: Transfers

    /// Makes a session, for the first transfer of which the run starts.
    func open(_ trust: TLSTrust) throws(HTTPFault) -> UInt8 {
        try start()
        guard sessions < NetworkMessage.maximumSessions else { throw .unavailable("too many sessions") }
        sessions += 1
        send(.open(session: sessions, trust))
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
        lastNumber += 1
        let number = lastNumber
        let result = OneShot<Result<NetworkReport, HTTPFault>>()
        let alarm = Loop.Alarm { [weak self] in
            self?.finish(.unavailable("badged-network does not answer"))
        }
        alarm.set(after: Int64(totalMilliseconds) + grace)
        waiting[number] = Waiting(
            result: result,
            maximumReport: NetworkMessage.maximumReport(request),
            alarm: alarm
        )
        send(
            .transfer(
                NetworkRequest.Transfer(
                    number: number,
                    session: session,
                    request,
                    conditions,
                    proxy: proxy,
                    connectMilliseconds: connectMilliseconds,
                    totalMilliseconds: totalMilliseconds
                )
            )
        )
        let report = await result.value(whenCancelled: .failure(.cancelled))
        if case .failure(.cancelled) = report, waiting[number] != nil { send(.stop) }
        return try report.get()
    }

    // MARK: The run

    private func start() throws(HTTPFault) {
        if let end { throw end }
        guard run == nil else { return }
        guard NetworkSlots.take(for: user) else {
            throw .unavailable("too many connections to servers are open: try again when one of them has ended")
        }
        let descriptor: Int32
        let process: Int32?
        do throws(HTTPFault) {
            (descriptor, process) = try network.start()
        } catch {
            NetworkSlots.giveBack(for: user)
            throw error
        }
        do throws(SystemError) {
            let registration = try Loop.watch(descriptor, .read) { [weak self] events in self?.handle(events) }
            run = Run(descriptor: descriptor, registration: registration, process: process)
        } catch {
            Glibc.close(descriptor)
            NetworkSlots.giveBack(for: user)
            if let process { ChildProcess.end(process) }
            throw .unavailable(error.description)
        }
    }

    private func send(_ request: NetworkRequest) {
        var bytes = request.bytes
        withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { unsent += $0 }
        unsent += bytes
        // A request may hold a password of a proxy or a pre-shared key.
        bytes.wipe()
        flush()
    }

    private func handle(_ events: UInt32) {
        if events & Loop.writable != 0 { flush() }
        if events & (Loop.readable | Loop.hungUp) != 0 { receive() }
    }

    private func flush() {
        guard let run else { return }
        while !unsent.isEmpty {
            let count = Glibc.send(run.descriptor, unsent, unsent.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            // After another error the end of the run is reported by `receive`.
            guard count > 0 else { break }
            var rest = Array(unsent[count...])
            swap(&unsent, &rest)
            rest.wipe()
        }
        run.registration.change(unsent.isEmpty ? .read : [.read, .write])
    }

    private func receive() {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
            while let run {
                let count = recv(run.descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                guard count > 0 else { return finish(.unavailable("badged-network has ended unexpectedly")) }
                received += buffer.prefix(count)
                guard takeReports() else {
                    return finish(.unavailable("badged-network has sent a message that is not allowed"))
                }
            }
        }
    }

    /// Takes the complete reports.
    /// - Returns: false if one is malformed, too long, or belongs to no transfer.
    private func takeReports() -> Bool {
        let maximum = waiting.values.map(\.maximumReport).max() ?? 0
        while received.count >= 4 {
            let length = received[..<4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= maximum else { return false }
            guard received.count >= 4 + length else { return true }
            guard let report = NetworkReport(bytes: Array(received[4..<4 + length])),
                let transfer = waiting.removeValue(forKey: report.number)
            else { return false }
            received.removeFirst(4 + length)
            transfer.result.fill(.success(report))
        }
        return received.count <= 4 + maximum
    }
}

extension [UInt8] {
    fileprivate mutating func wipe() {
        withUnsafeMutableBytes { bytes in
            if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
        }
    }
}

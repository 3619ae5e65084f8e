// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Glibc
import Synchronization

/// Finds the addresses of the hosts of one dialogue with servers.
///
/// getaddrinfo may wait for a name server for minutes, and cannot be cancelled. So it runs on a thread of its own,
/// which is abandoned when the dialogue stops waiting.
package final class HostAddresses {
    /// Returns the addresses of a host as text; empty if the name is unknown. It may block.
    package typealias LookUp = @Sendable (_ host: String) -> [String]

    /// Counts the running look-ups of each user, including abandoned ones.
    package final class Slots: Sendable {
        /// The slots of the whole daemon.
        package static let shared = Slots()

        /// The largest number of look-ups at once for all users but root, whose look-ups have slots of their own.
        static let maximum = 64
        /// The largest number of look-ups at once for one user.
        static let maximumPerUser = 16
        private let running = Mutex<[UInt32?: Int]>([:])

        package init() {}

        fileprivate func take(for user: UInt32?) -> Bool {
            running.withLock { running in
                let own = running[user, default: 0]
                let others = running.reduce(0) { $1.key == 0 ? $0 : $0 + $1.value }
                guard own < Self.maximumPerUser, user == 0 || others < Self.maximum else { return false }
                running[user] = own + 1
                return true
            }
        }

        fileprivate func giveBack(for user: UInt32?) {
            running.withLock { running in
                let rest = running[user, default: 1] - 1
                running[user] = rest > 0 ? rest : nil
            }
        }
    }

    /// After `cancel`, all further look-ups together may take this time: CANCEL ends within 100 ms.
    static let timeoutAfterCancel = Duration.milliseconds(50)

    private let lookUp: LookUp
    private let slots: Slots
    private let canceller: HTTPCanceller
    /// What was found so far. An address that was reached once needs no further look-up.
    private var known: [String: [String]] = [:]
    /// Look-ups that have begun.
    private var begun: [String: Answer] = [:]

    package init(_ lookUp: @escaping LookUp, _ canceller: HTTPCanceller, slots: Slots = .shared) {
        (self.lookUp, self.canceller, self.slots) = (lookUp, canceller, slots)
    }

    /// Begins to look up a host that will be needed later, so that its address is known when the user cancels.
    package func begin(_ host: String) {
        guard known[host] == nil, begun[host] == nil, !Self.isAddress(host) else { return }
        begun[host] = try? start(host)
    }

    /// Waits for the addresses of a host, until `deadline` or until the transfers are cancelled.
    /// - Returns: the addresses; empty for a host that is an address.
    package func find(_ host: String, by deadline: ContinuousClock.Instant) throws(HTTPFault) -> [String] {
        if let found = known[host] { return found }
        if Self.isAddress(host) { return [] }
        let answer: Answer
        if let earlier = begun[host] { answer = earlier } else { answer = try start(host) }
        begun[host] = answer
        let found = try answer.wait(until: min(deadline, canceller.lookUpDeadline), canceller)
        begun[host] = nil
        guard !found.isEmpty else { throw .unreachable("Could not resolve host: \(host)") }
        known[host] = found
        return found
    }

    private func start(_ host: String) throws(HTTPFault) -> Answer {
        let user = Requester.uid
        guard slots.take(for: user) else {
            throw .unreachable("too many look-ups of names wait for the name service: try again when it answers")
        }
        let answer = Answer()
        let isStarted = startThread("badged-names") { [lookUp, slots] in
            answer.set(lookUp(host))
            slots.giveBack(for: user)
        }
        guard isStarted else {
            slots.giveBack(for: user)
            throw .unreachable("no thread is left to look up \(host)")
        }
        return answer
    }

    /// The answer of one look-up.
    private final class Answer: Sendable {
        private let found = Mutex<[String]?>(nil)
        private let changed = DispatchSemaphore(value: 0)

        func set(_ addresses: [String]) {
            found.withLock { $0 = addresses }
            changed.signal()
        }

        func wait(until deadline: ContinuousClock.Instant, _ canceller: HTTPCanceller) throws(HTTPFault) -> [String] {
            let waker = canceller.add { [changed] in changed.signal() }
            defer { canceller.remove(waker) }
            while true {
                if canceller.isCancelled { throw .cancelled }
                if let addresses = found.withLock({ $0 }) { return addresses }
                let rest = ContinuousClock.now.duration(to: deadline)
                guard rest > .zero else { throw .timeout }
                _ = changed.wait(timeout: .now() + .milliseconds(Int(rest / .milliseconds(1)) + 1))
            }
        }
    }

    /// Whether the text is an IPv4 or IPv6 address.
    private static func isAddress(_ host: String) -> Bool {
        var room = in6_addr()
        return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1
    }

    /// The name service of the system. The C function is getaddrinfo.
    package static let system: LookUp = { host in
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &first) == 0 else { return [] }
        defer { freeaddrinfo(first) }
        var addresses: [String] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let size = socklen_t(text.count)
            guard getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, size, nil, 0, NI_NUMERICHOST) == 0 else {
                continue
            }
            let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            // libcurl does not accept the scope of a link-local address.
            if !address.contains("%") { addresses.append(entry.ai_family == AF_INET6 ? "[\(address)]" : address) }
        }
        return addresses
    }
}

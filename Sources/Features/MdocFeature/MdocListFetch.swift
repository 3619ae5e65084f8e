// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import CountryAuthorities
import Document
package import HTTP
package import Host
package import Text

/// Fetches the lists of `[mdoc] lists` ahead of time, and keeps each until its end. docs/mobile-documents.md.
///
/// Only the administrator names what is fetched, and only time starts a request: what a phone shows never does. One alarm
/// waits for the list that is due next.
@Loop package final class MdocListFetch {
    /// Asks a server once.
    package typealias Ask = @Loop (HTTPRequest) async throws(HTTPFault) -> HTTPResponse

    private struct Entry {
        let address: WebAddress
        var shownAddress: String { PublishedList.shown(address.text) }
        /// When the list is asked for, in seconds since 1970.
        var due: Int
        /// The last second in which the list counts that is kept; nil: there is none.
        var until: Int?
        /// Why the list that is kept does not count any more.
        var refusal: Malformed?
        /// Why there is no newer list; nil: nothing is wrong.
        var fault: Phrase?
        /// The seconds until the next try after a failure.
        var pause = MdocListFetch.firstPause
    }

    private nonisolated static let firstPause = 60
    private static let lastPause = 3600
    private static let types = [
        "application/statuslist+cwt", "application/identifierlist+cwt", "application/pkix-crl",
    ]

    private let folder: MdocAnchorFolder
    private let lists: PublishedListFolder
    private let ask: Ask
    private let time: @Sendable () -> Int
    private var entries: [Entry] = []
    private var alarm: Loop.ClockAlarm?
    private var isFetching = false

    /// - Parameters:
    ///   - addresses: what is fetched.
    ///   - folder: the authorities that judge it.
    ///   - lists: where it is kept.
    ///   - time: seconds since 1970.
    ///   - ask: sends a request.
    package nonisolated init(
        _ addresses: [WebAddress],
        _ folder: MdocAnchorFolder,
        _ lists: PublishedListFolder,
        time: @escaping @Sendable () -> Int = { Int(Loop.wallClock / 1000) },
        ask: @escaping Ask
    ) {
        self.folder = folder
        self.lists = lists
        self.ask = ask
        self.time = time
        entries = addresses.map { Entry(address: $0, due: 0) }
    }

    /// Asks servers through runs of badged-network, with the authorities of the system for TLS. None waits between two
    /// requests.
    package nonisolated static func ask(_ network: Network) -> Ask {
        var network = network
        network.spare = nil
        return { [network] request throws(HTTPFault) in
            let session = HTTPSession(network, .system, HTTPLimits(transfer: .seconds(60)))
            defer { session.close() }
            return try await session.run(request)
        }
    }

    /// When the next list is due, in seconds since 1970; nil: nothing is fetched.
    package var nextTime: Int? { entries.map(\.due).min() }

    /// Begins, and wakes up for each list that is due.
    /// - Throws: `SystemError` if no descriptor is left.
    package func start() async throws(SystemError) {
        alarm = try Loop.ClockAlarm { [weak self] in Task { @Loop in await self?.fetchDue() } }
        await begin()
    }

    /// Looks at the lists that are kept, and fetches those that are missing or due.
    package func begin() async {
        await look()
        await fetchDue()
    }

    /// Asks again at once for all lists.
    package func retry() async {
        for index in entries.indices { entries[index].due = 0 }
        await fetchDue()
    }

    private func look() async {
        let kept = await Self.kept(lists, folder, at: time())
        for index in entries.indices {
            guard let list = kept[entries[index].address.text] else { continue }
            entries[index].due = list.due
            entries[index].until = list.until
        }
    }

    /// Looks whether each list still counts: another list may have revoked its signer.
    private func lookAgain() async {
        let kept = await Self.kept(lists, folder, at: time())
        for index in entries.indices where entries[index].until != nil && kept[entries[index].address.text] == nil {
            entries[index].until = nil
            entries[index].fault = "no authority stands for the last one any more"
            entries[index].due = time() + Self.firstPause
        }
    }

    /// The lists that an authority has signed.
    @concurrent private static func kept(
        _ lists: PublishedListFolder,
        _ folder: MdocAnchorFolder,
        at time: Int
    ) async -> [String: (due: Int, until: Int)] {
        lists.removeOthers()
        let anchors = await folder.anchors(at: time)
        var kept: [String: (due: Int, until: Int)] = [:]
        for address in lists.addresses {
            guard let list = try? lists.list(of: address), (try? list.judge(by: anchors, at: time)) != nil else {
                continue
            }
            kept[address] = (list.due, list.until)
        }
        return kept
    }

    // MARK: One list

    /// How many servers are asked at once: one that hangs does not delay the others for long.
    private static let width = 4

    /// Fetches what is due.
    package func fetchDue() async {
        guard !isFetching else { return }
        isFetching = true
        let now = time()
        var due = entries.indices.filter { entries[$0].due <= now }[...]
        var isNew = false
        await withTaskGroup(of: Bool.self) { group in
            for index in due.prefix(Self.width) { group.addTask { await self.fetch(index) } }
            due = due.dropFirst(Self.width)
            for await isFetched in group {
                isNew = isNew || isFetched
                if let index = due.popFirst() { group.addTask { await self.fetch(index) } }
            }
        }
        if isNew { await lookAgain() }
        isFetching = false
        guard let next = nextTime else { return }
        alarm?.set(at: max(next, time() + 1))
    }

    /// Returns whether a list was kept.
    private func fetch(_ index: Int) async -> Bool {
        let (address, name) = (entries[index].address, entries[index].shownAddress)
        let last = entries[index].fault
        do throws(Malformed) {
            guard lists.path != nil else { throw Malformed(Phrase("there is no state folder ($STATE_DIRECTORY)")) }
            let bytes = try await answer(of: address)
            let now = time()
            let list = try await Self.save(bytes, address.text, folder, lists, at: now)
            entries[index] = Entry(address: address, due: list.due, until: list.until)
            if last != nil { Log.notice("the list \(name) was fetched again") }
            Log.info("the list \(name) was fetched; it counts until \(DocumentTime.text(list.until))")
            return true
        } catch {
            entries[index].fault = error.words
            entries[index].due = time() + entries[index].pause
            entries[index].pause = min(2 * entries[index].pause, Self.lastPause)
            if last != error.words { Log.warning("the list \(name) cannot be fetched: \(error.text)") }
            return false
        }
    }

    private func answer(of address: WebAddress) async throws(Malformed) -> [UInt8] {
        var request = HTTPRequest(address: address, maximumLength: PublishedList.maximumLength)
        request.headers = ["Accept: \(Self.types.joined(separator: ", "))", "User-Agent: badged/\(Version.current)"]
        let answer: HTTPResponse
        do throws(HTTPFault) {
            answer = try await ask(request)
        } catch {
            throw Malformed(error.text(Phrase("its server")))
        }
        guard answer.status == 200 else {
            throw Malformed(Phrase("its server has answered with HTTP status \(answer.status)"))
        }
        return answer.body
    }

    /// Keeps a list that an authority has signed, and that is newer than the one that is kept.
    @concurrent private static func save(
        _ bytes: [UInt8],
        _ address: String,
        _ folder: MdocAnchorFolder,
        _ lists: PublishedListFolder,
        at time: Int
    ) async throws(Malformed) -> (due: Int, until: Int) {
        let list = try PublishedList(bytes, from: address, fetched: time)
        guard list.isCurrent(at: time) else { throw Malformed(Phrase("the list is over, or not valid yet")) }
        try await folder.judge(list, after: try lists.lastList(of: address), at: time)
        do throws(SystemError) {
            try lists.save(bytes, of: address, fetched: time)
        } catch {
            throw Malformed(error.description)
        }
        return (list.due, list.until)
    }

    // MARK: Health

    /// The check `mdocLists` of GET_HEALTH; none if nothing is fetched. `refusals`: why lists that are kept do not count any
    /// more, by their address.
    package func checks(refusals: [String: Malformed] = [:]) -> [HealthCheck] {
        guard !entries.isEmpty else { return [] }
        var entries = entries
        for index in entries.indices where entries[index].until != nil {
            guard let refusal = refusals[entries[index].address.text] else { continue }
            entries[index].refusal = refusal
            entries[index].until = nil
        }
        let name = "mdocLists"
        let now = time()
        let facts = [
            HealthCheck.Fact("lists", entries.count),
            HealthCheck.Fact("current", entries.count { $0.until.map { now <= $0 } ?? false }),
        ]
        let failing = entries.filter { $0.fault != nil || $0.until.map { now > $0 } ?? true }
        // A list that is over is worse than one that cannot be replaced yet.
        guard let entry = failing.min(by: { $0.until ?? 0 < $1.until ?? 0 }) else {
            return [HealthCheck(name, ok: true, facts: facts)]
        }
        let list = entry.shownAddress
        let fault: Phrase =
            if let refusal = entry.refusal {
                "the list \(list) does not count any more: \(refusal.words)"
            } else if let fault = entry.fault {
                "the list \(list) cannot be fetched: \(fault)"
            } else {
                entry.until == nil ? "the list \(list) is being fetched" : "the list \(list) is over"
            }
        let rest: Phrase =
            if let until = entry.until, now <= until {
                "the last one counts until \(DocumentTime.text(until))"
            } else {
                "documents that it is about are not checked for revocation"
            }
        return [
            HealthCheck(
                name,
                ok: false,
                cause: "\(fault); \(rest)",
                advice: "correct [mdoc] lists, the authorities or the network, then: systemctl reload badged; "
                    + "or import the list: sudo badgectl mdoc anchors import FILE",
                facts: facts
            )
        ]
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Server
import Text

/// Text that foreign devices have chosen, and clients show.
enum PanelText {
    /// Whether it has so many characters, and nothing but printable ASCII, which every client can show as it is.
    static func isShown(_ text: String, _ counts: ClosedRange<Int>) -> Bool {
        counts.contains(text.utf8.count) && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
    }
}

/// Passes on what door panels show: badged-osdp reports it, and clients such as a kiosk display it.
/// docs/protocol/panels.md.
@Loop package final class DoorPanels: Feature {
    /// What a client has reported of a panel.
    private struct Report {
        let session: Session
        let members: [JSON.Member]
        let link: Link
        let counts: [String: Int]
    }

    enum Link: String, CaseIterable { case closed, silent, refused, clear, installing, secure }

    static let mostPanels = 64
    nonisolated private static let countNames: [StaticString] = ["confirmed", "dropped", "unconfirmed", "faults"]

    private var reports: [String: Report] = [:]
    /// The panels whose program has closed its connection.
    private var gone: Set<String> = []
    private var watchers: [ObjectIdentifier: Session] = [:]

    package init() {}

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_DOOR_PANELS", "DOOR_PANELS", permission: .readers) { [self] call in
                let session = call.session
                watchers[ObjectIdentifier(session)] = session
                let shown = reports.sorted { $0.key < $1.key }.map(\.value.members) + gone.sorted().map(Self.closed)
                let messages = shown.map(Self.message)
                return Reply(Self.state(true)) { for message in messages { session.push(message) } }
            },
            CommandSpec("STOP_DOOR_PANELS", "DOOR_PANELS", permission: .readers) { [self] call in
                watchers[ObjectIdentifier(call.session)] = nil
                return Reply(Self.state(false))
            },
            CommandSpec("REPORT_PANEL", "REPORTED", permission: .report, report),
        ]
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        if !session.permissions.contains(.report) { forget(session) }
        guard !session.permissions.contains(.readers),
            watchers.removeValue(forKey: ObjectIdentifier(session)) != nil
        else { return }
        session.push(Self.state(false, error: Workflow.denied))
    }

    package func sessionEnded(_ session: Session) {
        watchers[ObjectIdentifier(session)] = nil
        forget(session)
    }

    /// Nobody reports these panels any more.
    private func forget(_ session: Session) {
        for (name, report) in reports where report.session === session {
            close(name)
            guard gone.count < Self.mostPanels else { continue }
            gone.insert(name)
            session.log(.warning, "panel '\(name)' is closed: the program that reported it has gone")
        }
    }

    private func close(_ name: String) {
        reports[name] = nil
        send(Self.closed(name))
    }

    private static func closed(_ name: String) -> [JSON.Member] {
        [.init("panel", .string(name)), .init("link", .string(Link.closed.rawValue))]
    }

    // MARK: Reports

    private func report(_ call: Call) throws(Failure) -> Reply {
        let arguments = call.arguments
        let name = try arguments.required("panel", "1 to 32 characters of ASCII") {
            $0.string.flatMap { PanelText.isShown($0, 1...32) ? $0 : nil }
        }
        let link: Link = try arguments.word("link", Link.words)
        var members = [JSON.Member("panel", .string(name)), .init("link", .string(link.rawValue))]
        let leds = try arguments.list("leds", 0...8, of: "an LED", Self.led)
        if let leds { members.append(.init("leds", .array(leds))) }
        let text = try arguments.list("text", 0...8, of: "at most 32 characters of ASCII") { line -> JSON? in
            line.string.map { PanelText.isShown($0, 0...32) } ?? false ? line : nil
        }
        if let text { members.append(.init("text", .array(text))) }
        let outputs = try arguments.list("outputs", 0...8, of: "true or false") { $0.bool.map(JSON.bool) }
        if let outputs { members.append(.init("outputs", .array(outputs))) }
        let beep = try arguments.optional("beep", "an object with on, off and count") {
            Self.numbers($0, ["on", "off", "count"])
        }
        var counts: [String: Int] = [:]
        for count in Self.countNames { counts["\(count)"] = try arguments.optionalNumber(count, 0...Int.max) ?? 0 }
        let isGone = try arguments.flag("gone") ?? false
        if let other = reports[name], other.session !== call.session {
            throw Failure(.wrongArgument, "another client reports this panel")
        }
        if isGone {
            if reports[name] != nil || gone.remove(name) != nil { close(name) }
            return call.reply()
        }
        guard reports[name] != nil || reports.count < Self.mostPanels else {
            throw Failure(.wrongArgument, "there are \(Self.mostPanels) panels already")
        }
        let old = reports[name]
        gone.remove(name)
        reports[name] = Report(session: call.session, members: members, link: link, counts: counts)
        // A sound is an event, and not part of what the panel shows.
        if let beep {
            send(members + [.init("beep", beep)])
        } else if old?.members != members {
            send(members)
        }
        return call.reply()
    }

    nonisolated private static let colors = ["black", "red", "green", "amber", "blue", "magenta", "cyan", "white"]

    private static func led(_ value: JSON) -> JSON? {
        guard let color = value["color"]?.string, colors.contains(color) else { return nil }
        var members = [JSON.Member("color", .string(color))]
        if let other = value["otherColor"] {
            guard let word = other.string, colors.contains(word), let times = numbers(value, ["on", "off"])?.members
            else {
                return nil
            }
            members += [.init("otherColor", .string(word))] + times
        }
        return .object(members)
    }

    private static func numbers(_ value: JSON, _ names: [String]) -> JSON? {
        let members = names.compactMap { name in
            value[name]?.int.flatMap { (0...25_500).contains($0) ? JSON.Member(name, .number(String($0))) : nil }
        }
        return members.count == names.count ? .object(members) : nil
    }

    // MARK: Messages

    private func send(_ members: [JSON.Member]) {
        for session in watchers.values { session.push(Self.message(members)) }
    }

    private static func message(_ members: [JSON.Member]) -> WrittenMessage {
        WrittenMessage("DOOR_PANEL") { object in
            for member in members {
                object.key(member.key)
                object.value(member.value)
            }
        }
    }

    private static func state(_ isWatching: Bool, error: Phrase? = nil) -> WrittenMessage {
        WrittenMessage("DOOR_PANELS") { object in
            if let error { object.member("error", error) }
            object.member("watching", isWatching)
        }
    }

    package func health() async -> [HealthCheck] {
        let missing = gone.sorted().map { name in
            HealthCheck(
                "panel \(name)",
                ok: false,
                cause: "the program that reported it has gone",
                advice: "systemctl status badged-osdp. One that osdp.conf no longer has is forgotten when badged starts"
            )
        }
        return reports.sorted { $0.key < $1.key }.map { name, report in
            let (cause, advice): (Phrase?, Phrase?) =
                switch report.link {
                case .secure: (nil, nil)
                case .clear: (nil, nil)
                case .refused:
                    ("it opens no secure channel, and gets no card", "Switch the secure channel of the panel on")
                case .closed: ("its line is closed", "Look for the adapter, and read the log of badged-osdp")
                case .silent: ("the other side is silent", "Check wiring, address and baud rate in osdp.conf")
                case .installing: ("the install mode is on", "Let the panel set a key, or restart badged-osdp")
                }
            return HealthCheck("panel \(name)", ok: cause == nil, cause: cause, advice: advice)
        } + missing
    }

    package func metrics() -> [Metric] {
        guard !reports.isEmpty || !gone.isEmpty else { return [] }
        let links = Dictionary(grouping: reports.values.map(\.link) + gone.map { _ in .closed }, by: \.rawValue)
            .mapValues(\.count)
        let all = Dictionary(uniqueKeysWithValues: Link.allCases.map { ($0.rawValue, links[$0.rawValue] ?? 0) })
        func sum(_ name: String) -> Int { reports.values.reduce(0) { $0 &+ ($1.counts[name] ?? 0) } }
        let samples = ["confirmed", "dropped", "unconfirmed"].map {
            Metric.Sample(.whole(sum($0)), [Metric.Label("result", $0)])
        }
        return [
            .gauge("badged_panels", "Door panels and readers in the wall.", by: "link", all),
            Metric("badged_panel_cards_total", .counter, "Cards for door panels.", samples),
            .counter("badged_panel_line_faults_total", "Frames of OSDP with a wrong check.", sum("faults")),
        ]
    }
}

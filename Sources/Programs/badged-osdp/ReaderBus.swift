// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import OSDP
import Text

/// One line with readers in the wall, of which badged-osdp is the control panel.
@Loop final class ReaderBus {
    private let line: OSDPLine
    private let members: [OSDPConfiguration.Bus]
    private let link: DaemonLink
    private let keys: [String: OSDPKey]
    private let panel: OSDPControlPanel
    private var port: BusPort?
    private var links: [OSDPControlPanel.Link]
    private lazy var alarm = Loop.Alarm { [unowned self] in
        perform(panel.expire(at: Loop.bootClock))
    }

    init(
        _ line: OSDPLine,
        _ members: [OSDPConfiguration.Bus],
        _ keys: [String: OSDPKey],
        _ link: DaemonLink
    ) {
        self.line = line
        self.members = members
        self.keys = keys
        self.link = link
        links = members.map { _ in .silent }
        let list = members.map { bus in
            OSDPControlPanel.Member(
                name: bus.name,
                address: UInt8(truncatingIfNeeded: bus.address),
                security: bus.security,
                key: keys[bus.name]
            )
        }
        panel = OSDPControlPanel(list, baud: members[0].baud, gap: 100, at: Loop.bootClock)
        port = BusPort(
            members[0],
            line,
            opened: { [unowned self] in begin() },
            received: { [unowned self] bytes in perform(panel.receive(bytes, at: Loop.bootClock)) },
            closed: { [unowned self] in lost() },
            givesWay: { [unowned self] in panel.givesWay(at: Loop.bootClock) }
        )
    }

    func start() {
        for index in members.indices { report(index) }
        port?.start()
    }

    /// The line is closed for good.
    func end() {
        port?.end()
        alarm.cancel()
    }

    /// Whether this is the bus of these settings.
    func serves(_ line: OSDPLine, _ members: [OSDPConfiguration.Bus], _ keys: [String: OSDPKey]) -> Bool {
        line == self.line && members == self.members
            && members.allSatisfy { OSDPKey.areSame(keys[$0.name], self.keys[$0.name]) }
    }

    private func begin() {
        perform(panel.lineOpened(at: Loop.bootClock))
        for index in members.indices { report(index) }
    }

    private func lost() {
        perform(panel.lineLost(at: Loop.bootClock))
        for index in members.indices { report(index) }
    }

    private func perform(_ effects: [OSDPControlPanel.Effect]) {
        for effect in effects {
            switch effect {
            case .send(let bytes): port?.send(bytes)
            case .read(let index, let bits, let bytes, let isWiegand, let since):
                Log.write(.debug) { "\(members[index].name): a card with \(bits) bits" }
                let format = isWiegand ? "wiegand" : "unspecified"
                link.reportTap("osdp \(members[index].name)", bits, bytes, format, since: since)
            case .ignored(let index, let reason):
                let name = members[index].name
                LineLog.write(.warning, "\(name) \(reason)", "\(name): \(reason)")
            case .link(let index, let new, let fault):
                links[index] = new
                let name = members[index].name
                switch new {
                case .secure:
                    LineLog.write(.notice, "\(name) secure", "\(name): the reader answers, with the secure channel")
                case .clear: LineLog.write(.warning, "\(name) clear", "\(name): the reader answers in clear")
                case .silent:
                    LineLog.write(.warning, "\(name) silent", "\(name): \(fault?.rawValue ?? "the reader is silent")")
                }
                report(index)
            }
        }
        alarm.set(atBootTime: panel.deadline)
    }

    private func report(_ index: Int) {
        let name = members[index].name
        let word = port?.isOpen ?? false ? links[index].rawValue : "closed"
        link.report(
            name,
            [
                .init("panel", .string(name)), .init("link", .string(word)),
                .init("faults", .number(String(index == 0 ? panel.faults : 0))),
            ]
        )
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import OSDP
import Text

/// One panel, to which badged-osdp is a reader. Its times are those of `Loop.bootClock`: a card does not wait longer
/// because the machine has slept.
@Loop final class PanelBus {
    let settings: OSDPConfiguration.Panel
    private let folder: KeyFolder
    private let link: DaemonLink
    private let device: OSDPPeripheral
    private var port: BusPort?
    private lazy var alarm = Loop.Alarm { [unowned self] in perform(device.expire(at: Loop.bootClock)) }
    /// The answer to the newest command, which waits for the turn-around of the line, and the rate of the line after it.
    private var waiting: (answer: [UInt8], since: Int64, baud: Int?)?
    private lazy var turnaround = Loop.Alarm { [unowned self] in
        // After a standstill the panel does not wait for this answer any more. It asks again.
        settle(sending: waiting.map { Loop.bootClock - $0.since < 1000 } ?? false)
    }
    private let indicators: IndicatorLines
    private var confirmed = 0
    private var dropped = 0
    private var unconfirmed = 0
    private var noted: [String: Int64] = [:]

    var name: String { settings.bus.name }

    init(
        _ settings: OSDPConfiguration.Panel,
        _ peripheral: OSDPPeripheral.Settings,
        _ folder: KeyFolder,
        _ link: DaemonLink
    ) {
        self.settings = settings
        self.folder = folder
        self.link = link
        indicators = IndicatorLines(settings.bus.name, settings.lines)
        // Pieces of a frame arrive later over a network, and when the machine is busy.
        device = OSDPPeripheral(peripheral, gap: 100)
        if settings.installMinutes > 0, peripheral.key != nil {
            // Whoever can switch this host off and on could set a key otherwise.
            Log.notice("\(name): no install mode: there is a key; badged-osdp --forget \(name) removes that of a panel")
        } else if settings.installMinutes > 0 {
            device.install(until: Loop.bootClock + Int64(settings.installMinutes) * 60_000)
            Log.warning(
                "\(name): install mode for \(settings.installMinutes) minutes: a panel may set a key, and gets no card"
            )
        }
        guard let line = settings.bus.line else { return }
        var bus = settings.bus
        bus.baud = peripheral.baud
        port = BusPort(
            bus,
            line,
            opened: { [unowned self] in
                device.lineOpened(at: Loop.bootClock)
                report()
            },
            received: { [unowned self] bytes in perform(device.receive(bytes, at: Loop.bootClock)) },
            closed: { [unowned self] in
                settle(sending: false)
                perform(device.lineLost())
                report()
            },
            givesWay: { [unowned self] in device.givesWay(at: Loop.bootClock) }
        )
    }

    func start() {
        port?.start()
        alarm.set(atBootTime: device.deadline)
        report()
    }

    /// The line is closed for good, and what becomes of its cards is in the log.
    func end(_ reason: String) {
        perform(device.end(reason))
        alarm.cancel()
        turnaround.cancel()
        port?.end()
        indicators.end()
    }

    /// Whether this is the bus of these settings.
    func serves(_ settings: OSDPConfiguration.Panel, _ peripheral: OSDPPeripheral.Settings) -> Bool {
        let (key, other) = (device.settings.key, peripheral.key)
        return settings == self.settings && peripheral.address == device.settings.address
            && peripheral.baud == device.settings.baud && OSDPKey.areSame(key, other)
    }

    /// Whether the taps of this reader of badged go to the panel.
    func wants(_ reader: String) -> Bool { settings.readers.isEmpty || settings.readers.contains(reader) }

    func present(_ card: CardBits, _ tap: DaemonLink.Tap) {
        Log.write(.debug) { "\(name): tap \(tap.number) waits" }
        let isAsked = settings.pkoc == .panel && tap.canSign
        let card = OSDPCard(id: tap.number, bits: card.count, bytes: card.bytes, isAsked: isAsked)
        perform(device.present(card, age: tap.age, at: Loop.bootClock))
    }

    /// Blinks for a tap that the panel does not get.
    func refuse() { perform(device.refuse(at: Loop.bootClock)) }

    func setReading(_ isReading: Bool) { perform(device.setReading(isReading, at: Loop.bootClock)) }

    // MARK: Effects

    private func perform(_ effects: [OSDPPeripheral.Effect]) {
        for effect in effects {
            switch effect {
            case .send(let bytes): send(bytes)
            case .ended(let card, let outcome): ended(card, outcome)
            case .link(let link):
                let isFault = link == .silent && port?.isOpen ?? false
                note("\(name): \(Self.text(link))", isFault ? .warning : .notice)
                report()
            case .display: report()
            case .storeKey(let key):
                let isStored = folder.store(key, of: name)
                if !isStored { Log.error("\(name): the key of the panel cannot be stored in \(folder.path)") }
                perform(device.keyStored(isStored, at: Loop.bootClock))
            case .ask(let card, let transaction):
                LineLog.write(.notice, "\(name) asks", "\(name): the panel asks the card of tap \(card)")
                link.challenge(card, transaction) { [weak self] proof in
                    guard let self else { return }
                    perform(device.answer(card, proof, at: Loop.bootClock))
                }
            case .communication(let address, let baud):
                Log.notice("\(name): the panel has set address \(Int(address)) and \(baud) baud")
                if !folder.store(address: address, baud: baud, of: name) {
                    Log.error("\(name): address and baud rate cannot be stored in \(folder.path)")
                }
                if waiting == nil { port?.setBaud(baud) } else { waiting?.baud = baud }
            case .note(let text): note("\(name): \(text)", .warning)
            }
        }
        alarm.set(atBootTime: device.deadline)
    }

    private func send(_ bytes: [UInt8]) {
        guard settings.turnaround > 0 else {
            port?.send(bytes)
            return
        }
        // A panel that asks again meanwhile gets one answer, and does not put it off.
        if waiting == nil { turnaround.set(after: Int64(settings.turnaround)) }
        waiting = (bytes, Loop.bootClock, waiting?.baud)
    }

    /// Ends the turn-around: the answer leaves, or is given up, and the rate of the line is changed after it.
    private func settle(sending isSent: Bool) {
        turnaround.cancel()
        guard let (answer, _, baud) = waiting else { return }
        waiting = nil
        if isSent { port?.send(answer) }
        if let baud { port?.setBaud(baud) }
    }

    /// The log has the outcome of each tap, and the number of the tap, never that of the card.
    private func ended(_ card: Int, _ outcome: OSDPPeripheral.Outcome) {
        switch outcome {
        case .confirmed:
            confirmed += 1
            Log.info("\(name): tap \(card) was told")
        case .unconfirmed:
            unconfirmed += 1
            Log.warning("\(name): tap \(card) is unconfirmed: the panel did not go on after it; it is not told again")
        case .dropped(let reason):
            dropped += 1
            Log.warning("\(name): tap \(card) was dropped: \(reason)")
        }
        report()
    }

    /// A panel that says the same all the time has one line in ten seconds.
    private func note(_ text: String, _ level: Log.Level) {
        let now = Loop.now
        if let last = noted[text], now - last < 10_000 { return }
        noted[text] = now
        Log.write(level) { "\(text)" }
    }

    private static func text(_ link: OSDPPeripheral.Link) -> String {
        switch link {
        case .silent: "the panel is silent"
        case .clear: "the panel asks, without a secure channel"
        case .installing: "the panel uses the key of the installation"
        case .secure: "the secure channel is open"
        }
    }

    // MARK: Report

    private func report() {
        let link =
            switch device.link {
            case _ where !(port?.isOpen ?? false): "closed"
            case .clear where settings.bus.security == .required: "refused"
            case let link: link.rawValue
            }
        let leds = device.display.lights.map { light in
            var members = [JSON.Member("color", .string(OSDPDisplay.Light.word(light.color)))]
            if light.on > 0 {
                members += [
                    .init("otherColor", .string(OSDPDisplay.Light.word(light.otherColor))),
                    .init("on", .number(String(light.on))), .init("off", .number(String(light.off))),
                ]
            }
            return JSON.object(members)
        }
        var members: [JSON.Member] = [
            .init("panel", .string(name)), .init("link", .string(link)), .init("leds", .array(leds)),
            .init("text", .array(device.display.text.map { .string($0) })),
            .init("outputs", .array(device.display.outputs.map { .bool($0) })),
            .init("confirmed", .number(String(confirmed))), .init("dropped", .number(String(dropped))),
            .init("unconfirmed", .number(String(unconfirmed))), .init("faults", .number(String(device.faults))),
        ]
        let beep = device.takeBeep()
        indicators.show(device.display, beep)
        if let beep {
            members.append(
                .init(
                    "beep",
                    .object([
                        .init("on", .number(String(beep.on))), .init("off", .number(String(beep.off))),
                        .init("count", .number(String(beep.count))),
                    ])
                )
            )
        }
        self.link.report(name, members)
    }
}

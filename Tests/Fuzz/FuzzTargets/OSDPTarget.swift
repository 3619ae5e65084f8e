// SPDX-License-Identifier: GPL-3.0-or-later
import OSDP
import Text

/// The bytes of a line of OSDP, for a peripheral and a control panel. They are the same in one piece and one by one, a
/// frame is the same when it is written, and a card is told or ended, never both twice.
@Sendable func osdpLine(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    var (whole, single) = (OSDPFrameReader(), OSDPFrameReader())
    let found = whole.read(bytes, at: 0)
    let same = bytes.flatMap { single.read([$0], at: 0) }
    require(found.map(\.bytes) == same.map(\.bytes), "the frames depend on how the bytes arrive")
    require(whole.waiting < OSDPFrame.largest, "an unfinished frame is longer than allowed")
    for (frame, raw) in found {
        guard let again = OSDPFrame(Array(frame.bytes.dropFirst())) else {
            return require(false, "a frame that was read cannot be written")
        }
        require(again == frame && raw.count + 1 == frame.bytes.count, "a frame is another one when it is written")
    }

    var settings = OSDPPeripheral.Settings()
    settings.security = .optional
    settings.acceptsCommunication = true
    settings.asksCards = true
    settings.rows = 2
    settings.outputs = 2
    settings.key = OSDPKey(Secret(0x10...0x1F))
    let device = OSDPPeripheral(settings)
    device.install(until: 1_000_000)
    var ended: [Int: Int] = [:]
    func count(_ effects: [OSDPPeripheral.Effect], _ now: Int64) {
        for effect in effects {
            switch effect {
            case .ended(let card, _): ended[card, default: 0] += 1
            case .storeKey: count(device.keyStored(true, at: now), now)
            case .send(let bytes): require(bytes.count <= OSDPFrame.largest + 1, "an answer is too long")
            case .ask(let card, let transaction):
                require(card == 3 && transaction.count == PanelPKOC.transactionLength, "a panel asks what it may not")
                count(device.answer(card, ([4] + transaction, transaction), at: now), now)
            case .link, .display, .communication, .note: break
            }
        }
    }
    for id in 1...3 {
        count(device.present(OSDPCard(id: id, bits: 8, bytes: [UInt8(id)], isAsked: id == 3), at: 0), 0)
    }
    count(device.receive(bytes, at: 1), 1)
    count(device.expire(at: 1_000_000), 1_000_000)
    count(device.lineLost(), 1_000_000)
    require(ended.count == 3 && ended.values.allSatisfy { $0 == 1 }, "a card is lost or ends twice")
    let panel = OSDPControlPanel(
        [.init(name: "r", address: 0, security: .off), .init(name: "s", address: 1, key: settings.key)],
        baud: 9600,
        at: 0
    )
    var now: Int64 = 0
    _ = panel.lineOpened(at: now)
    for byte in bytes {
        _ = panel.expire(at: now)
        _ = panel.receive([byte], at: now)
        now += byte == 0 ? 50 : 1
    }
}

/// The messages of PKOC over OSDP: each part begins with its length. What is put together is never longer than allowed,
/// and a question has its transaction.
@Sendable func osdpPKOC(_ input: UnsafeRawBufferPointer) {
    if let question = try? PanelPKOC.Question(Array(input)) {
        require(question.transaction.count == PanelPKOC.transactionLength, "a question without a transaction")
    }
    var rest = Array(input)[...]
    var parts = PanelPKOC.Parts()
    while let count = rest.popFirst() {
        let part = Array(rest.prefix(Int(count)))
        rest = rest.dropFirst(part.count)
        guard part.count >= 10, let message = try? parts.add(part) else { continue }
        require((1...PanelPKOC.Parts.longest).contains(message.count), "a message is longer than allowed")
        _ = try? PanelPKOC.Question(message)
    }
}

/// The rules and formats of osdp.conf: what is accepted gives as many bytes as its bits need.
@Sendable func osdpRule(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    // INIFile refuses other lines.
    guard text.isComparable else { return }
    let parts = text.utf8.split(separator: 0x0A, maxSplits: 1).map { String(Substring($0)) }
    guard let first = parts.first else { return }
    var own: [String: CardFormat] = [:]
    if parts.count == 2, let fields = try? CardFields(first, parities: parts[1]) {
        own["mine"] = CardFormat(.fields(fields))
    }
    var card = PresentedCard(.pkoc)
    card.isVerified = true
    card.key = [UInt8](repeating: 0xA5, count: 32)
    for rule in [first, "any -> mine"] {
        guard let rule = try? CardRule(rule, own),
            let number = try? CardRule.number(of: card, for: "front", [rule])
        else { continue }
        require((1...256).contains(number.count), "a number has no bits")
        require(number.bytes.count == (number.count + 7) / 8, "bits and bytes differ")
    }
}

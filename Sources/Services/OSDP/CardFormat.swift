// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A number for a panel, as it goes on the line.
package struct CardBits: Sendable, Equatable {
    package let count: Int
    package let bytes: [UInt8]

    package init(count: Int, bytes: [UInt8]) {
        self.count = count
        self.bytes = bytes
    }

    /// A count that is no multiple of 8 is filled up in front, as a number, or else at the end.
    init(_ bits: [Bool], isRightAligned: Bool) {
        let padding = [Bool](repeating: false, count: (8 - bits.count % 8) % 8)
        let whole = isRightAligned ? padding + bits : bits + padding
        count = bits.count
        bytes = stride(from: 0, to: whole.count, by: 8).map { start in
            whole[start..<start + 8].reduce(0) { $0 << 1 | ($1 ? 1 : 0) }
        }
    }

    /// The rightmost bits of a number, big-endian, with zeros in front.
    static func rightmost(_ count: Int, of number: [UInt8]) -> [Bool] {
        let all = number.flatMap { byte -> [Bool] in (0..<8).map { byte & (0x80 >> $0) != 0 } }
        return Array(repeating: false, count: max(0, count - all.count)) + all.suffix(count)
    }
}

/// What a tap has shown, as the rules for a panel see it.
package struct PresentedCard: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable { case pkoc, aliro, mdoc, tag, raw }

    package var kind: Kind
    package var isVerified = false
    package var isListed: Bool?
    /// X of the key that was proven, 32 bytes.
    package var key: [UInt8]?
    /// The number of a tag.
    package var uid: [UInt8]?
    package var isRandom = false
    /// What a reader in the wall has read.
    package var raw: CardBits?
    /// Why there is neither a key nor a number.
    package var reason: String?

    package init(_ kind: Kind) { self.kind = kind }

    /// What a message CREDENTIAL says; nil: it is of no use to a panel. `point` is a key that was proven, 65 bytes.
    package init?(
        protocol name: String,
        point: [UInt8]?,
        isListed: Bool?,
        tag: (uid: [UInt8], isRandom: Bool)?,
        raw: CardBits?,
        reason: String?
    ) {
        switch name {
        case "tag": self.init(.tag)
        case "raw": self.init(.raw)
        case "Aliro": self.init(.aliro)
        case _ where name.hasPrefix("pkoc"): self.init(.pkoc)
        case _ where name.hasPrefix("mdoc"): self.init(.mdoc)
        default: return nil
        }
        self.isListed = isListed
        if let point {
            isVerified = true
            key = Array(point.dropFirst().prefix(32))
        } else if let tag {
            uid = tag.uid
            isRandom = tag.isRandom
        } else if let raw {
            self.raw = raw
        } else {
            self.reason = reason ?? "unknown"
        }
    }

    /// The number of which fields take bits.
    var number: [UInt8]? { key ?? uid }
}

/// How a card becomes a number for a panel.
package struct CardFormat: Sendable, Equatable {
    package enum Layout: Sendable, Equatable {
        /// The rightmost bits of a key.
        case key(Int)
        /// The number of a tag; nil: of any length, otherwise of this many bits.
        case uid(Int?)
        /// What a reader in the wall has read, unchanged.
        case unchanged
        case fields(CardFields)
    }

    package var layout: Layout
    /// The facility code that is written; nil: it is taken from the card, in front of the number.
    package var facility: Int?
    /// Whether the bytes of a UID come in the reverse order.
    package var isReversed = false
    /// nil: as is usual for the layout.
    package var isRightAligned: Bool?

    private static let fieldFormats: [(names: [String], fields: String, parities: String)] = [
        (["h10301"], "P1 F8 C16 P1", "even:1FFE000 odd:1FFE"),
        (["h10302"], "P1 C35 P1", "even:FFFFC0000 odd:7FFFE"),
        (["h10304"], "P1 F16 C19 P1", "even:FFFFC0000 odd:7FFFE"),
        (["h10306"], "P1 F16 C16 P1", "even:1FFFE0000 odd:1FFFE"),
        (["corporate1000-35", "c1k35s"], "P1 P1 F12 C20 P1", "odd:3FFFFFFFF even:1B6DB6DB6 odd:36DB6DB6C"),
        (
            ["corporate1000-48", "c1k48s"], "P1 P1 F22 C23 P1",
            "odd:7FFFFFFFFFFF even:1B6DB6DB6DB6 odd:36DB6DB6DB6C"
        ),
    ]

    /// The names for messages; `keyN` has N from 1 to 256.
    package static let names =
        ["keyN", "pkoc64", "pkoc75", "pkoc256", "uid", "csn32", "csn56", "raw"]
        + fieldFormats.flatMap(\.names)

    package init(_ layout: Layout) { self.layout = layout }

    /// Finds a format by its name; nil: there is none.
    package init?(named name: String, _ own: [String: CardFormat] = [:]) {
        if let format = own[name] {
            self = format
            return
        }
        switch name {
        case "uid": self.init(.uid(nil))
        case "csn32": self.init(.uid(32))
        case "csn56": self.init(.uid(56))
        case "raw": self.init(.unchanged)
        default:
            if let known = Self.fieldFormats.first(where: { $0.names.contains(name) }) {
                guard let fields = try? CardFields(known.fields, parities: known.parities) else { return nil }
                self.init(.fields(fields))
                return
            }
            for prefix in ["key", "pkoc"] where name.hasPrefix(prefix) {
                guard let bits = Int(name.dropFirst(prefix.count)), (1...256).contains(bits) else { continue }
                self.init(.key(bits))
                return
            }
            return nil
        }
    }

    /// Reads `NAME [facility=N] [reversed] [left|right]`.
    package init(words: [String], _ own: [String: CardFormat] = [:]) throws(Malformed) {
        guard let name = words.first, let named = CardFormat(named: name, own) else {
            throw Malformed(Phrase("the format is one of \((Self.names + own.keys.sorted()).joined(separator: ", "))"))
        }
        self = named
        for word in words.dropFirst() {
            switch word {
            case "reversed": isReversed = true
            case "left": isRightAligned = false
            case "right": isRightAligned = true
            default:
                guard word.hasPrefix("facility="), let number = Int(word.dropFirst(9)), number >= 0 else {
                    throw Malformed(Phrase("after a format come facility=NUMBER, reversed, left or right"))
                }
                facility = number
            }
        }
        if let facility {
            guard case .fields(let fields) = layout, fields.facilityBits > 0,
                fields.facilityBits >= Int.bitWidth - 1 || facility < 1 << fields.facilityBits
            else { throw Malformed(Phrase("the facility code does not fit into the format")) }
        }
    }

    /// The number of a card, or why it has none in this format.
    package func number(of card: PresentedCard) throws(Malformed) -> CardBits {
        if card.isRandom { throw Malformed(Phrase("its number is another one at each tap")) }
        switch layout {
        case .key(let bits):
            guard let key = card.key else { throw Malformed(Phrase("it has shown no key")) }
            return CardBits(CardBits.rightmost(bits, of: key), isRightAligned: isRightAligned ?? true)
        case .uid(let bits):
            guard let uid = card.uid else { throw Malformed(Phrase("it is no tag")) }
            guard bits == nil || bits == uid.count * 8 else { throw Malformed(Phrase("its number has another length")) }
            return CardBits(count: uid.count * 8, bytes: isReversed ? uid.reversed() : uid)
        case .unchanged:
            guard let raw = card.raw else { throw Malformed(Phrase("no reader in the wall has read it")) }
            return raw
        case .fields(let fields):
            guard let number = card.number else { throw Malformed(Phrase("it has shown no number")) }
            let bits = fields.bits(of: isReversed ? number.reversed() : number, facility: facility)
            return CardBits(bits, isRightAligned: isRightAligned ?? false)
        }
    }
}

/// A number of fields with parities, such as `P1 F8 C16 P1`.
package struct CardFields: Sendable, Equatable {
    private enum Field: Sendable, Equatable {
        case parity(Int)
        case facility(Int)
        case card(Int)
        case fixed([Bool])
    }

    private struct Parity: Sendable, Equatable {
        let isOdd: Bool
        /// The bits that are counted, with the first bit of the number first.
        let mask: [Bool]
    }

    private let fields: [Field]
    private let parities: [Parity]
    /// The order in which the parities are computed: one that counts another one comes later.
    private let order: [Int]
    package let count: Int
    let facilityBits: Int
    private let cardBits: Int

    /// Reads `P1 F8 C16 P1`, where B0110 are fixed bits, and `even:MASK odd:MASK`, one for each P. The rightmost bit of
    /// a mask in hexadecimal is the last bit of the number.
    package init(_ text: String, parities masks: String) throws(Malformed) {
        var fields: [Field] = []
        var count = 0
        var (facility, card, parities) = (0, 0, 0)
        for word in CardRule.words(text) {
            let rest = word.dropFirst()
            if word.first == "B" {
                guard !rest.isEmpty, rest.allSatisfy({ $0 == "0" || $0 == "1" }), rest.utf8.count <= 64 else {
                    throw Malformed(Phrase("B is followed by the digits 0 and 1"))
                }
                fields.append(.fixed(rest.map { $0 == "1" }))
                count += rest.utf8.count
                continue
            }
            guard let bits = Int(rest), (1...256).contains(bits) else {
                throw Malformed(Phrase("a field is P, F, C and a number of bits, or B and bits"))
            }
            count += bits
            switch word.first {
            case "P" where bits == 1:
                fields.append(.parity(parities))
                parities += 1
            case "F" where facility == 0:
                facility = bits
                fields.append(.facility(bits))
            case "C" where card == 0:
                card = bits
                fields.append(.card(bits))
            default: throw Malformed(Phrase("a format has P1, at most one F and one C, and B"))
            }
        }
        guard (1...256).contains(count), card > 0 else {
            throw Malformed(Phrase("a format has a field C, and at most 256 bits"))
        }
        let words = CardRule.words(masks)
        guard words.count == parities else {
            throw Malformed(Phrase("there is one of even:MASK, odd:MASK for each P1"))
        }
        var list: [Parity] = []
        for word in words {
            let parts = word.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0] == "even" || parts[0] == "odd", (1...64).contains(parts[1].utf8.count),
                let number = Hex.decode(parts[1].utf8.count % 2 == 0 ? String(parts[1]) : "0" + parts[1])
            else { throw Malformed(Phrase("a parity is even:MASK or odd:MASK in hexadecimal")) }
            let mask = CardBits.rightmost(number.count * 8, of: number)
            guard !mask.dropLast(count).contains(true) else {
                throw Malformed(Phrase("a mask is longer than the number"))
            }
            list.append(Parity(isOdd: parts[0] == "odd", mask: CardBits.rightmost(count, of: number)))
        }
        self.fields = fields
        self.parities = list
        self.count = count
        facilityBits = facility
        cardBits = card
        let places = Self.places(fields)
        var order: [Int] = []
        while order.count < list.count {
            let next = list.indices.first { index in
                !order.contains(index)
                    && list.indices.allSatisfy { order.contains($0) || !list[index].mask[places[$0]] }
            }
            guard let next else { throw Malformed(Phrase("a parity counts itself, or two count each other")) }
            order.append(next)
        }
        self.order = order
    }

    /// The place of each parity.
    private static func places(_ fields: [Field]) -> [Int] {
        var places: [Int] = []
        var position = 0
        for field in fields {
            switch field {
            case .parity:
                places.append(position)
                position += 1
            case .facility(let bits), .card(let bits): position += bits
            case .fixed(let bits): position += bits.count
            }
        }
        return places
    }

    /// The bits for a number. Without `facility` the facility code is what is left of the card number.
    func bits(of number: [UInt8], facility: Int?) -> [Bool] {
        let taken = CardBits.rightmost(facilityBits + cardBits, of: number)
        let code = facility.map { code in
            (0..<facilityBits).map { index in
                let shift = facilityBits - 1 - index
                return shift < Int.bitWidth - 1 && code >> shift & 1 == 1
            }
        }
        var bits: [Bool] = []
        for field in fields {
            switch field {
            case .parity: bits.append(false)
            case .facility: bits += code ?? Array(taken.prefix(facilityBits))
            case .card: bits += taken.suffix(cardBits)
            case .fixed(let fixed): bits += fixed
            }
        }
        let places = Self.places(fields)
        for index in order {
            let ones = zip(bits, parities[index].mask).count { $0 && $1 }
            bits[places[index]] = (ones % 2 == 1) != parities[index].isOdd
        }
        return bits
    }
}

/// Which taps a panel is told, and as which number: the first rule that fits decides.
package struct CardRule: Sendable, Equatable {
    /// What a tap has to have.
    private struct Conditions: Sendable, Hashable {
        /// nil: any.
        var kind: PresentedCard.Kind?
        var isListed: Bool?
        var takesUnverified = false
        /// The length of the number: bytes of a UID, bits of what a reader in the wall has read.
        var length: Int?
        var panel: String?
    }

    private var conditions = Conditions()
    /// nil: such taps are refused.
    private let format: CardFormat?

    /// Without rules: keys that were proven, 64 bits.
    package static let standard = [CardRule(CardFormat(.key(64)))]

    private init(_ format: CardFormat?) { self.format = format }

    /// The words between spaces.
    static func words(_ text: String) -> [String] {
        text.utf8.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 }).map { String(Substring($0)) }
    }

    /// Reads `CONDITIONS -> FORMAT`, such as `tag length=4 -> csn32 reversed`.
    package init(_ text: String, _ own: [String: CardFormat] = [:]) throws(Malformed) {
        let words = Self.words(text)
        guard let arrow = words.firstIndex(of: "->"), arrow > 0 else {
            throw Malformed(Phrase("a rule has the form CONDITIONS -> FORMAT"))
        }
        let target = Array(words[(arrow + 1)...])
        self.init(target == ["none"] ? nil : try CardFormat(words: target, own))
        for word in words[..<arrow] {
            if let kind = PresentedCard.Kind(rawValue: word) {
                guard conditions.kind == nil else { throw Malformed(Phrase("a rule has one kind")) }
                conditions.kind = kind
                if kind == .tag || kind == .raw { conditions.takesUnverified = true }
                continue
            }
            switch word {
            case "any": break
            case "listed": conditions.isListed = true
            case "unlisted": conditions.isListed = false
            case "unverified": conditions.takesUnverified = true
            default:
                if word.hasPrefix("length="), let number = Int(word.dropFirst(7)), number > 0 {
                    conditions.length = number
                } else if word.hasPrefix("panel="), word.utf8.count > 6 {
                    conditions.panel = String(word.dropFirst(6))
                } else {
                    let kinds = PresentedCard.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                    throw Malformed(
                        "a condition is any, \(kinds), listed, unlisted, unverified, length=NUMBER or panel=NAME"
                    )
                }
            }
        }
    }

    /// The only panel that this rule is for; nil: it is for all.
    var panel: String? { conditions.panel }

    private func fits(_ card: PresentedCard, to panel: String) -> Bool {
        let wanted = conditions
        let length = card.raw?.count ?? card.uid?.count ?? card.key.map { $0.count * 8 }
        return (wanted.kind == nil || wanted.kind == card.kind)
            && (wanted.isListed == nil || wanted.isListed == (card.isListed ?? false))
            && (card.isVerified || wanted.takesUnverified) && (wanted.length == nil || wanted.length == length)
            && (wanted.panel == nil || wanted.panel == panel)
    }

    /// The taps that the rules take so far.
    struct Taken {
        private var all: Set<Conditions> = []

        /// Adds a rule.
        /// - Returns: false if one that was added before takes all its taps.
        mutating func insert(_ rule: CardRule) -> Bool {
            var wider = [rule.conditions]
            for leaveOut in Self.steps {
                wider += wider.map { conditions in
                    var changed = conditions
                    leaveOut(&changed)
                    return changed
                }
            }
            defer { all.insert(rule.conditions) }
            return all.isDisjoint(with: wider)
        }

        /// Each leaves one condition out.
        private static let steps: [@Sendable (inout Conditions) -> Void] = [
            { $0.kind = nil }, { $0.isListed = nil }, { $0.takesUnverified = true }, { $0.length = nil },
            { $0.panel = nil },
        ]
    }

    /// The number of a card for a panel, or why it gets none.
    package static func number(
        of card: PresentedCard,
        for panel: String,
        _ rules: [CardRule]
    ) throws(Malformed) -> CardBits {
        if let reason = card.reason { throw Malformed(Phrase("it has shown no credential: \(reason)")) }
        guard let rule = rules.first(where: { $0.fits(card, to: panel) }) else {
            throw Malformed(Phrase("no rule names it"))
        }
        guard let format = rule.format else { throw Malformed(Phrase("a rule refuses it")) }
        return try format.number(of: card)
    }
}

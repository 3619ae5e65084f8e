// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Text

@testable import VirtualEID

/// A dialogue of the fault matrix: a card, and the input of its user.
struct Dialogue: Sendable {
    let name: String
    /// Whether the card is inserted before the workflow starts; otherwise SET_CARD inserts it.
    var isInsertedBefore = true
    /// The tries left for the card's PIN at the start.
    var retryCounter = 3
    var isTransport = false
    /// The tries left at which the user types a wrong PIN.
    var mistakes: Set<Int> = []

    static let all = [
        Dialogue(name: "happy"),
        Dialogue(name: "wrong PIN, then right", mistakes: [3]),
        Dialogue(name: "wrong, wrong, CAN, PIN", mistakes: [3, 2]),
        Dialogue(name: "blocked: PUK, then PIN", retryCounter: 0),
        Dialogue(name: "transport PIN", isTransport: true),
        Dialogue(name: "card put in during the workflow", isInsertedBefore: false),
    ]

    // The digits must not occur elsewhere in messages and logs: other numbers have no leading 0 and are shorter.
    static let pin = "738291"
    static let transportPIN = "08305"
    static let wrongPIN = "605172"
    static let can = "294617"
    static let puk = "8150372946"
    static let newPIN = "917463"
    static let newerPIN = "362058"
    static let secrets = [pin, transportPIN, wrongPIN, can, puk, newPIN, newerPIN]

    /// The PIN that the card has at the start.
    var firstPIN: String { isTransport ? Self.transportPIN : Self.pin }

    func card(_ faults: [VirtualCardFault] = []) -> VirtualEIDDescription {
        .card { card in
            card.pin = SecretBox(Secret(Self.pin.utf8))
            card.can = SecretBox(Secret(Self.can.utf8))
            card.puk = SecretBox(Secret(Self.puk.utf8))
            card.transportPIN = isTransport ? SecretBox(Secret(Self.transportPIN.utf8)) : nil
            card.retryCounter = retryCounter
            card.options.faults = faults
        }
    }

    /// Returns the card with PACE on NIST P-256, which halves the time of the matrices.
    func quickCard(_ faults: [VirtualCardFault] = []) -> VirtualEIDDescription {
        var card = card(faults)
        card.files = Self.quickFiles
        card.keys = [.init(id: 41, content: SecretBox(Secret(Self.chipAuthenticationKey)))]
        return card
    }

    private static let quickFiles: [VirtualEIDDescription.File] =
        DefaultCard.dataGroups.map { .init(fileID: $0.fileID, shortFileID: $0.shortFileID, content: hex($0.content)) }
        + [VirtualEIDDescription.quickCardAccess]

    private static let chipAuthenticationKey = hex(DefaultCard.keys.first { $0.id == 41 }?.content ?? "")

    /// Returns the card with a fault as the `card` object of SET_CARD.
    func json(_ fault: Fault, at index: Int) -> String {
        #"""
        {"pin":"\#(Self.pin)","can":"\#(Self.can)","puk":"\#(Self.puk)","retryCounter":\#(retryCounter),\#
        "transportPin":\#(isTransport ? "\"\(Self.transportPIN)\"" : "false"),\#
        "faults":[{"afterApdu":\#(index),"do":"\#(fault.rawValue)"}]}
        """#
    }
}

/// The faults of the matrix, with their names in the protocol.
enum Fault: String, CaseIterable, Sendable {
    case remove, removeAfter, mute
    case sw6F00 = "sw:6F00"
    case sw6982 = "sw:6982"
    case sw6988 = "sw:6988"
    case truncate, garbage

    var action: VirtualCardFault.Action {
        switch self {
        case .remove: .remove
        case .removeAfter: .removeAfter
        case .mute: .mute
        case .sw6F00: .status(StatusWord(0x6F00))
        case .sw6982: .status(StatusWord(0x6982))
        case .sw6988: .status(StatusWord(0x6988))
        case .truncate: .truncate
        case .garbage: .garbage
        }
    }

    /// Whether the fault removes the card from the reader.
    var removesCard: Bool { self == .remove || self == .removeAfter }

    /// Whether no answer reaches the reader, because the card is removed or silent.
    var losesCard: Bool { removesCard || self == .mute }

    /// Whether the card executes the command although its answer is lost or corrupted.
    var executes: Bool {
        switch self {
        case .removeAfter, .truncate, .garbage: true
        case .remove, .mute, .sw6F00, .sw6982, .sw6988: false
        }
    }
}

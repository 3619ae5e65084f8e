// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import NFCTestSupport
import ReadersVirtual
import Text
import VirtualEID
import VirtualKeycard

/// An emulated NFC board on USB with a virtual eID card, for tests in a kernel with vhci_hcd. Scripts control it through
/// standard input.
@main struct Program {
    static let usage = """
        usage: badged-nfc-board pn531|pn533|acr122u [PORT]

        Emulates an NFC board on a USB port of this kernel's vhci_hcd, an eID card (PIN 123456,
        CAN 500540, PUK 9876543210) and a Keycard 3.1 with the default values. Needs root. Executes
        the commands on standard input and answers each one with a line:

          plug             plug the board into port PORT (0)
          unplug           unplug the board
          unplug after N   unplug the board after N further frames between reader and card
          disturb          send bytes that are no frame, as a disturbed line does
          insert a|b       put the card on the board, as a card of type A or B
          keycard a|b      put the Keycard on the board
          remove           take the card away
          pin PIN          print "yes" when this is the card's PIN; costs no try
          tries            print the card's retry counter
          commands         print how many commands the chip has executed since it was plugged in
          frames           print how many frames were exchanged since the card was inserted

        Ends at the end of standard input.
        """

    static func main() async {
        var arguments = CommandLine.arguments.dropFirst()
        let name = arguments.popFirst()
        guard let name, let model = EmulatedUSBBoard.Model(rawValue: name),
            let port = Int(arguments.popFirst() ?? "0"), arguments.isEmpty
        else {
            print(usage)
            exit(name == "--help" ? 0 : 2)
        }
        do {
            let (board, card) = (EmulatedUSBBoard(model), try VirtualCard())
            let keycard = try VirtualKeycardDescription().makeCard()
            while let line = readLine() {
                do {
                    let words = line.split(separator: " ").map(String.init)
                    say(try await execute(words, board, card, keycard, port: port))
                } catch {
                    say("error: \(error.text)")
                }
            }
            board.unplug()
        } catch {
            say("error: \(error)")
            exit(1)
        }
    }

    private static func execute(
        _ words: [String],
        _ board: EmulatedUSBBoard,
        _ card: VirtualCard,
        _ keycard: VirtualCard,
        port: Int
    ) async throws(EmulatedUSBBoard.SetupError) -> String {
        switch (words.first, words.count) {
        case ("plug", 1): try board.plug(port: port)
        case ("unplug", 1): board.unplug()
        case ("unplug", 3):
            guard words[1] == "after", let frames = Int(words[2]) else { return "error: see --help" }
            board.unplug(after: frames)
        case ("disturb", 1): board.disturbLine()
        case ("insert", 2): board.field.insert(.virtual(card, words[1] == "b" ? .b : .a))
        case ("keycard", 2): board.field.insert(.virtual(keycard, words[1] == "b" ? .b : .a))
        case ("remove", 1): board.field.remove()
        case ("pin", 2): return await card.hasPIN(Secret(words[1].utf8)) ? "yes" : "no"
        case ("tries", 1): return "\(await card.eidState?.retryCounter ?? 0)"
        case ("commands", 1): return "\(board.commands)"
        case ("frames", 1): return "\(board.field.exchanges)"
        default: return "error: see --help"
        }
        return "done"
    }

    /// Writes a line without buffering, because scripts wait for it.
    private static func say(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(1, bytes, bytes.count)
    }
}

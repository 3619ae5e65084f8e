// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import NFCTestSupport
import ReadersVirtual
import Secrets

/// An NFC board on USB with a virtual eID card, for tests in a kernel with vhci_hcd: scripts tell it on standard input
/// what happens to it.
@main struct Program {
    static let usage = """
        usage: badged-nfc-board pn531|pn533|acr122u [PORT]

        Plays an NFC board on a USB port of this kernel's vhci_hcd, and an eID card (PIN 123456,
        CAN 500540, PUK 9876543210). Needs root. Takes lines from standard input, and answers
        each with a line when it is done:

          plug             into port PORT (0)
          unplug           at once
          unplug after N   N frames between reader and card later
          insert a|b       lays the card on the board, as one of type A or B
          remove           takes it away
          pin PIN          "yes" when this is the card's PIN; costs no try
          tries            how many the card still gives
          commands         how many the chip has executed since it was plugged in
          frames           between reader and card since it was inserted

        Ends with standard input.
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
            while let line = readLine() {
                do {
                    say(try await obey(line.split(separator: " ").map(String.init), board, card, port: port))
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

    private static func obey(
        _ words: [String],
        _ board: EmulatedUSBBoard,
        _ card: VirtualCard,
        port: Int
    ) async throws(EmulatedUSBBoard.Broken) -> String {
        switch (words.first, words.count) {
        case ("plug", 1): try board.plug(port: port)
        case ("unplug", 1): board.unplug()
        case ("unplug", 3):
            guard words[1] == "after", let frames = Int(words[2]) else { return "error: see --help" }
            board.unplug(after: frames)
        case ("insert", 2): board.field.insert(.eID(card, words[1] == "b" ? .b : .a))
        case ("remove", 1): board.field.remove()
        case ("pin", 2): return await card.hasPIN(Secret(words[1].utf8)) ? "yes" : "no"
        case ("tries", 1): return "\(await card.state.retryCounter)"
        case ("commands", 1): return "\(board.commands)"
        case ("frames", 1): return "\(board.field.exchanges)"
        default: return "error: see --help"
        }
        return "done"
    }

    /// At once: others wait for the line.
    private static func say(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(1, bytes, bytes.count)
    }
}

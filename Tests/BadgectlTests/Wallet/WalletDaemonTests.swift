// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import TestSupport
import Testing
import Text

/// Ends its workflow as soon as the card is in the reader.
private struct Visitor: WalletUser {
    let connection: DaemonConnection
    let card: String

    func insertCard(error: String?, reader: String?) async {
        guard error == nil, let card = try? JSON(card.utf8) else { return }
        _ = try? await connection.setCard(in: "Simulator", card: card)
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? { nil }
}

/// badgectl with badged and its virtual Keycard.
@Suite("badgectl: wallet with badged and its virtual Keycard", .timeLimit(.minutes(5))) struct WalletDaemonTests {
    private static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    /// Starts badged with a store. `card` is the card of its virtual reader, not inserted.
    private func daemon(card: String? = nil) async throws -> RunningDaemon {
        let folder = try TemporaryFolder()
        let daemon = try await RunningDaemon(["--no-ble"], in: folder, environment: ["STATE_DIRECTORY": folder.path])
        if let card {
            let connection = try await DaemonConnection.connect(to: daemon.path, keepsEvents: false)
            let result = try await connection.runWallet(.resetPIN(), user: Visitor(connection: connection, card: card))
            #expect(result.error?.code == "USER_CANCELED")
            connection.close()
        }
        return daemon
    }

    @Test("After pin the old PIN is wrong and the new one is right")
    func pin() async throws {
        let daemon = try await daemon(card: #"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let first = try badgectl(daemon, "wallet", "pin", "--pin-stdin", input: "123456\n654321\n")
        await first.ends(0, printing: "The PIN has been changed.\n")
        let second = try badgectl(daemon, "wallet", "pin", "--pin-stdin", input: "123456\n654321\n222222\n")
        await second.ends(1, saying: "That PIN was wrong.\n2 tries are left.\nbadgectl: error: the PIN was wrong: ")
        let third = try badgectl(daemon, "wallet", "pin", "--pin-stdin", input: "654321\n222222\n")
        await third.ends(0, printing: "The PIN has been changed.\n")
    }

    @Test("A blocked PIN is unblocked with the PUK, and a PIN with tries needs no PUK")
    func unblock() async throws {
        let daemon = try await daemon(card: #"{"kind":"keycard","words":"\#(Self.words)","retryCounter":0}"#)
        let wrong = try badgectl(
            daemon,
            "wallet",
            "unblock",
            "--pin-stdin",
            input: "000000000000\n333333\n987654321098\n333333\n"
        )
        await wrong.ends(1, saying: "badgectl: error: the PUK was wrong: the PIN was not unblocked\n")
        #expect(
            wrong.text(.error).contains("The PUK unblocks it: the 12 digits that you wrote down. 5 tries are left.")
        )
        let program = try badgectl(daemon, "wallet", "unblock", "--pin-stdin", input: "987654321098\n333333\n")
        await program.ends(0, saying: " 4 tries are left.")
        let again = try badgectl(daemon, "wallet", "unblock", "--pin-stdin")
        await again.ends(1, saying: "hint: the PIN still has tries: badgectl wallet pin\n")
    }

    @Test("unpair removes the pairing, and a second unpair reports that there is none")
    func unpair() async throws {
        let daemon = try await daemon(card: #"{"kind":"keycard","words":"\#(Self.words)"}"#)
        let program = try badgectl(daemon, "wallet", "unpair", "--pin-stdin", input: "123456\n")
        await program.ends(0, printing: "This computer is no longer paired with the card.\n")
    }

    @Test("reset-card resets the card with this key UID, and no other card")
    func reset() async throws {
        let daemon = try await daemon(card: #"{"kind":"keycard","words":"\#(Self.words)"}"#)
        // The key UID of the BIP-39 words.
        let connection = try await DaemonConnection.connect(to: daemon.path)
        var keyUID = ""
        let watching = Task {
            for await event in connection.events {
                if let uid = (event.message as? Reader)?.card?.keycard?.keyUID { return uid }
            }
            return ""
        }
        let visit = try badgectl(daemon, "wallet", "pin", "--pin-stdin", input: "123456\n654321\n")
        #expect(await visit.exitCode == 0)
        keyUID = await watching.value
        #expect(keyUID.count == 64)
        let other = try badgectl(
            daemon,
            "wallet",
            "reset-card",
            "--yes",
            "--key-uid",
            String(repeating: "0", count: 64)
        )
        // Nobody could take the card out of the virtual reader.
        await other.ends(1, saying: "does not have the keys")
        await other.ends(1, saying: "cannot be used: the card was not reset\nhint: ")
        let program = try badgectl(daemon, "wallet", "reset-card", "--yes", "--key-uid", keyUID)
        await program.ends(0, printing: "The card is in its factory state: PIN, PUK and keys are destroyed.\n")
        let pin = try badgectl(daemon, "wallet", "pin", "--pin-stdin")
        await pin.ends(1, saying: "hint: set the card up: badgectl wallet setup\n")
    }

    @Test("setup with a terminal: the words are shown once, three are asked back, and words restores the same keys")
    func setup() async throws {
        let daemon = try await daemon()
        let program = try badgectl(daemon, "wallet", "setup", hasTerminal: true, environment: ["LC_ALL": "C.UTF-8"])
        for question in ["New PIN: ", "Repeat the new PIN: "] {
            #expect(await program.prints(question), "\(program.everything)")
            program.type("123456\n")
        }
        for _ in 0..<2 {
            #expect(await program.prints("Press Return when you have written it down: "), "\(program.everything)")
            program.type("\n")
        }
        #expect(await program.prints("Words "))
        #expect(await program.prints(": "))
        let words = Self.shownWords(program.dialogue)
        #expect(words.count == 12)
        let asked = program.dialogue.split(separator: "\n").last { $0.hasPrefix("Words ") } ?? ""
        let positions = asked.dropLast(2).split { $0 == " " || $0 == "," }.compactMap { Int($0) }
        #expect(positions.count == 3)
        program.type(positions.map { words[$0] ?? "" }.joined(separator: " ") + "\n")
        #expect(await program.exitCode == 0, "\(program.everything)")
        let output = program.text(.output)
        #expect(output.hasPrefix("address     0x"))
        // The words restore the same keys on another new card.
        let list = (1...12).map { words[$0] ?? "" }.joined(separator: " ")
        let other = try badgectl(daemon, "wallet", "words", "--own-puk", hasTerminal: true)
        let answers = [
            ("12 words: ", list), ("New PIN: ", "222222"), ("Repeat the new PIN: ", "222222"),
            ("New PUK: ", "111122223333"), ("Repeat the new PUK: ", "111122223333"),
        ]
        for (question, answer) in answers {
            #expect(await other.prints(question), "\(question) \(other.everything)")
            #expect(!other.echoes)
            other.type(answer + "\n")
        }
        await other.ends(0, printing: output)
    }

    /// Reads the table of words.
    private static func shownWords(_ dialogue: String) -> [Int: String] {
        var words: [Int: String] = [:]
        for line in dialogue.split(separator: "\n") {
            let parts = line.split(separator: " ")
            guard parts.count == 6, Int(parts[0]) != nil, Int(parts[2]) != nil, Int(parts[4]) != nil else { continue }
            for index in [0, 2, 4] { Int(parts[index]).map { words[$0] = String(parts[index + 1]) } }
        }
        return words
    }
}

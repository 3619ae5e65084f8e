// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

/// What a user has typed is wiped when badged has it. The program may run for weeks afterwards.
@Suite("badgectl: typed secrets in memory", .timeLimit(.minutes(5)), .enabled(if: ProcessMemory.isReadable))
struct TypedSecretTests {
    private typealias Played = PlayedWallet

    /// One place that reads a secret.
    struct Place: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var arguments: [String]
        /// The questions on the terminal and their answers; for a script the lines of standard input.
        var answers: [(question: String, text: String)]
        var isScript = false
        /// What must be gone: the last answer, without a form for people.
        var secret: String
        let play: @Sendable (ScriptedPeer.Connection) -> Void

        init(
            _ name: String,
            _ arguments: [String],
            _ answers: [(String, String)],
            secret: String? = nil,
            isScript: Bool = false,
            _ play: @escaping @Sendable (ScriptedPeer.Connection) -> Void
        ) {
            testDescription = name
            self.arguments = arguments
            self.answers = answers
            self.isScript = isScript
            self.secret = secret ?? answers.last?.1 ?? ""
            self.play = play
        }
    }

    private static let zone = (
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"
    )
    private static let words = "zoo zone zebra youth young yard wrong worry world work wood wonder"

    private static func changesPIN(_ questions: String...) -> @Sendable (ScriptedPeer.Connection) -> Void {
        { peer in
            peer.start()
            for question in questions { peer.ask(question) }
        }
    }

    private static func runsWallet(
        _ prompts: (message: String, command: String)...
    ) -> @Sendable (ScriptedPeer.Connection) -> Void {
        { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("ANY"))
            for (message, command) in prompts { peer.prompt(message, command) }
        }
    }

    private static func asksForZone(_ command: String) -> @Sendable (ScriptedPeer.Connection) -> Void {
        { peer in
            peer.command("RUN_READ_DOCUMENT")
            let passwords = command == "SET_CAN" ? #""mrz","can""# : #""mrz""#
            let reader = Say.reader(left: nil)
            peer.send(#"{"msg":"ENTER_MRZ","passwords":[\#(passwords)],"question":1,"reader":{\#(reader)}}"#)
            peer.command(command)
        }
    }

    private static let places = [
        Place("change-pin, the old PIN", ["change-pin"], [("PIN: ", "740931")], changesPIN("PIN")),
        Place(
            "change-pin, the new PIN",
            ["change-pin"],
            [("PIN: ", "123456"), ("New PIN: ", "740931"), ("Repeat the new PIN: ", "740931")],
            changesPIN("PIN", "NEW_PIN")
        ),
        // The text before the question has "CAN: ", too.
        Place("change-pin, the CAN", ["change-pin"], [("\nCAN: ", "740931")], changesPIN("CAN")),
        Place("change-pin, the PUK", ["change-pin"], [("PUK: ", "7409317409")], changesPIN("PUK")),
        Place("change-pin --pin-stdin", ["change-pin"], [("", "740931")], isScript: true, changesPIN("PIN")),
        Place(
            "change-pin --pin-stdin, the last of two lines",
            ["change-pin"],
            [("", "123456"), ("", "740931")],
            isScript: true,
            changesPIN("PIN", "NEW_PIN")
        ),
        Place("auth", ["auth", "https://a.example/token", "--yes"], [("PIN: ", "740931")]) { peer in
            peer.startAuth()
            peer.command("ACCEPT")
            peer.ask("PIN")
        },
        Place("agent", ["agent"], [("Agree? ", "y"), ("PIN: ", "740931")]) { peer in
            peer.servesBrowsers()
            peer.send(#"{"msg":"AUTH"}"#)
            peer.send(Say.rights())
            peer.answer("GET_CERTIFICATE", Say.certificate)
            peer.command("ACCEPT")
            peer.ask("PIN")
        },
        Place(
            "wallet setup, the new PIN",
            ["wallet", "setup"],
            [("New PIN: ", "740931"), ("Repeat the new PIN: ", "740931")],
            runsWallet((Played.enter("NEW_PIN", 1), "SET_NEW_PIN"))
        ),
        Place(
            "wallet setup, the PUK",
            ["wallet", "setup", "--own-puk"],
            [("New PUK: ", "740931740931"), ("Repeat the new PUK: ", "740931740931")],
            runsWallet((Played.enter("NEW_PUK", 1), "SET_NEW_PUK"))
        ),
        Place(
            "wallet setup, the duress PIN",
            ["wallet", "setup", "--duress-pin"],
            [("Duress PIN: ", "740931"), ("Repeat the duress PIN: ", "740931")],
            runsWallet((Played.enter("DURESS_PIN", 1), "SET_DURESS_PIN"))
        ),
        Place(
            "wallet setup, the passphrase",
            ["wallet", "setup", "--passphrase"],
            [("Passphrase: ", "kept in no memory"), ("Repeat the passphrase: ", "kept in no memory")],
            runsWallet((#"{"msg":"ENTER_PASSPHRASE","userId":"u","question":1}"#, "SET_PASSPHRASE"))
        ),
        Place(
            "wallet setup, three of the words",
            ["wallet", "setup"],
            [("Words 3, 7 and 11: ", "Zebra zone zoo")],
            secret: "ebra zone zoo",
            runsWallet((Played.enterWords(1, #""positions":[3,7,11]"#), "SET_WORDS"))
        ),
        Place(
            "wallet words",
            ["wallet", "words"],
            [("12 words: ", words)],
            runsWallet((Played.enterWords(1, #""count":12"#), "SET_WORDS"))
        ),
        Place(
            "wallet pair",
            ["wallet", "pair"],
            [("Pairing password: ", "a password of its own")],
            runsWallet((Played.enter("PAIRING_PASSWORD", 1), "SET_PAIRING_PASSWORD"))
        ),
        Place("document, the CAN", ["document"], [("zone: ", "740931")], asksForZone("SET_CAN")),
        Place(
            "document, the first line of the zone",
            ["document"],
            [("zone: ", zone.0), ("Next line: ", zone.1)],
            secret: zone.0,
            asksForZone("SET_MRZ")
        ),
        Place(
            "document, the second line of the zone",
            ["document"],
            [("zone: ", zone.0), ("Next line: ", zone.1)],
            asksForZone("SET_MRZ")
        ),
        Place("keys new --otp", ["keys", "new", "--otp", "totp"], [("", "GEZDGNBVGY3TQOJQ")], isScript: true) { peer in
            peer.answer("SETUP_ENDPOINT", #"{"msg":"ENDPOINT_SETUP","ok":true,"id":"x"}"#)
            peer.command("NEW_KEY")
        },
        Place(
            "irk add",
            ["irk", "add", "front"],
            [("", "ec0234a357c8ad05341010a60a397d9b")],
            isScript: true
        ) { peer in
            peer.command("ADD_READER_KEY")
        },
        Place(
            "mpin login",
            ["mpin", "login", "alice"],
            [("PIN: ", "7409")],
            secret: "7409\"",
            { peer in
                let user =
                    #","users":[{"userId":"alice","state":"REGISTERED","backend":"http://b","rpsPrefix":"rps","#
                    + #""pinLength":4}]"#
                var isMPin = false
                while let command = peer.command(), let name = command["cmd"]?.string {
                    guard name != "MPIN_FINISH_AUTHENTICATION" else { break }
                    if command["cmd"]?.string?.hasPrefix("MPIN_START") == true || name == "MPIN_SET_BACKEND" {
                        peer.send(#"{"msg":"MPIN_STARTED","operation":"\#(name)"}"#)
                    }
                    if name == "MPIN_INIT" { isMPin = command["flavour"]?.string != "MFA" }
                    let ok = #""status":0,"statusCodeAsString":"OK","errorMessage":"""#
                    let users = isMPin ? user : #","users":[]"#
                    peer.send(#"{"msg":"MPIN_RESULT","operation":"\#(name)",\#(ok)\#(users)}"#, answering: command)
                }
                peer.send(#"{"msg":"MPIN_STARTED","operation":"MPIN_FINISH_AUTHENTICATION"}"#)
                peer.send(
                    #"{"msg":"ENTER_PIN","userId":"alice","backend":"http://b","factor":0,"pinLength":4,"question":3}"#
                )
                peer.command("SET_PIN")
            }
        ),
    ]

    @Test("When badged has a secret, the memory of badgectl does not", arguments: places)
    func isWiped(place: Place) async throws {
        let (isSent, sent) = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer { peer in
            place.play(peer)
            sent.finish()
        }
        let options = ["--socket", peer.path] + place.arguments
        let program = try RunningProgram(
            "badgectl",
            options + (place.isScript && !["keys", "irk"].contains(place.arguments[0]) ? ["--pin-stdin"] : []),
            input: place.isScript ? nil : "",
            hasTerminal: !place.isScript,
            environment: ["LC_ALL": "C.UTF-8"]
        )
        for (question, text) in place.answers {
            if place.isScript {
                program.type(text + "\n")
            } else {
                #expect(await program.prints(question, typing: text + "\n"), "\(program.everything)")
            }
        }
        for await _ in isSent {}
        #expect(try await program.forgets(place.secret), "\(program.everything)")
        // The search itself works.
        #expect(try ProcessMemory.occurrences(of: Array("badged-client-ping".utf8), in: program.id) > 0)
        program.signal(9)
    }
}

extension RunningProgram {
    /// Whether a secret leaves the memory of the program. The thread that has sent it may still be about to wipe it.
    fileprivate func forgets(_ secret: String) async throws -> Bool {
        while try ProcessMemory.occurrences(of: Array(secret.utf8), in: id) > 0 {
            if Task.isCancelled { return false }
            await Task.yield()
        }
        return true
    }
}

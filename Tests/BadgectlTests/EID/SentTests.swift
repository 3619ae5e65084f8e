// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

/// What badgectl auth says about the data that the service has, for each end.
@Suite("badgectl: auth, what was sent", .timeLimit(.minutes(5))) struct SentTests {
    private static let granted = "postal address, family name, age verification, given names"

    /// The last AUTH of a failure, with these further members.
    private static func failed(_ members: String, reason: String = "User_Cancelled") -> String {
        #"{"msg":"AUTH","result":{"major":"x#error","message":"Over.","reason":"\#(reason)"}\#(members)}"#
    }

    private static func status(_ progress: Int) -> String {
        #"{"msg":"STATUS","progress":\#(progress),"state":null,"workflow":"AUTH"}"#
    }

    private static let reading = #","rights":["FamilyName","DateOfBirth"],"sent":"read""#
    private static let sending = #","rights":["FamilyName"],"sent":"possible""#
    private static let none = #","sent":"none""#

    private static func start(_ peer: ScriptedPeer) throws -> RunningProgram {
        try badgectl(peer, "auth", "https://a.example/token", "--yes", "--pin-stdin", input: "123456\n")
    }

    @Test(
        "Ctrl-C says what badged reports, or what follows from the progress",
        arguments: [
            (20, none, "the service got none of the data that it asked for"),
            (60, none, "the service got none of the data that it asked for"),
            (60, sending, "the service may have received data, at most: family name"),
            (60, reading, "the service has received data, at most: family name, date of birth"),
            (80, #","rights":[],"sent":"read""#, "the service has received answers of the card"),
            (20, "", "the service got none of the data that it asked for"),
            (40, "", "the service may have received data, at most: \(granted)"),
            (60, #","sent":"unheard-of""#, "the service may have received data, at most: \(granted)"),
        ]
    )
    func interrupted(progress: Int, members: String, words: String) async throws {
        let peer = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { peer in
            peer.send(Self.status(progress))
            peer.command("CANCEL")
            peer.send(Self.failed(members))
        }
        let program = try Self.start(peer)
        #expect(await program.prints("\(progress) %", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.error).hasSuffix("badgectl: error: interrupted: \(words)\n"), "\(program.everything)")
    }

    @Test(
        "a second Ctrl-C and the end of the connection say what follows from the progress",
        arguments: [
            (20, "the service got none of the data that it asked for"),
            (40, "the service may have received data, at most: \(granted)"),
            (60, "the service may have received data, at most: \(granted)"),
        ]
    )
    func lost(progress: Int, words: String) async throws {
        let silent = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { peer in
            peer.send(Self.status(progress))
            peer.command("CANCEL")
        }
        let program = try Self.start(silent)
        #expect(await program.prints("\(progress) %", on: .error))
        program.signal(SIGINT)
        #expect(await program.prints("Cancelling.", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.error).hasSuffix("badgectl: error: interrupted: \(words)\n"), "\(program.everything)")

        let closing = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { peer in
            peer.send(Self.status(progress))
            peer.hangUp()
        }
        let other = try Self.start(closing)
        await other.ends(3, saying: ": \(words)\nhint: ")
    }

    @Test("before the consent nothing was asked or sent")
    func early() async throws {
        let closing = try ScriptedPeer { peer in
            peer.beginAuth()
            peer.hangUp()
        }
        let program = try Self.start(closing)
        await program.ends(3, saying: ": the service got no data\nhint: ")
    }

    @Test(
        "a failure says what the service has",
        arguments: [
            ("Card_Removed", none, "over (Card_Removed): the service got none of the data that it asked for"),
            ("Card_Removed", sending, "over (Card_Removed): the service may have received data, at most: family name"),
            (
                "Check_Refresh_Address_Client_Error", reading,
                "over (Check_Refresh_Address_Client_Error): the service has received data, at most: family name, date of birth"
            ),
            (
                "Start_Paos_Response_Error", reading,
                "over (Start_Paos_Response_Error): the service has received data, at most: family name, date of birth"
            ),
        ]
    )
    func failure(reason: String, members: String, words: String) async throws {
        let peer = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { peer in
            peer.send(Self.failed(members, reason: reason))
        }
        let program = try Self.start(peer)
        await program.ends(1, saying: "badgectl: error: \(words)\nhint: ")
    }

    @Test("a service that has read nothing has not received the data")
    func successWithoutData() async throws {
        let peer = try ScriptedPeer.acceptedAuthentication { peer in
            peer.send(#"{"msg":"AUTH","result":{"major":"x#ok"},"sent":"none","url":"https://a.example/"}"#)
        }
        let program = try Self.start(peer)
        #expect(await program.exitCode == 0)
        #expect(program.text(.error).hasSuffix("The service has read no data from the card.\n"))
    }
}

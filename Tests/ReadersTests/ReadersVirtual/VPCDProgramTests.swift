// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import Glibc
import ISO7816
import TestSupport
import Testing
import Text

@Suite("badged-virtual-card", .timeLimit(.minutes(5)))
struct VPCDProgramTests {
    private static let card = "3B8A80018031F873F741E082900075"
    private static let access = "00B09C0000"

    /// A card file that is removed at the end of the test.
    private struct CardFile: ~Copyable {
        let path: String

        init(_ text: String) throws {
            var template = Array("/tmp/badged-card.XXXXXX".utf8CString)
            let descriptor = mkstemp(&template)
            guard descriptor >= 0 else { throw Unexpected("no file") }
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            _ = write(descriptor, text, text.utf8.count)
            close(descriptor)
        }

        deinit { unlink(path) }
    }

    @Test("serves vpcd: answer to reset, commands, resets, counters and a clean end")
    func dialogue() throws {
        let program = try VPCDProgram()
        try program.accept()
        #expect(try program.line() == "inserted")
        program.tell("01")
        #expect(try program.ask("04") == Self.card)
        #expect(try program.ask("00A4020C02011C") == "9000")
        #expect(try program.ask("00B0000001") == "319000")
        // A reset deselects the current file and has no answer.
        program.tell("02")
        #expect(try program.ask("00B0000001") == "6A82")
        program.tell("00")
        program.signal(SIGUSR2)
        let counters = #"{"apdus":3,"retryCounter":3,"pukCounter":10,"transport":false,"busyMicroseconds":"#
        #expect(try program.line()?.hasPrefix(counters) == true)
        program.signal(SIGTERM)
        #expect(try program.line()?.hasPrefix(counters) == true)
        #expect(try program.line() == nil)
        #expect(program.exitStatus() == 0)
    }

    @Test("answers commands in order when they arrive together")
    func framing() throws {
        let program = try VPCDProgram()
        try program.accept()
        program.tell("0084000008")
        let first = try program.ask("00C00000")
        #expect(first.hasSuffix("9000"))
        #expect(first.count == 20)
        #expect(try program.ask("04") == "6D00")
    }

    @Test("takes the card out and puts it back in at SIGUSR1")
    func toggle() throws {
        let program = try VPCDProgram()
        try program.accept()
        #expect(try program.line() == "inserted")
        #expect(try program.ask(Self.access).hasSuffix("9000"))
        program.signal(SIGUSR1)
        #expect(try program.line() == "withdrawn")
        #expect(try program.hasLeft())
        program.signal(SIGUSR1)
        #expect(try program.line() == "inserted")
        try program.accept()
        #expect(try program.ask(Self.access).hasSuffix("9000"))
    }

    @Test("connects again when the connection to vpcd is closed")
    func reconnect() throws {
        let program = try VPCDProgram()
        try program.accept()
        #expect(try program.line() == "inserted")
        program.drop()
        #expect(try program.line() == "withdrawn")
        #expect(try program.line() == "inserted")
        try program.accept()
        #expect(try program.ask("04") == Self.card)
    }

    @Test("a removal fault withdraws the card until SIGUSR1, and a mute card stays inserted")
    func faults() throws {
        let file = try CardFile(
            #"{"card": {"retryCounter": 2, "faults": [{"afterApdu": 0, "do": "mute"}, {"afterApdu": 1, "do": "remove"}]}}"#
        )
        let program = try VPCDProgram("--card", file.path)
        try program.accept()
        #expect(try program.line() == "inserted")
        program.tell(Self.access)
        program.signal(SIGUSR2)
        #expect(try program.line()?.contains(#","retryCounter":2,"pukCounter":10,"#) == true)
        program.tell(Self.access)
        #expect(try program.line() == "withdrawn")
        #expect(try program.hasLeft())
        program.signal(SIGUSR1)
        #expect(try program.line() == "inserted")
        try program.accept()
        #expect(try program.ask("0022C1A412800A04007F0007020204020283010384010D") == "63C2")
    }

    /// Sends commands to the card through `program`. Only one task uses a channel.
    private final class Channel: CardChannel, @unchecked Sendable {
        private let program: VPCDProgram

        init(_ program: VPCDProgram) { self.program = program }

        func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
            guard let digits = try? program.ask(hex(command.bytes)), let answer = ResponseAPDU(bytes: hex(digits))
            else { throw .mute }
            return answer
        }
    }

    @Test(
        "the trust point is the --cvca certificate, or else the test authority",
        arguments: [(nil, "DETESTeIDBG00001"), ("cvca-next.cvcert", "DETESTeIDBG00002")] as [(String?, String)]
    )
    func trustPoint(file: String?, name: String) async throws {
        let program = if let file { try VPCDProgram("--cvca", TestPKI.path(file)) } else { try VPCDProgram() }
        try program.accept()
        let channel = Channel(program)
        guard case .eid(let profile) = try await EIDCard.identify(on: channel) else { throw Unexpected("no eID card") }
        let card = EIDCard(channel: channel, profile: profile)
        // PACE with a CHAT returns the certification authority references. TR-03110-2 3.2.
        let chat = CHAT(.terminal, AccessRights([.readFamilyName])).object.encoded
        guard
            case .established(let result) = try await card.establishPACE(
                .pin,
                password: Secret("123456".utf8),
                chat: chat
            )
        else { throw Unexpected("PACE failed") }
        #expect(result.certificationAuthorities.current == Array(name.utf8))
        #expect(result.certificationAuthorities.previous == nil)
    }

    @Test("ends at SIGTERM while a slow command runs")
    func slowCard() throws {
        let file = try CardFile(#"{"card": {"latencyMs": 60000}}"#)
        let program = try VPCDProgram("--card", file.path)
        try program.accept()
        #expect(try program.line() == "inserted")
        program.tell(Self.access)
        program.signal(SIGTERM)
        #expect(try program.line()?.hasPrefix(#"{"apdus":"#) == true)
        #expect(program.exitStatus() == 0)
    }

    @Test("commands that nobody has waited for stay in the kernel while the card is busy, and are all answered")
    func flood() throws {
        let file = try CardFile(#"{"card": {"latencyMs": 2000}}"#)
        let program = try VPCDProgram("--card", file.path)
        try program.accept()
        #expect(try program.line() == "inserted")
        // The buffers of a connection have ten megabytes at most; tcp_rmem and tcp_wmem in tcp(7).
        #expect(try program.flood(Self.access, upTo: 1 << 26) < 1 << 26)
        #expect(try program.answer().hasSuffix("9000"))
        #expect(try program.answer().hasSuffix("9000"))
    }

    @Test(
        "a file that is none is refused with words, and nothing waits for it",
        arguments: ["--card", "--replay", "--cvca"],
        ["fifo", "folder", "/dev/zero", "/dev/tty", "missing"]
    )
    func noFile(option: String, name: String) async throws {
        let folder = try TemporaryFolder()
        mkfifo(folder.path + "/fifo", 0o600)
        mkdir(folder.path + "/folder", 0o700)
        let path = name.hasPrefix("/") ? name : "\(folder.path)/\(name)"
        let program = try RunningProgram("badged-virtual-card", ["--vpcd", "localhost:1", option, path])
        #expect(await program.exitCode == 1)
        let error = program.text(.error)
        #expect(error.contains(path) && error.contains("hint: "), "\(error)")
        #expect(error.contains(name == "missing" ? "there is no file" : "it is not a plain file"), "\(error)")
    }

    private static let lines: [(String, Int32)] = [
        ("", 2), ("--vpcd nowhere", 2), ("--vpcd host:0", 2), ("--vpcd :1", 2), ("--vpcd localhost:1 --card", 2),
        ("--magic", 2), ("--vpcd localhost:1 --card /nonexistent", 1), ("--vpcd localhost:1 --card /dev/null", 1),
        ("--vpcd localhost:1 --cvca", 2), ("--vpcd localhost:1 --cvca /nonexistent", 1),
        ("--vpcd localhost:1 --cvca /dev/null", 1), ("--help", 0), ("--version", 0),
    ]

    @Test("the exit status tells whether the arguments are valid", arguments: lines)
    func commandLine(line: String, status: Int32) throws {
        let sink = open("/dev/null", O_WRONLY)
        defer { close(sink) }
        let process = try VPCDProgram.spawn(line.split(separator: " ").map(String.init), output: sink)
        #expect(VPCDProgram.status(of: process) == status)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Foundation
import TestSupport
import Testing
import Text

@testable import badgectl

/// badgectl with badged and the issuer of the tests, each a process.
@Suite("badgectl: keys with badged and an issuer", .timeLimit(.minutes(5))) struct KeysDaemonTests {
    private let folder: TemporaryFolder
    private let issuer: RunningProgram
    private let daemon: RunningDaemon

    init() async throws {
        folder = try TemporaryFolder()
        issuer = try RunningProgram("badged-test-program", ["issuer"], input: nil)
        #expect(await issuer.prints("\n", on: .output))
        let words = issuer.text(.output).split(whereSeparator: \.isWhitespace).map(String.init)
        let configuration = folder.path + "/badged.conf"
        let text = "[keys]\nissuer = \(words[1])\nissuer_keys = \(words[2])\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        daemon = try await RunningDaemon(
            ["--no-ble", "--config", configuration],
            in: folder,
            environment: ["STATE_DIRECTORY": folder.path + "/state"]
        )
    }

    /// Runs badgectl to its end; it must end with `code`.
    private func badgectl(_ arguments: String..., input: String? = "", code: Int32 = 0) async throws -> RunningProgram {
        let program = try RunningProgram("badgectl", ["--socket", daemon.path] + arguments, input: input)
        #expect(await program.exitCode == code, "\(program.everything)")
        return program
    }

    /// Sends a command to the issuer and returns its answer.
    private func tell(_ command: String) async throws -> String {
        issuer.type(command + "\n")
        #expect(await issuer.prints("\n", on: .output))
        return try #require(issuer.text(.output).split(separator: "\n").last.map(String.init))
    }

    @Test("keys are made, listed, exported, deactivated and deleted")
    func keys() async throws {
        let none = try await badgectl("keys", "list", code: 1)
        #expect(none.text(.error).contains("hint: make one with badgectl keys new, or"))
        #expect(try await badgectl("endpoint").text(.output) == "not set up\n")
        let digits = try await badgectl("keys", "new", "--digits", "8", code: 2)
        #expect(digits.text(.error).contains("only codes have digits"))
        let id = try await badgectl("keys", "new", "--label", "front door").text(.output)
            .trimmingCharacters(in: .newlines)
        let list = try await badgectl("keys", "list").text(.output)
        #expect(list.hasPrefix("\(id)  pkoc  active  ") && list.contains("front door"))
        #expect(try await badgectl("keys").text(.output) == list)
        #expect(try await badgectl("endpoint").text(.output).contains("keys: 1, bytes of data: 0\n"))
        #expect(
            try await badgectl("keys", "export", "front door").text(.output).hasPrefix("-----BEGIN PUBLIC KEY-----")
        )
        // Not on a terminal: the text of the code.
        let code = try await badgectl("keys", "export", "front door", "--format", "qr").text(.output)
        #expect(code.hasSuffix("\n") && code.count { $0 == "\n" } == 1)
        let drawing = try #require(QRDrawing.lines(code, isPlain: true))
        #expect(drawing.count > 40 && drawing.allSatisfy { $0.count == 2 * drawing.count })
        // The pattern in a corner: a dark square of seven modules, after the border of four.
        #expect(drawing[4].dropFirst(8).hasPrefix(String(repeating: " ", count: 14) + "##"))
        #expect(drawing[5].dropFirst(8).hasPrefix("  ##########  ##"))
        #expect(QRDrawing.lines(code, isPlain: false)?.count == (drawing.count + 1) / 2)
        #expect(QRDrawing.lines(String(repeating: "x", count: 3000)) == nil)
        let numbers = try await badgectl("keys", "export", "front door", "--format", "numbers").text(.output)
        #expect(numbers.split(separator: "\n").count == 5)
        _ = try await badgectl("keys", "deactivate", String(id.prefix(8)))
        #expect(try await badgectl("keys", "list").text(.output).contains("  inactive  "))
        let kept = try await badgectl("keys", "delete", id, code: 2)
        #expect(kept.text(.error).contains("the key was not deleted\nhint: run badgectl in a terminal, or use --yes"))
        for (answer, code) in [("n", 1), ("maybe\ny", 0)] as [(String, Int32)] {
            let program = try RunningProgram(
                "badgectl",
                ["--socket", daemon.path, "keys", "delete", "front door"],
                hasTerminal: true
            )
            #expect(await program.prints("This deletes the pkoc key front door"))
            for line in answer.split(separator: "\n") {
                #expect(await program.prints("Delete? [y, n] ", typing: "\(line)\n"))
            }
            #expect(await program.exitCode == code, "\(program.everything)")
        }
        let gone = try await badgectl("keys", "export", id, code: 1)
        #expect(gone.text(.error).contains("there is no key \(id)"))
        _ = try await badgectl("endpoint", "remove", code: 2)
        _ = try await badgectl("endpoint", "remove", "--yes")
        #expect(try await badgectl("endpoint", "show").text(.output) == "not set up\n")
    }

    @Test("codes come from a secret on standard input")
    func codes() async throws {
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
        let made = try await badgectl("keys", "new", "--otp", "hotp", "--label", "mail", input: secret + "\n")
        #expect(try await badgectl("otp", "mail").text(.output) == "755224\n")
        #expect(try await badgectl("otp", "mail").text(.output) == "287082\n")
        #expect(!made.everything.contains(secret))
        let command = "\(RunningProgram.programs)/badgectl --socket \(daemon.path) keys new --otp hotp --label phone"
        let typed = try RunningProgram("/bin/sh", ["-c", "\(command) </dev/tty"], hasTerminal: true)
        #expect(await typed.prints("Secret in base 32: "))
        typed.type(secret + "\n")
        #expect(await typed.exitCode == 0, "\(typed.everything)")
        #expect(!typed.everything.contains(secret))
        #expect(try await badgectl("otp", "phone").text(.output) == "755224\n")
        _ = try await badgectl("keys", "new", "--otp", "totp", input: "1\n", code: 1)
    }

    @Test("an invitation gives a key, an update revokes it")
    func issuerKeys() async throws {
        _ = try await tell(#"invite AB12-CD34-EF56-GH78 {"label":"main building"}"#)
        _ = try await tell("fail busy")
        let busy = try await badgectl("endpoint", "setup", "AB12-CD34-EF56-GH78", code: 1)
        #expect(busy.text(.error).contains("hint: try again later; an invitation can be used again"))
        _ = try await badgectl("endpoint", "setup", "AB12-CD34-EF56-GH78")
        #expect(try await badgectl("keys", "list").text(.output).contains("main building  acme"))
        let connection = try await DaemonConnection.connect(to: daemon.path, keepsEvents: false)
        let keys = try await connection.doorKeys().get()
        connection.close()
        _ = try await tell("revoke \(try #require(keys.first?.thumbprint))")
        #expect(try await badgectl("endpoint", "update").text(.output) == "0 issued, 0 updated, 1 revoked\n")
        #expect(try await badgectl("keys", "list").text(.output).contains("  revoked  "))
    }

    @Test("a pass is prepared and saved")
    func pass() async throws {
        let blob = try await badgectl("wallet", "prepare", "--label", "office").text(.output)
            .trimmingCharacters(in: .newlines)
        let payload = try JSON(try await tell("check \(blob)").utf8)
        let number = try #require(payload["numbers"]?.array?.first?["hex"]?.string)
        #expect(try await badgectl("keys", "list").text(.output).contains("  not saved  \(number)"))
        let connection = try await DaemonConnection.connect(to: daemon.path, keepsEvents: false)
        let key = try #require(try await connection.doorKeys().get().first)
        connection.close()
        let file = folder.path + "/pass.jws"
        let thumbprint = try #require(key.thumbprint)
        try await tell("enrol \(thumbprint) {}").write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await badgectl("wallet", "save", file).text(.output) == key.id + "\n")
        #expect(try await badgectl("keys", "list").text(.output).contains("  active  "))
        // A thumbprint may begin with a dash.
        for saved in [thumbprint, "-UjjAtuIoRejJzQVwrtIBnAZdBpRPlc78uXwAphVDDs"] {
            _ = try await badgectl("wallet", "save", saved, code: 1)
        }
    }
}

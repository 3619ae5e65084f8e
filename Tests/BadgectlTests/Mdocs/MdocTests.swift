// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

/// badgectl mdoc, with badged and its virtual phone.
@Suite("badgectl and phones", .timeLimit(.minutes(5))) struct MdocTests {
    private let daemon: RunningDaemon

    init() async throws { daemon = try await RunningDaemon(["--no-ble"]) }

    private func badgectl(_ arguments: String..., input: String? = "") throws -> RunningProgram {
        try RunningProgram("badgectl", ["--socket", daemon.path, "mdoc"] + arguments, input: input)
    }

    @Test("a newcomer asks for an age: yes and no have their exit status", arguments: [(18, 0), (70, 8)])
    func age(age: Int, status: Int32) async throws {
        let program = try badgectl("--over", "\(age)")
        #expect(await program.exitCode == status, "\(program.everything)")
        let text = program.text(.output)
        #expect(text.contains("Verdict: genuine"))
        #expect(text.hasSuffix("Over \(age): \(status == 0 ? "yes" : "no")\n"))
        #expect(text.contains("signature  passed"))
        #expect(program.text(.error).contains("waiting until its holder agrees"))
    }

    @Test("elements of a document are written, and the picture goes to a file")
    func items() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/face.jpg"
        let program = try badgectl("--doc", "pid", "--item", "family_name,portrait,shoe_size", "--portrait", path)
        #expect(await program.exitCode == 0, "\(program.everything)")
        let text = program.text(.output)
        #expect(text.contains("Eriksson") && text.contains("a picture (jpeg)") && text.contains("(not given)"))
        #expect(try Data(contentsOf: URL(filePath: path)).starts(with: [0xFF, 0xD8, 0xFF]))
    }

    @Test("a phone without the document, and a text that is no QR code")
    func nothing() async throws {
        let declined = try badgectl("--doc", "org.example.club", "--item", "org.example/name")
        await declined.ends(9, saying: "its holder has declined, or has no such document")
        let wrong = try badgectl("--over", "18", "--qr", "https://example.org")
        await wrong.ends(1, saying: "mdoc:")
    }

    @Test(
        "wrong options are usage errors",
        arguments: [
            [], ["--over", "0"], ["--over", "x"], ["--over", "18", "--item", "a"], ["--doc", "other", "--item", "a"],
        ]
    )
    func usage(options: [String]) async throws {
        let program = try RunningProgram("badgectl", ["--socket", daemon.path, "mdoc"] + options, input: "")
        #expect(await program.exitCode == 2, "\(program.everything)")
    }
}

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

    @Test("a picture that the phone has not given leaves the data and the verdict")
    func noPicture() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/face"
        let program = try badgectl("--doc", "age", "--item", "age_over_18,portrait", "--portrait", path)
        await program.ends(1, saying: "the phone has shown no picture")
        #expect(program.text(.output).contains("Verdict: genuine"), "\(program.everything)")
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

    /// An authority whose certificate names `https://utopia.example/crl`, beside a name in a directory.
    private static let authority = """
        MIIB7TCCAZSgAwIBAgIUKol44GhVECEz9dftZoNn2heFjIQwCgYIKoZIzj0EAwIwHTELMAkGA1UEBhMCVVQxDjAMBgNVBAMMBUxp\
        c3RzMB4XDTI2MTAyOTE3NDc0OVoXDTM1MDIxNDE3NDc0OVowHTELMAkGA1UEBhMCVVQxDjAMBgNVBAMMBUxpc3RzMFkwEwYHKoZI\
        zj0CAQYIKoZIzj0DAQcDQgAE3ZJyU4kkTEHorEGxhwQCDAtCgtXUCa7XIzZ30FhW+pGrJ97XEPEwpF9a6JPOyXRsiW3B5evGow5F\
        YlfjPkU2P6OBsTCBrjAdBgNVHQ4EFgQUWjyw/ozMmp8Os2AjHtozq1+gvqEwHwYDVR0jBBgwFoAUWjyw/ozMmp8Os2AjHtozq1+g\
        vqEwEgYDVR0TAQH/BAgwBgEB/wIBADAOBgNVHQ8BAf8EBAMCAQYwSAYDVR0fBEEwPzA9oDugOYYaaHR0cHM6Ly91dG9waWEuZXhh\
        bXBsZS9jcmykGzAZMQswCQYDVQQGEwJVVDEKMAgGA1UEAwwBeDAKBggqhkjOPQQDAgNHADBEAiBRq8lt29OQP1Jekyj/s4xHia8y\
        hySvXH0FaVXgWEstUwIgXKh0nGobXpLUVWSO/OY1f8+AAzZjhxe/fmKT2z54zTI=
        """

    @Test("the authorities are listed with the address of their revocation list, one that has none without")
    func authorities() async throws {
        let folder = try TemporaryFolder()
        let file = try vectorFile("mdoc/verdicts.json")
        let anchor = try #require(file["cases"]?.array?.first?["anchors"]?.array?.first?["certificate"]?.int)
        let without = try #require(file["blobs"]?.array?[anchor].string)
        for (number, text) in [Self.authority, without].enumerated() {
            try folder.write("\(number).cer", try #require(Base64.standard.decode(text)))
        }
        let list = try badgectl("anchors", "list", "--folder", folder.path)
        #expect(await list.exitCode == 0, "\(list.everything)")
        let lines = list.text(.output).split(separator: "\n")
        #expect(lines.count == 2 && lines.count { $0.hasSuffix("all documents  https://utopia.example/crl") } == 1)
        #expect(lines.count { $0.hasSuffix("all documents") } == 1)
        let json = try badgectl("anchors", "list", "--folder", folder.path, "--json")
        #expect(await json.exitCode == 0, "\(json.everything)")
        #expect(json.text(.output).contains(#""revocationLists":["https://utopia.example/crl"]"#))
    }
}

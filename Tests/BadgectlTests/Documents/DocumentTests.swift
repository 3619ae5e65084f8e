// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

/// badgectl document and badgectl documents, with badged and its virtual document.
@Suite("badgectl and documents", .timeLimit(.minutes(5))) struct DocumentTests {
    private static let authority = testsFolder.deletingLastPathComponent().appending(path: "docs/examples/utopia.cer")
        .path
    private static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4
        """

    private let folder: TemporaryFolder
    private let daemon: RunningDaemon

    init() async throws {
        folder = try TemporaryFolder()
        try folder.write("badged.conf", Array("[documents]\nanchors = \(folder.path)/csca\n".utf8))
        daemon = try await RunningDaemon(["--no-ble", "--config", folder.path + "/badged.conf"])
    }

    private func badgectl(_ arguments: String..., input: String? = "") throws -> RunningProgram {
        try RunningProgram("badgectl", ["--socket", daemon.path] + arguments, input: input)
    }

    private func trust() async throws {
        let refused = try badgectl("documents", "anchors", "import", Self.authority)
        #expect(await refused.exitCode == 2)
        let words = refused.text(.error).split(whereSeparator: \.isWhitespace).map(String.init)
        let fingerprint = try #require(words.first { $0.utf8.count == 64 && Hex.decode($0) != nil })
        let program = try badgectl("documents", "anchors", "import", Self.authority, "--signer", fingerprint)
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(program.everything.contains("1 file taken; 1 authority of 1 country is trusted"))
    }

    @Test("the files of a document are written as the chip has them, and a proof that was not done has words")
    func files() async throws {
        let path = folder.path + "/files"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let program = try badgectl("document", "--pin-stdin", "--files", path, input: "654321\n")
        #expect(await program.exitCode == 7, "\(program.everything)")
        let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
        let expected = ["DG1", "DG14", "DG2", "EF.COM", "EF.CardAccess", "EF.CardSecurity", "EF.SOD"]
        #expect(names == expected.map { $0 + ".bin" }.sorted())
        let object = try Data(contentsOf: URL(filePath: path + "/EF.SOD.bin"))
        #expect(object.first == 0x77)
        #expect(program.text(.output).contains("PACE-CAM not done"))
        #expect(!program.everything.contains("notDone"))
    }

    @Test("without an authority nothing is proven; with it the document is genuine, and the picture is written")
    func genuine() async throws {
        let before = try badgectl("document", "--pin-stdin", input: "654321\n")
        await before.ends(7, showing: "Verdict: unverified")
        #expect(before.text(.output).contains("PACE-CAM not done"))
        #expect(before.text(.error).contains("hint: import the authorities of the document's country"))
        try await trust()
        let path = folder.path + "/portrait.jpg"
        let wrong = try badgectl("document", "--pin-stdin", input: "111111\n654321\n")
        await wrong.ends(1, saying: "The document refuses this CAN")
        let after = try badgectl("document", "--pin-stdin", "--portrait", path, input: "654321\n")
        #expect(await after.exitCode == 0, "\(after.everything)")
        let text = after.text(.output)
        #expect(text.contains("ERIKSSON"))
        #expect(text.contains("1974-08-12"))
        #expect(text.contains("PACE-CAM passed"))
        #expect(text.hasSuffix("Verdict: genuine\n"))
        let picture = try Data(contentsOf: URL(filePath: path))
        #expect(picture.starts(with: [0xFF, 0xD8, 0xFF]))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("the machine readable zone is typed line by line, and the terminal does not show it")
    func zone() async throws {
        let program = try RunningProgram(
            "badgectl",
            ["--socket", daemon.path, "document", "--groups", "1", "--bac", "always"],
            hasTerminal: true
        )
        #expect(await program.prints("zone: "))
        program.type(Self.zone.split(separator: "\n")[0] + "\n")
        #expect(await program.prints("Next line: "))
        program.type(Self.zone.split(separator: "\n")[1] + "\n")
        #expect(await program.exitCode == 7, "\(program.everything)")
        #expect(program.everything.contains("BAC"))
        #expect(!program.everything.contains("<<<<<<<<"))
    }

    @Test("no value, a wrong option and no document each have their exit status")
    func failures() async throws {
        #expect(await (try badgectl("document", "--groups", "17")).exitCode == 2)
        #expect(await (try badgectl("document", "--pin-stdin", input: "")).exitCode == 1)
        #expect(await (try badgectl("document", "--bac", "sometimes")).exitCode == 2)
        #expect(await (try badgectl("documents", "anchors", "list")).exitCode == 1)
        #expect(await (try badgectl("documents", "anchors", "import")).exitCode == 2)
        let refused = try badgectl("documents", "anchors", "import", Self.authority)
        await refused.ends(2, saying: "--signer")
    }

    @Test("an import that takes nothing says why")
    func nothingImported() async throws {
        try folder.write("empty.ldif", Array("dn: cn=x\ncn: y\n".utf8))
        let empty = try badgectl("documents", "anchors", "import", folder.path + "/empty.ldif")
        await empty.ends(1, saying: "nothing was imported: \(folder.path)/empty.ldif: the directory has no certificate")
        let other = try badgectl(
            "documents",
            "anchors",
            "import",
            Self.authority,
            "--signer",
            String(repeating: "0", count: 64)
        )
        await other.ends(1, saying: "is not trusted")
    }

    @Test("the authorities are listed by country, and removed")
    func authorities() async throws {
        try await trust()
        let list = try badgectl("documents", "anchors", "list")
        #expect(await list.exitCode == 0)
        #expect(list.text(.output).hasPrefix("UT  1, valid until 2036-01-01\n1 authority of 1 country, 0 links"))
        let removed = try badgectl("documents", "anchors", "remove", "ut", "--json")
        await removed.ends(0, printing: "")
        #expect(await (try badgectl("documents", "anchors", "list")).exitCode == 1)
    }
}

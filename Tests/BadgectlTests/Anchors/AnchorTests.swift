// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import Glibc
import TestSupport
import Testing
import Text

@Suite("badgectl: anchors", .timeLimit(.minutes(5))) struct AnchorTests {
    private static let (first, second) = ("DETESTeIDBG00001", "DETESTeIDBG00002")

    private let folder: TemporaryFolder
    private var anchors: String { folder.path + "/anchors" }

    init() throws { folder = try TemporaryFolder() }

    private static func badgectl(_ arguments: String..., input: String? = "") throws -> RunningProgram {
        try RunningProgram("badgectl", arguments, input: input)
    }

    /// Starts an import with a trusted fingerprint.
    private static func importing(
        into folder: String,
        _ fingerprint: String,
        _ sources: String...,
        input: String? = ""
    ) throws -> RunningProgram {
        let arguments = ["anchors", "import", "--folder", folder, "--fingerprint", fingerprint]
        return try RunningProgram("badgectl", arguments + sources, input: input)
    }

    /// The SHA-256 of a root, that of Tests/PKI by default, as badgectl shows it.
    private func fingerprint(_ path: String? = nil) async throws -> String {
        let root = path ?? TestPKI.path("cvca.cvcert")
        let arguments = ["--json", "anchors", "import", "--folder", folder.path + "/none", root]
        let program = try RunningProgram("badgectl", arguments)
        #expect(await program.exitCode == 1)
        let line = try #require(program.text(.output).split(separator: "\n").first)
        return try #require(try JSON(line.utf8)["sha256"]?.string)
    }

    @Test("import takes what has a trusted fingerprint and what it has signed, says why it leaves others, and lists it")
    func importing() async throws {
        let fingerprint = try await fingerprint()
        let program = try Self.importing(
            into: anchors,
            fingerprint.uppercased(),
            "-",
            TestPKI.path("link.cvcert"),
            TestPKI.path("dv.cvcert"),
            TestPKI.path("dv.p8"),
            input: "cvRootCertificates: \(hex(try TestPKI.file("cvca.cvcert")))\n"
        )
        #expect(await program.exitCode == 0, "\(program.everything)")
        let lines = program.text(.output).split(separator: "\n").map(String.init)
        #expect(lines.contains { $0.hasPrefix("took \(Self.first), ") && $0.hasSuffix(": its SHA-256 is known") })
        #expect(
            lines.contains { $0.hasPrefix("took \(Self.second), ") && $0.hasSuffix(": \(Self.first) has signed it") }
        )
        #expect(
            lines.contains {
                $0.hasPrefix("left DEDVBADGED00001, ") && $0.contains("is not a certificate of an authority")
            }
        )
        #expect(lines.contains("2 taken, 0 already there; badged uses what is in \(anchors)."))
        #expect(program.text(.error) == "left \(TestPKI.path("dv.p8")) holds no new certificate\n")

        let list = try Self.badgectl("anchors", "--folder", anchors)
        #expect(await list.exitCode == 0)
        let rows = list.text(.output).split(separator: "\n").map(String.init)
        #expect(rows[0].hasPrefix("\(Self.first)  ") && rows[0].hasSuffix("  root"))
        #expect(rows[1].hasPrefix("\(Self.second)  ") && rows[1].hasSuffix("  signed by \(Self.first)"))
        #expect(rows[2].hasPrefix("The newest certificate, of \(Self.second), "))

        let again = try Self.badgectl("anchors", "import", "--folder", anchors, TestPKI.path("link.cvcert"))
        await again.ends(0, showing: "0 taken, 1 already there")
    }

    @Test("import that finds nothing to trust changes nothing and ends with 1")
    func nothing() async throws {
        let program = try Self.badgectl("anchors", "import", "--folder", anchors, TestPKI.path("cvca.cvcert"))
        await program.ends(1, showing: "left \(Self.first), ")
        #expect(program.text(.output).contains(": it is a root with an unknown fingerprint ("))
        #expect(
            program.text(.error).hasPrefix("badgectl: error: no certificate of a known country authority was found\n")
        )
        #expect(access(anchors, F_OK) != 0)
        let list = try Self.badgectl("anchors", "--folder", anchors)
        await list.ends(1, saying: "hint: import the certificates: sudo badgectl anchors import\n")
        let wrong = try Self.badgectl("anchors", "import", "--folder", anchors, "--fingerprint", "12", "x")
        #expect(await wrong.exitCode == 2)
        let word = try Self.badgectl("anchors", "export")
        #expect(await word.exitCode == 2)
    }

    @Test("A folder that cannot be written is an error")
    func unwritable() async throws {
        let fingerprint = try await fingerprint()
        let program = try Self.importing(into: "/proc/anchors", fingerprint, TestPKI.path("cvca.cvcert"))
        #expect(await program.exitCode != 0)
        #expect(program.text(.error).hasPrefix("badgectl: error: cannot write /proc/anchors: "))
        #expect(!program.text(.output).contains("took"))
    }

    @Test("--known lists the fingerprints of the German authority")
    func known() async throws {
        let program = try Self.badgectl("anchors", "--known")
        #expect(await program.exitCode == 0)
        #expect(
            program.text(.output).contains(
                """
                DECVCAeID00107  2023-11-28 to 2026-11-27  signed by DECVCAeID00106
                  db08ffe1ccdef0f35bca697d8f9cd54f95960a553d84a85bb664cc7dcf8b09ae

                """
            )
        )
    }

    @Test("auth says before it begins that no authority is trusted")
    func noAuthority() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_HEALTH", Say.noAnchors)
        }
        let program = try RunningProgram("badgectl", ["--socket", peer.path, "auth", "https://a.example/token"])
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error) == """
                badgectl: error: badged trusts no country authority, so no authentication can succeed
                hint: import the certificates of the authority: sudo badgectl anchors import

                """
        )
        #expect(!(await peer.received().contains { $0.contains("RUN_AUTH") }))
    }

    @Test("a user without the permission to see the health may authenticate")
    func noHealth() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_HEALTH", #"{"error":"GET_HEALTH","msg":"ACCESS_DENIED"}"#)
            peer.answer("RUN_AUTH", #"{"error":"Validation of tcTokenURL failed","msg":"AUTH"}"#)
        }
        let program = try RunningProgram("badgectl", ["--socket", peer.path, "auth", "https://a.example/token"])
        await program.ends(1, saying: "Validation of tcTokenURL failed")
    }

    @Test("a running badged uses imported certificates at once, and health shows the newest and its last day")
    func running() async throws {
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(anchors)\ndate = 2026-11-22\n".utf8))
        let daemon = try await RunningDaemon(["--no-ble", "--no-nfc", "--config", folder.path + "/badged.conf"])
        let before = try Self.badgectl("--socket", daemon.path, "health")
        await before.ends(1, showing: "BAD  trustAnchors: no country authority is trusted")
        #expect(before.text(.output).contains("sudo badgectl anchors import"))

        let program = try Self.importing(into: anchors, try await fingerprint(), TestPKI.path(""))
        #expect(await program.exitCode == 0, "\(program.everything)")
        let after = try Self.badgectl("--socket", daemon.path, "health")
        await after.ends(0, showing: "good trustAnchors: \(Self.second) until 20")
        let json = try Self.badgectl("--socket", daemon.path, "--json", "health")
        #expect(await json.exitCode == 0)
        let health = try JSON(try #require(json.text(.output).split(separator: "\n").first).utf8)
        let check = try #require(health["checks"]?.array?.first { $0["name"]?.string == "trustAnchors" })
        #expect(check["newest"]?.string == Self.second && check["linksLearnt"]?.int == 0)
        #expect(check["lastDay"]?.string?.count == 10)
    }

    @Test("health says when the newest certificate is over")
    func expired() async throws {
        try folder.write("a.cvcert", TestPKI.file("cvca.cvcert"))
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(folder.path)\ndate = 2099-01-01\n".utf8))
        let daemon = try await RunningDaemon(["--no-ble", "--no-nfc", "--config", folder.path + "/badged.conf"])
        let program = try Self.badgectl("--socket", daemon.path, "health")
        await program.ends(1, showing: "BAD  trustAnchors: the certificate of \(Self.first) was valid until ")
        #expect(program.text(.output).contains("import a newer certificate of this authority: sudo badgectl anchors"))
    }

    @Test("import of certificates that are over says so, ends with 1 and says what to do; a valid one ends with 0")
    func importingOld() async throws {
        let old = try CertificateRecipe.root.changed {
            ($0.effective, $0.expiration) = ([1, 6, 0, 1, 0, 1], [1, 9, 1, 2, 3, 1])
        }.certificate()
        try folder.write("old.cvcert", old.encoded)
        let fingerprint = try await fingerprint(folder.path + "/old.cvcert")
        let arguments = ["anchors", "import", "--folder", anchors, "--fingerprint", fingerprint]
        let words = "no certificate came that is valid today: the one of \(Self.first) was valid until 2019-12-31"
        for attempt in ["1 taken, 0 already there", "0 taken, 1 already there"] {
            let program = try RunningProgram("badgectl", arguments + [folder.path + "/old.cvcert"])
            await program.ends(1, showing: "\(attempt); badged uses what is in \(anchors).\n")
            #expect(program.text(.output).hasSuffix("of \(Self.first), was valid until 2019-12-31.\n"))
            #expect(
                program.text(.error) == """
                    badgectl: error: \(words)
                    hint: import a newer certificate of this authority: sudo badgectl anchors import SOURCE

                    """
            )
        }
        let json = try RunningProgram("badgectl", ["--json"] + arguments + [folder.path + "/old.cvcert"])
        await json.ends(1, saying: words)
        let list = try Self.badgectl("anchors", "--folder", anchors)
        await list.ends(0, saying: "import a newer certificate of this authority")
        // With the link that the old key has signed, the folder has a valid one.
        let link = try RunningProgram("badgectl", arguments + [TestPKI.path("link.cvcert")])
        #expect(await link.exitCode == 0, "\(link.everything)")
        #expect(link.text(.output).hasSuffix("of \(Self.second), is valid until 2039-12-31.\n"))
        #expect(link.text(.output).contains("\(Self.first) has signed it (its own certificate is over)\n"))
        let again = try RunningProgram("badgectl", arguments + [folder.path + "/old.cvcert"])
        #expect(await again.exitCode == 0, "\(again.everything)")
    }

    @Test("import and list use the folder of the badged at the socket")
    func folderOfDaemon() async throws {
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(anchors)\n".utf8))
        let daemon = try await RunningDaemon(["--no-ble", "--no-nfc", "--config", folder.path + "/badged.conf"])
        let fingerprint = try await fingerprint()
        let arguments = ["--socket", daemon.path, "--json", "anchors", "import", "--fingerprint", fingerprint]
        let program = try RunningProgram("badgectl", arguments + [TestPKI.path("cvca.cvcert")])
        #expect(await program.exitCode == 0, "\(program.everything)")
        // Only the lines about certificates, no message of badged.
        let lines = program.text(.output).split(separator: "\n")
        #expect(lines.count == 1 && lines.allSatisfy { $0.contains(#""outcome":"took","reason":"fingerprint""#) })
        #expect(program.text(.error).isEmpty)
        #expect(access("\(anchors)/\(Self.first).cvcert", F_OK) == 0)
        let list = try Self.badgectl("--socket", daemon.path, "anchors")
        #expect(await list.exitCode == 0)
        #expect(list.text(.output).hasPrefix("\(Self.first)  "))
    }

    @Test("a badged that does not say its folder is noted, and one that is named and does not run is an error")
    func unknownFolder() async throws {
        let peer = try ScriptedPeer { peer in
            peer.hasAnchors()
        }
        let old = try RunningProgram("badgectl", ["--socket", peer.path, "anchors"])
        _ = await old.exitCode
        let words = "badged does not say which folder it uses; this is about the folder of badged.conf: /"
        #expect(old.text(.error).hasPrefix(words), "\(old.everything)")
        let missing = try RunningProgram(
            "badgectl",
            ["--socket", "/nowhere/s", "anchors", "import", TestPKI.path("cvca.cvcert")]
        )
        #expect(await missing.exitCode == 3)
    }
}

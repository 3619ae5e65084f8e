// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import TestSupport
import Testing

@Suite("The version of badged-activation", .timeLimit(.minutes(5)))
struct ActivationVersionTests {
    @Test(
        "badged-activation refuses a badged of another version, and says which packages to upgrade",
        arguments: ["0", Version.current + ".1", "", "x"]
    )
    func otherVersion(version: String) async throws {
        let program = try RunningProgram("badged-activation", ["--badged", version, "--listeners", "1"])
        #expect(await program.exitCode == 2)
        let said = program.text(.error)
        #expect(said.contains("badged-activation is of version \(Version.current), and badged of \(version)"))
        #expect(said.contains("hint: upgrade the packages badged and badged-activation together"))
    }

    @Test("its own version is no reason for a refusal")
    func ownVersion() async throws {
        let program = try RunningProgram("badged-activation", ["--badged", Version.current, "--listeners", "1"])
        #expect(await program.exitCode == 2)
        #expect(program.text(.error).contains("badged-activation is started by badged only"))
    }
}

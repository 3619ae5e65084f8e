// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

/// What badged says about `[eid] proxy` when it starts.
@Suite("badged: the settings of the proxy", .timeLimit(.minutes(5))) struct ProxySettingTests {
    private static func start(
        _ configuration: String,
        in folder: TemporaryFolder,
        environment: [String: String] = [:]
    ) throws -> RunningProgram {
        try folder.write("badged.conf", Array("[eid]\n\(configuration)\n".utf8))
        return try RunningProgram(
            "badged",
            [
                "--no-pcsc", "--no-nfc", "--no-ble", "--socket", folder.path + "/s", "--config",
                folder.path + "/badged.conf",
            ],
            environment: environment
        )
    }

    @Test(
        "credentials that are missing, readable by others or malformed end badged, and are not in its output",
        arguments: [
            (nil, 0o600, "there is no file"), ("name:secret\n", 0o640, "can be read by other users"),
            ("name:secret\n", 0o604, "can be read by other users"),
            ("secret\n", 0o600, "is not one line NAME:PASSWORD"),
            ("a:secret\nb:secret\n", 0o600, "is not one line NAME:PASSWORD"),
        ] as [(String?, mode_t, String)]
    )
    func credentials(content: String?, mode: mode_t, words: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/credentials"
        if let content {
            try folder.write("credentials", Array(content.utf8))
            chmod(path, mode)
        }
        let badged = try Self.start("proxy = http://127.0.0.1:1\nproxy_credentials = \(path)", in: folder)
        #expect(await badged.exitCode == 78)
        #expect(badged.text(.error).contains("\(path) \(words)") || badged.text(.error).contains("\(words) \(path)"))
        #expect(badged.text(.error).contains("hint: ") && !badged.text(.error).contains("secret"))
    }

    @Test("a proxy that badged cannot use ends badged, and does not lead to a direct connection")
    func unusable() async throws {
        let folder = try TemporaryFolder()
        let variable = ["https_proxy": "socks5://me:secret@127.0.0.1:1"]
        let badged = try Self.start("proxy = environment", in: folder, environment: variable)
        await badged.ends(78, saying: "the variable https_proxy names no proxy")
        #expect(!badged.text(.error).contains("secret"))
        let other = try Self.start("proxy = http://127.0.0.1", in: folder)
        #expect(await other.exitCode == 78)
        let password = try Self.start("proxy = http://me:secret@127.0.0.1:1", in: folder)
        #expect(await password.exitCode == 78)
        #expect(!password.text(.error).contains("secret"))
    }
}

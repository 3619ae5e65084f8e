// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

/// What badged says about the settings of Aliro in `[credentials]` when it starts.
@Suite("badged: the settings of Aliro", .timeLimit(.minutes(5))) struct AliroSettingTests {
    private static let group = "aliro_group = 00112233445566778899aabbccddeeff"

    /// A private key of P-256 in PKCS#8.
    private static func key(curve: String = "2a8648ce3d030107") throws -> [UInt8] {
        let scalar = try vectorFile("aliro.json").object("reader").bytes("private")
        return hex("3041020100301306072a8648ce3d02010608\(curve)042730250201010420") + scalar
    }

    /// Writes a file with a key, and returns its path.
    private static func keyFile(in folder: TemporaryFolder) throws -> String {
        let path = try folder.write("aliro.key", try key())
        chmod(path, 0o600)
        return path
    }

    private static func start(_ lines: String, in folder: TemporaryFolder) throws -> RunningProgram {
        try folder.write("badged.conf", Array("[credentials]\n\(lines)\n".utf8))
        return try RunningProgram(
            "badged",
            [
                "--no-pcsc", "--no-nfc", "--no-ble", "--log-level", "info", "--socket", folder.path + "/s", "--config",
                folder.path + "/badged.conf",
            ]
        )
    }

    @Test(
        "a key file that is missing, readable by others or invalid ends badged with exit code 78",
        arguments: [
            ("missing", 0o600, "there is no file"), ("good", 0o640, "can be read by other users"),
            ("good", 0o604, "can be read by other users"), ("cut", 0o600, "is not a private key of P-256"),
            ("long", 0o600, "is not a private key of P-256"), ("curve", 0o600, "is not a private key of P-256"),
            ("zero", 0o600, "is not a private key of P-256"), ("empty", 0o600, "is not a private key of P-256"),
        ] as [(String, mode_t, String)]
    )
    func key(content: String, mode: mode_t, words: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/aliro.key"
        let good = try Self.key()
        let bytes: [UInt8]? =
            switch content {
            case "missing": nil
            case "cut": Array(good.dropLast())
            case "long": good + [UInt8](repeating: 0, count: 2000)
            // An identifier of no curve.
            case "curve": try Self.key(curve: "2a8648ce3d030108")
            case "zero": good.dropLast(32) + [UInt8](repeating: 0, count: 32)
            case "empty": []
            default: good
            }
        if let bytes {
            try folder.write("aliro.key", bytes)
            chmod(path, mode)
        }
        let badged = try Self.start("aliro_key = \(path)\n\(Self.group)", in: folder)
        #expect(await badged.exitCode == 78)
        #expect(badged.text(.error).contains("\(path) \(words)") || badged.text(.error).contains("\(words) \(path)"))
        #expect(badged.text(.error).contains("hint: "))
    }

    @Test("settings that are not complete stop the start")
    func incomplete() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.keyFile(in: folder)
        let noPoint = "02" + String(repeating: "f", count: 64)
        for (lines, words) in [
            ("aliro_key = \(path)", "aliro_key is set, and aliro_group is missing"),
            (Self.group, "aliro_key is missing"),
            ("aliro_credentials = 02\(String(repeating: "00", count: 32))", "aliro_key is missing"),
            ("aliro_key = \(path)\n\(Self.group)\naliro_credentials = \(noPoint)", "not a point of P-256"),
        ] {
            let badged = try Self.start(lines, in: folder)
            #expect(await badged.exitCode == 78)
            #expect(badged.text(.error).contains(words) && badged.text(.error).contains("hint: "))
        }
    }

    @Test("with a key and a group badged starts")
    func complete() async throws {
        let folder = try TemporaryFolder()
        let path = try Self.keyFile(in: folder)
        let badged = try Self.start("aliro_key = \(path)\n\(Self.group)", in: folder)
        #expect(await badged.prints("serving", on: .error))
        #expect(await badged.exitCode(after: SIGTERM) == 0)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import FoundationEssentials
import ISO7816
import TestSupport
import Testing
import Text

/// What JMRTD 0.8.8 sent to a card that is not ours, and the answers. Tests/Vectors/documents/README.md.
@Suite("Recordings of JMRTD", .timeLimit(.minutes(5)))
struct JMRTDTranscriptTests {
    static let folder = testsFolder.appending(path: "Vectors/documents/transcripts")
    static let names = [
        "bac-aa-ec", "bac-aa-rsa", "bac-ca-3des", "bac-td3-sha1", "pace-3des", "pace-aes256", "pace-cam-ca",
        "pace-dh-gm", "pace-dh-im", "pace-im", "pace-im-aes256", "two-ca-keys",
    ]

    private func lines(_ name: String) throws -> [JSON] {
        let text = try Data(contentsOf: Self.folder.appending(path: "\(name).jsonl"))
        return try text.split(separator: 0x0A).map { try JSON($0) }
    }

    private func bytes(of line: JSON, _ member: String) throws -> [UInt8] {
        let digits = try #require(line[member]?.string)
        return hex(digits)
    }

    /// The keys and the counter of a recorded channel.
    private func messaging(_ line: JSON) throws -> SecureMessaging? {
        guard let cipher = line["cipher"]?.string else { return nil }
        let keys = SessionKeys(
            encryption: Secret(try bytes(of: line, "enc")),
            authentication: Secret(try bytes(of: line, "mac")),
            cipher: cipher == "3DES" ? .tripleDES : .aes
        )
        return try SecureMessaging(keys, counter: try bytes(of: line, "ssc"))
    }

    /// What a recording has in plain.
    private struct Plain {
        var files: [String: [UInt8]] = [:]
        var challenge: [UInt8]?
        var signature: [UInt8]?
        var protected = 0
    }

    /// Reads a recording with our secure messaging on both sides. Each answer that our chip makes has the same bytes.
    private func read(_ name: String) throws -> Plain {
        var plain = Plain()
        var terminal: SecureMessaging?
        var chip: SecureMessaging?
        var current = ""
        var isApplication = false
        for line in try lines(name) {
            if line["cipher"] != nil {
                terminal = try messaging(line)
                chip = try messaging(line)
                continue
            }
            guard let text = line["c"]?.string, let reply = line["r"]?.string else { continue }
            let sent = try #require(CommandAPDU(bytes: hex(text)))
            let received = try #require(ResponseAPDU(bytes: hex(reply)))
            guard sent.cla & 0x0C == 0x0C, chip != nil else {
                if sent.ins == 0xA4, sent.p1 == 0x04 { isApplication = true }
                continue
            }
            let command = try #require(try chip?.unwrap(sent))
            #expect(try terminal?.wrap(command) != nil)
            let answer = try #require(try terminal?.unwrap(received))
            #expect(try chip?.wrap(answer) == received)
            plain.protected += 1
            switch (command.ins, command.p1) {
            case (0xA4, 0x04): isApplication = true
            case (0xA4, 0x02): current = (isApplication ? "A" : "M") + hex(command.data)
            case (0xB0, 0x00..<0x80):
                let offset = Int(command.p1) << 8 | Int(command.p2)
                let file = plain.files[current] ?? []
                plain.files[current] = Array(file.prefix(offset)) + answer.data
            case (0x88, _): (plain.challenge, plain.signature) = (command.data, answer.data)
            default: continue
            }
        }
        return plain
    }

    @Test("our secure messaging reads and writes the same bytes", arguments: names)
    func messages(name: String) throws {
        let plain = try read(name)
        #expect(plain.protected > 10)
        let sod = try #require(plain.files["A011D"])
        let signed = try SecurityObject.signedData(sod)
        #expect(throws: Never.self) { try signed.proofs(of: .securityObject) }
        let object = try SecurityObject(signed.content)
        var checked = 0
        for (number, file) in plain.files where number.hasPrefix("A01") {
            guard let group = UInt8(number.suffix(2), radix: 16), (1...16).contains(group), file.count > 8 else {
                continue
            }
            // JMRTD reads the group to its end, or only as far as it needs.
            guard let whole = try? BERTLV(startOf: file).encoded else { continue }
            #expect(object.matches(whole, group: Int(group)) == true, "DG\(group)")
            checked += 1
        }
        #expect(checked >= 2)
    }

    @Test(
        "the session keys of BAC are those of the recording",
        arguments: ["bac-aa-ec", "bac-td3-sha1", "bac-ca-3des"]
    )
    func basicAccess(name: String) throws {
        let lines = try lines(name)
        let information = try #require(lines.first?["mrzKey"]?.string)
        let index = try #require(lines.firstIndex { $0["c"]?.string?.hasPrefix("0082") == true })
        let command = try #require(CommandAPDU(bytes: bytes(of: lines[index], "c")))
        let answer = try #require(ResponseAPDU(bytes: bytes(of: lines[index], "r")))
        let keys = try BasicAccessControl.keys(information: Secret(Array(information.utf8)))
        let first = try BasicAccessControl.open(command.data, keys)
        let second = try BasicAccessControl.open(answer.data, keys)
        guard let sent = consume first, let received = consume second, let own = sent.part(16..<32),
            let other = received.part(16..<32)
        else {
            Issue.record("a MAC was refused")
            return
        }
        let seed = Secret(zip(TestSupport.bytes(own), TestSupport.bytes(other)).map { $0 ^ $1 })
        let session = try SessionKeys(sharedSecret: seed, cipher: .tripleDES)
        #expect(TestSupport.bytes(session.encryption) == (try bytes(of: lines[index + 1], "enc")))
        #expect(TestSupport.bytes(session.authentication) == (try bytes(of: lines[index + 1], "mac")))
    }

    @Test("the signatures of active authentication are right", arguments: ["bac-aa-ec", "bac-aa-rsa"])
    func activeAuthentication(name: String) throws {
        let plain = try read(name)
        let group = try BERTLV(startOf: try #require(plain.files["A010F"]))
        let infos = try plain.files["A010E"].map { try SecurityInfos(try BERTLV(startOf: $0).value) }
        let result = try ActiveAuthentication.check(
            try #require(plain.signature),
            challenge: try #require(plain.challenge),
            key: try PublicKeyInfo(group.value),
            infos: infos
        )
        #expect(result == .right)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ServerDoubles
import Text

/// issuer [--folder FOLDER] [--faults FAULT,FAULT]: an issuer on 127.0.0.1, for tests. It prints its address and
/// its fingerprint, reads commands from standard input, and ends with it:
///
///     invite CODE [MEMBERS]       makes an invitation
///     enrol THUMBPRINT [MEMBERS]  enrols a key, or changes its file
///     revoke THUMBPRINT
///     fail FAULT,FAULT            the next requests go wrong
///     check BLOB                  checks the blob of WALLET_PREPARE
///
/// MEMBERS is a JSON object with members of the enrolment file. Each command is answered with a line. With --folder the
/// same files are in a folder.
enum Issuer {
    static func run(_ given: ArraySlice<String>) throws {
        var folder: String?
        var faults: [IssuerDouble.Fault] = []
        var arguments = given
        while let option = arguments.popFirst() {
            switch option {
            case "--folder": folder = arguments.popFirst()
            case "--faults": faults = read(arguments.popFirst() ?? "")
            default:
                Program.say("unknown option \(option)")
                exit(2)
            }
        }
        let issuer = try IssuerDouble()
        issuer.fail(faults)
        Program.say("ready \(issuer.address) \(Hex.encode(issuer.fingerprint))")
        while let line = readLine() {
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            guard words.count >= 2 else { continue }
            let members = words.count > 2 ? (try? JSON(words[2].utf8))?.members ?? [] : []
            let table = Dictionary(members.map { ($0.key, $0.value) }) { $1 }
            switch words[0] {
            case "invite":
                issuer.invite(words[1], table)
                Program.say("invited \(words[1])")
            case "enrol": Program.say(issuer.enrol(words[1], table))
            case "revoke": Program.say(issuer.revoke(words[1]))
            case "fail":
                issuer.fail(read(words[1]))
                Program.say("failing")
            case "check":
                let payload = IssuerDouble.check(blob: words[1])
                Program.say(payload.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "wrong")
            default: Program.say("unknown command")
            }
            if let folder { try issuer.publish(in: folder) }
        }
    }

    private static func read(_ text: String) -> [IssuerDouble.Fault] {
        text.split(separator: ",").compactMap { IssuerDouble.Fault(rawValue: String($0)) }
    }
}

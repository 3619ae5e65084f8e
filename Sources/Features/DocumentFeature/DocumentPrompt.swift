// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Document
import Secrets
import Server
import Text
import Wire

/// Asks for what is printed on the document: ENTER_MRZ, which SET_MRZ and SET_CAN answer.
struct DocumentPrompt: Prompt {
    typealias Answer = AccessKey

    let lease: CardLease
    /// Whether PACE accepts the CAN.
    let acceptsCAN: Bool
    /// Whether the last value was refused by the chip.
    let isRepeated: Bool

    let name = EnterMRZMessage.name.description
    var isCurrent: Bool { lease.isCurrent }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        EnterMRZMessage(
            reader: lease.readerState(for: session),
            question: number,
            acceptsCAN: acceptsCAN,
            error: error ?? (isRepeated ? "wrongPassword" : nil)
        )
    }

    func answer(in call: Call) throws(Failure) -> AccessKey {
        switch call.name {
        case "SET_MRZ": return try DocumentKeyArguments.zone(call)
        case "SET_CAN" where acceptsCAN: return try DocumentKeyArguments.can(call)
        default: throw .badState
        }
    }
}

/// The values that open a document, as a client sends them.
@Loop enum DocumentKeyArguments {
    /// `value` with the lines of the zone, or `number`, `birth` and `expiry`.
    static func zone(_ call: Call) throws(Failure) -> AccessKey {
        if call.arguments.isPresent("value") {
            let form = "the two or three lines of the machine readable zone"
            return try call.arguments.secret("value", form) { secret in
                secret.withBytes { bytes in try? MachineReadableZone(bytes) }
                    .map { AccessKey(information: Secret($0.information)) }
            }
        }
        let number = try call.arguments.secret("number", "1 to 22 letters and digits") { secret in
            characters(secret, 1...22)
        }
        let birth = try date("birth", call)
        let expiry = try date("expiry", call)
        return AccessKey(
            information: Secret(MachineReadableZone.information(number: number, birth: birth, expiry: expiry))
        )
    }

    static func can(_ call: Call) throws(Failure) -> AccessKey {
        try call.arguments.secret("value", "6 digits") { secret in
            let isNumber = secret.withBytes { $0.count == 6 && $0.allSatisfy { (0x30...0x39).contains($0) } }
            return isNumber ? AccessKey(can: secret.clone()) : nil
        }
    }

    /// YYMMDD or YYYY-MM-DD; `<` stands for an unknown digit.
    private static func date(_ name: StaticString, _ call: Call) throws(Failure) -> [UInt8] {
        try call.arguments.secret(name, "a date as YYMMDD or YYYY-MM-DD") { secret in
            let digits = secret.withBytes { $0.filter { $0 != UInt8(ascii: "-") } }
            guard digits.count == 6 || digits.count == 8,
                digits.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: "<") })
            else { return nil }
            return Array(digits.suffix(6))
        }
    }

    private static func characters(_ secret: borrowing Secret, _ counts: ClosedRange<Int>) -> [UInt8]? {
        let upper = secret.withBytes { bytes in
            bytes.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 }.filter { $0 != 0x20 }
        }
        let isPlain = upper.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || $0 == UInt8(ascii: "<")
        }
        return counts.contains(upper.count) && isPlain ? upper : nil
    }
}

/// ENTER_MRZ. docs/protocol/documents.md.
struct EnterMRZMessage: Message {
    static let name: StaticString = "ENTER_MRZ"
    let reader: ReaderState
    let question: Int
    let acceptsCAN: Bool
    let error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("question", question)
        object.member("passwords", ["mrz"] + (acceptsCAN ? ["can"] : []))
        object.object("reader") { reader.write(to: &$0, level) }
    }
}

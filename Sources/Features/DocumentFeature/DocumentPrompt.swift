// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Document
import Server
import Text

/// Asks for what is printed on the document: ENTER_MRZ or, after a CAN that was refused, ENTER_CAN. SET_MRZ and SET_CAN
/// answer both.
struct DocumentPrompt: CardPrompt {
    typealias Answer = AccessKey

    let lease: CardLease
    /// Whether PACE accepts the CAN.
    let acceptsCAN: Bool
    /// What the chip has refused before.
    let refused: AccessKey.Kind?

    var name: StaticString { refused == .can ? "ENTER_CAN" : "ENTER_MRZ" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        let words: Phrase? =
            error ?? refused.map { "The document refuses this \($0.rawValue): compare it with the document" }
        let code: Phrase? = error != nil ? "malformed" : refused.map { _ in "wrongPassword" }
        return question(number, to: session, error: code) { object in
            if let words { object.member("message", words) }
            object.member("passwords", ["mrz"] + (acceptsCAN ? ["can"] : []))
        }
    }

    func answer(in call: Call) throws(Failure) -> AccessKey {
        switch call.name {
        case "SET_MRZ": return try DocumentKeyArguments.zone(call, "value")
        case "SET_CAN" where acceptsCAN: return try DocumentKeyArguments.can(call, "value")
        default: throw .badState
        }
    }
}

/// The values that open a document, as a client sends them.
@Loop enum DocumentKeyArguments {
    /// The member `name` with the lines of the zone, or `number`, `birth` and `expiry`.
    static func zone(_ call: Call, _ name: StaticString) throws(Failure) -> AccessKey {
        if call.arguments.has(name) {
            let form = "the two or three lines of the machine readable zone"
            return try call.arguments.secret(name, form) { secret in
                secret.withBytes { zone(of: $0) }
            }.get()
        }
        let number = try call.arguments.secret("number", "1 to 22 letters and digits, without the check digit") {
            secret in
            let number = secret.withBytes { MachineReadableZone.number(typed: $0) }
            return number.flatMap { MachineReadableZone.endsWithCheckDigit($0) ? nil : $0 }
        }
        let birth = try date("birth", call)
        let expiry = try date("expiry", call)
        return AccessKey(
            information: Secret(MachineReadableZone.information(number: number, birth: birth, expiry: expiry))
        )
    }

    /// A typing error that a check digit shows is found before the chip gets it, since chips wait longer after each
    /// wrong value.
    private static func zone(of bytes: UnsafeRawBufferPointer) -> Result<AccessKey, Failure> {
        func wrong(_ text: Phrase) -> Result<AccessKey, Failure> {
            .failure(Failure(.wrongArgument, text, advice: "compare the machine readable zone with the document"))
        }
        let zone: MachineReadableZone
        do throws(Malformed) {
            zone = try MachineReadableZone(scanned: bytes)
        } catch {
            return .failure(Failure(.wrongArgument, error.words))
        }
        let digits: [(MachineReadableZone.Field, Phrase)] = [
            (.number, Phrase("The check digit of the document number is wrong")),
            (.birth, Phrase("The check digit of the date of birth is wrong")),
            (.expiry, Phrase("The check digit of the date of expiry is wrong")),
        ]
        let days: [(MachineReadableZone.Field, Phrase)] = [
            (.birth, Phrase("The date of birth is no day")), (.expiry, Phrase("The date of expiry is no day")),
        ]
        for (field, text) in digits where zone.wrongCheckDigits.contains(field) { return wrong(text) }
        for (field, text) in days where zone.impossibleDates.contains(field) { return wrong(text) }
        return .success(AccessKey(zone: zone))
    }

    static func can(_ call: Call, _ name: StaticString) throws(Failure) -> AccessKey {
        try call.arguments.secret(name, "6 digits") { secret in
            let isNumber = secret.withBytes { $0.count == 6 && $0.allSatisfy { (0x30...0x39).contains($0) } }
            return isNumber ? AccessKey(can: secret.clone()) : nil
        }
    }

    /// YYMMDD or YYYY-MM-DD; `<` or X stands for an unknown digit.
    private static func date(_ name: StaticString, _ call: Call) throws(Failure) -> [UInt8] {
        let form = "a day as YYMMDD or YYYY-MM-DD, without its check digit"
        return try call.arguments.secret(name, form) { secret in
            secret.withBytes { MachineReadableZone.date(typed: $0) }
        }
    }
}

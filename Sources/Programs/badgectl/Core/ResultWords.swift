// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The names of results, as people read them: fields of a document, checks and what has come of them.
enum ResultWords {
    /// In the language of the user; a name that is not known here is split into its words.
    static func text(_ name: String) -> String { known[name] ?? split(name) }

    private static let known = [
        // What a check says, and a file.
        "passed": tr("passed"), "failed": tr("failed"), "absent": tr("absent"), "notDone": tr("not done"),
        "read": tr("read"), "locked": tr("locked"), "notAsked": tr("not asked"), "refused": tr("refused"),
        "malformed": tr("malformed"), "notSigned": tr("not signed"), "genuine": tr("genuine"), "yes": tr("yes"),
        "no": tr("no"), "unknown": tr("unknown"),
        // Checks.
        "hashes": tr("hashes"), "signature": tr("signature"), "authority": tr("authority"), "chip": tr("chip"),
        "document": tr("document"), "device": tr("device"), "issuer": tr("issuer"),
        // Access.
        "protocol": tr("protocol"), "password": tr("password"), "mapping": tr("mapping"),
        "parameters": tr("parameters"), "cipher": tr("cipher"),
        // Fields.
        "type": tr("type"), "code": tr("code"), "number": tr("number"), "surname": tr("surname"), "given": tr("given"),
        "nationality": tr("nationality"), "birth": tr("birth"), "sex": tr("sex"), "expiry": tr("expiry"),
        "optional": tr("optional"), "fullName": tr("full name"), "otherNames": tr("other names"),
        "birthDate": tr("birth date"), "birthPlace": tr("birth place"), "personalNumber": tr("personal number"),
        "address": tr("address"), "telephone": tr("telephone"), "profession": tr("profession"), "title": tr("title"),
        "summary": tr("summary"), "otherDocuments": tr("other documents"), "custody": tr("custody"), "date": tr("date"),
        "endorsements": tr("endorsements"), "tax": tr("tax"),
    ]

    /// `birthDate` as `birth date`.
    private static func split(_ name: String) -> String {
        name.map { $0.isUppercase ? " " + $0.lowercased() : String($0) }.joined()
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The names of results, as people read them: fields of a document, checks and what has come of them.
enum ResultWords {
    /// In the language of the user; a name that is not known here is split into its words.
    static func text(_ name: String) -> String { known[name] ?? split(name) }

    /// Names that stand one after the other, each perhaps with the name of a field.
    static func list(_ names: String) -> String {
        names.split(separator: ", ").map { entry in
            entry.split(separator: " ").map { text(String($0)) }.joined(separator: " ")
        }.joined(separator: ", ")
    }

    /// What the proofs of a chip say, such as `PACE-CAM not done (unknownAuthority), CA passed`.
    static func methods(_ list: String) -> String {
        list.split(separator: ", ").map { entry in
            let (method, rest) =
                entry.firstIndex(of: " ").map { (entry[..<$0], entry[$0...].dropFirst()) } ?? (entry, "")
            let parts = rest.split(separator: " (", maxSplits: 1)
            let result = text(parts.first == "not done" ? "notDone" : String(parts.first ?? ""))
            let reason = parts.count > 1 ? " (\(text(String(parts[1].dropLast()))))" : ""
            return "\(method) \(result)\(reason)"
        }.joined(separator: ", ")
    }

    private static let known = [
        // What a check says, and a file.
        "passed": tr("passed"), "failed": tr("failed"), "absent": tr("absent"), "notDone": tr("not done"),
        "read": tr("read"), "locked": tr("locked"), "notAsked": tr("not asked"), "refused": tr("refused"),
        "malformed": tr("malformed"), "notSigned": tr("not signed"), "genuine": tr("genuine"), "yes": tr("yes"),
        "no": tr("no"), "unknown": tr("unknown"),
        // Why a check has failed or was not done, and what it has found.
        "wrongHash": tr("wrong hash"), "unsupported": tr("unsupported"), "wrongSignature": tr("wrong signature"),
        "wrongDigest": tr("wrong digest"), "noSigner": tr("no signer"), "unknownAuthority": tr("unknown authority"),
        "wrongCertificateSignature": tr("wrong certificate signature"), "signerExpired": tr("signer expired"),
        "signerNotYetValid": tr("signer not yet valid"), "authorityExpired": tr("authority expired"),
        "authorityNotYetValid": tr("authority not yet valid"), "revoked": tr("revoked"),
        "notASigner": tr("not a signer"), "wrongCountry": tr("wrong country"),
        "wrongDocumentType": tr("wrong document type"), "defect": tr("defect"),
        "signedInFuture": tr("signed in future"), "noRevocationList": tr("no revocation list"),
        "unusableList": tr("unusable list"),
        "disturbed": tr("disturbed"), "wrongKey": tr("wrong key"), "notBound": tr("not bound"),
        "suspended": tr("suspended"),
        "wrongEncryption": tr("wrong encryption"), "noCertificate": tr("no certificate"),
        "unknownKey": tr("unknown key"),
        "unknownIssuer": tr("unknown issuer"), "internalError": tr("internal error"), "noProof": tr("no proof"),
        "handover": tr("goes on over another radio"), "valid": tr("valid"),
        "unavailable": tr("unavailable"), "expired": tr("expired"), "notYetValid": tr("not yet valid"),
        "documentExpired": tr("document expired"), "wrongDocType": tr("wrong doc type"),
        "signedOutsideCertificate": tr("signed outside certificate"), "checkDigit": tr("check digit"),
        "mrzDiffers": tr("mrz differs"), "accessDiffers": tr("access differs"), "comDiffers": tr("com differs"),
        "imageUnknown": tr("image unknown"), "labelDiffers": tr("label differs"),
        "noAccessControl": tr("no access control"),
        // Checks.
        "hashes": tr("hashes"), "signature": tr("signature"), "authority": tr("authority"), "chip": tr("chip"),
        "document": tr("document"), "device": tr("device"), "issuer": tr("issuer"), "status": tr("status"),
        "mac": tr("MAC"),
        // Access.
        "protocol": tr("protocol"), "password": tr("password"), "mapping": tr("mapping"),
        "parameters": tr("parameters"), "cipher": tr("cipher"),
        // Fields.
        "type": tr("type"), "code": tr("code"), "number": tr("number"), "surname": tr("surname"), "given": tr("given"),
        "nationality": tr("nationality"), "birth": tr("birth"), "sex": tr("sex"), "expiry": tr("expiry"),
        "optional": tr("optional data"), "fullName": tr("full name"), "otherNames": tr("other names"),
        "birthDate": tr("birth date"), "birthPlace": tr("birth place"), "personalNumber": tr("personal number"),
        "address": tr("address"), "telephone": tr("telephone"), "profession": tr("profession"), "title": tr("title"),
        "summary": tr("summary"), "otherDocuments": tr("other documents"), "custody": tr("custody"), "date": tr("date"),
        "endorsements": tr("endorsements"), "tax": tr("tax"),
    ]

    /// The name of an element of a mobile document: ISO/IEC 18013-5, 7.2.1, and the PID of EUDI.
    static func element(_ name: String) -> String {
        if let word = elements[name] { return word }
        if name.hasPrefix("age_over_"), let age = Int(name.dropFirst("age_over_".count)) {
            return tr("age over \(age)")
        }
        return name.replacing("_", with: " ")
    }

    private static let elements = [
        "family_name": tr("family name"), "given_name": tr("given name"), "birth_date": tr("birth date"),
        "birth_place": tr("birth place"), "place_of_birth": tr("place of birth"), "issue_date": tr("issue date"),
        "issuance_date": tr("issuance date"), "expiry_date": tr("expiry date"),
        "issuing_country": tr("issuing country"), "issuing_authority": tr("issuing authority"),
        "issuing_jurisdiction": tr("issuing jurisdiction"), "document_number": tr("document number"),
        "administrative_number": tr("administrative number"),
        "personal_administrative_number": tr("personal administrative number"),
        "un_distinguishing_sign": tr("un distinguishing sign"), "driving_privileges": tr("driving privileges"),
        "portrait": tr("portrait"), "portrait_capture_date": tr("portrait capture date"),
        "signature_usual_mark": tr("signature usual mark"), "sex": tr("sex"), "height": tr("height"),
        "weight": tr("weight"), "eye_colour": tr("eye colour"), "hair_colour": tr("hair colour"),
        "nationality": tr("nationality"), "age_in_years": tr("age in years"), "age_birth_year": tr("age birth year"),
        "resident_address": tr("resident address"), "resident_street": tr("resident street"),
        "resident_house_number": tr("resident house number"), "resident_city": tr("resident city"),
        "resident_state": tr("resident state"), "resident_postal_code": tr("resident postal code"),
        "resident_country": tr("resident country"), "family_name_birth": tr("family name birth"),
        "given_name_birth": tr("given name birth"),
        "family_name_national_character": tr("family name national character"),
        "given_name_national_character": tr("given name national character"), "email_address": tr("email address"),
        "mobile_phone_number": tr("mobile phone number"),
    ]

    /// `birthDate` as `birth date`.
    private static func split(_ name: String) -> String {
        name.map { $0.isUppercase ? " " + $0.lowercased() : String($0) }.joined()
    }
}

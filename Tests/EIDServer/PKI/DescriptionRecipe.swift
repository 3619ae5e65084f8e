// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816

/// Writes the description of a terminal certificate: the service and its TLS certificates. TR-03110-4 A.2.1.
struct DescriptionRecipe {
    var issuerName = "badged test DV"
    var issuerURL = "https://dv.example"
    var subjectName = "Testdienst"
    /// nil leaves the field out.
    var subjectURL: String?
    var termsOfUsage = """
        Name, Anschrift und E-Mail-Adresse des Diensteanbieters:
        Testdienst
        Am Prüfstand 1
        00000 Beispielstadt
        kontakt@dienst.example

        Geschäftszweck:
        Test

        Zuständige Datenschutzbehörde:
        Keine
        """
    /// An empty array leaves the field out.
    var certificateHashes: [[UInt8]] = []

    var encoded: [UInt8] {
        func utf8(_ text: String) -> BERTLV { BERTLV(0x0C, Array(text.utf8)) }
        func printable(_ text: String) -> BERTLV { BERTLV(0x13, Array(text.utf8)) }
        // id-plainFormat.
        var fields = [BERTLV(0x06, OID.certificateExtension + [1, 1]), BERTLV(0xA1, [utf8(issuerName)])]
        fields.append(BERTLV(0xA2, [printable(issuerURL)]))
        fields.append(BERTLV(0xA3, [utf8(subjectName)]))
        if let subjectURL { fields.append(BERTLV(0xA4, [printable(subjectURL)])) }
        fields.append(BERTLV(0xA5, [utf8(termsOfUsage)]))
        if !certificateHashes.isEmpty {
            // DER sorts the elements of a set.
            let hashes = certificateHashes.sorted { $0.lexicographicallyPrecedes($1) }.map { BERTLV(0x04, $0) }
            fields.append(BERTLV(0xA7, [BERTLV(0x31, hashes)]))
        }
        return BERTLV(0x30, fields).encoded
    }
}

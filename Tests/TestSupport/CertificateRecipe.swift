// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import EID
import ISO7816
import Text

/// The content of a CV certificate that is signed with a key of the test PKI.
package struct CertificateRecipe: Sendable {
    package var authority = "DEDVBADGED00001"
    package var holder = "DEATBADGED00001"
    /// The name of the issuer's key file without its extension.
    package var signer = "dv"
    /// The name of the holder's key file without its extension.
    package var subject = "terminal"
    package var chat = CHAT(.terminal, AccessRights(rawValue: 0x3F_FFFF_FFFF))
    package var effective: [UInt8] = [2, 4, 0, 1, 0, 1]
    package var expiration: [UInt8] = [3, 9, 1, 2, 3, 1]
    package var writesParameters = false
    package var digest = DigestAlgorithm.sha256
    package var signatureDigest = DigestAlgorithm.sha256
    package var extensions: [UInt8] = []

    package init() {}

    /// A day on which the certificates are valid.
    package static let today = CVDate(year: 2026, month: 11, day: 21) ?? .earliest

    /// The recipe of a document verifier certificate.
    package static var documentVerifier: CertificateRecipe {
        var recipe = CertificateRecipe()
        (recipe.authority, recipe.holder) = ("DETESTeIDBG00001", "DEDVBADGED00001")
        (recipe.signer, recipe.subject) = ("cvca", "dv")
        recipe.chat = CHAT(.documentVerifierOfficial, AccessRights(rawValue: 0x3F_FFFF_FFFF))
        return recipe
    }

    /// The recipe of a root with the key of the root of Tests/PKI.
    package static var root: CertificateRecipe {
        var recipe = CertificateRecipe()
        (recipe.authority, recipe.holder) = ("DETESTeIDBG00001", "DETESTeIDBG00001")
        (recipe.signer, recipe.subject, recipe.writesParameters) = ("cvca", "cvca", true)
        recipe.chat = CHAT(.cvca, AccessRights(rawValue: 0x3F_FFFF_FFFF))
        return recipe
    }

    package func changed(_ change: (inout CertificateRecipe) -> Void) -> CertificateRecipe {
        var copy = self
        change(&copy)
        return copy
    }

    package func certificate() throws -> CVCertificate {
        let holderKey = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("\(subject).p8")))
        let key = CVPublicKey(
            identifier: TerminalAuthentication.protocolID(digest),
            holderKey.publicKey,
            writesParameters: writesParameters
        )
        let body = BERTLV(
            0x7F4E,
            [
                BERTLV(0x5F29, [0]), BERTLV(0x42, Array(authority.utf8)), try key.object,
                BERTLV(0x5F20, Array(holder.utf8)), chat.object, BERTLV(0x5F25, effective), BERTLV(0x5F24, expiration),
            ] + (extensions.isEmpty ? [] : [BERTLV(0x65, extensions)])
        )
        let signerKey = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("\(signer).p8")))
        let signature = try ECDSA.sign(body.encoded, with: signerKey, digest: signatureDigest)
        return try CVCertificate(BERTLV(0x7F21, [body, BERTLV(0x5F37, signature)]).encoded)
    }
}

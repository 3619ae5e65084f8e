// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import ISO7816
import Secrets
import TestSupport

/// A CV certificate as a test wants it, signed with the keys of the test PKI.
struct CertificateRecipe: Sendable {
    var authority = "DEDVBADGED00001"
    var holder = "DEATBADGED00001"
    /// Stem of the issuer's key file.
    var signer = "dv"
    /// Stem of the holder's key file.
    var subject = "terminal"
    var chat = CHAT(.terminal, AccessRights(rawValue: 0x3F_FFFF_FFFF))
    var effective: [UInt8] = [2, 4, 0, 1, 0, 1]
    var expiration: [UInt8] = [3, 9, 1, 2, 3, 1]
    var writesParameters = false
    var digest = DigestAlgorithm.sha256
    var signatureDigest = DigestAlgorithm.sha256
    var extensions: [UInt8] = []

    /// Of a document verifier.
    static var documentVerifier: CertificateRecipe {
        var recipe = CertificateRecipe()
        (recipe.authority, recipe.holder) = ("DETESTeIDBG00001", "DEDVBADGED00001")
        (recipe.signer, recipe.subject) = ("cvca", "dv")
        recipe.chat = CHAT(.documentVerifierOfficial, AccessRights(rawValue: 0x3F_FFFF_FFFF))
        return recipe
    }

    func changed(_ change: (inout CertificateRecipe) -> Void) -> CertificateRecipe {
        var copy = self
        change(&copy)
        return copy
    }

    func certificate() throws -> CVCertificate {
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

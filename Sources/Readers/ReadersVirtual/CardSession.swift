// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID

/// What a card knows of its terminal; it ends with the secure channel.
struct CardSession {
    /// The password that opened the channel.
    var password: PasswordID?
    /// What the terminal asked to be allowed, confirmed by the password. TR-03110-2 3.2.
    var chat: CHAT?
    /// Comp() of the card's ephemeral key in PACE.
    var idPICC: [UInt8] = []

    /// Whose key checks the next certificate.
    var issuer: Authority?
    /// The certificate that was accepted last.
    var imported: Authority?
    var challenge: [UInt8]?
    /// Set by MSE, waiting for the signature.
    var announced: Announcement?
    /// After terminal authentication.
    var terminal: Terminal?
    /// After chip authentication, in the channel that it opened.
    var isChipAuthenticated = false
    var chosen: Chosen?

    /// MSE:Set AT for terminal authentication.
    struct Announcement {
        var terminal: Authority
        /// Comp() of the terminal's ephemeral key.
        var ephemeralKey: [UInt8]
        var auxiliaryData: AuxiliaryData?
    }

    /// A terminal that has proved its key.
    struct Terminal {
        var authority: Authority
        /// What it asked for and every certificate of its chain allows.
        var rights: AccessRights
        var ephemeralKey: [UInt8]
        var auxiliaryData: AuxiliaryData?
    }

    /// MSE:Set AT for chip authentication or restricted identification.
    enum Chosen {
        case chipAuthentication(CardKey, AES)
        case restrictedIdentification(CardKey, DigestAlgorithm)
    }

    /// May the terminal use this right? Only after both authentications. TR-03110-2 2.1.
    func allows(_ right: AccessRight) -> Bool {
        isChipAuthenticated && terminal?.rights.contains(right) == true
    }
}

/// The holder of an accepted CV certificate.
struct Authority {
    let certificate: CVCertificate
    let key: ECPublicKey
    /// Of the signatures that the holder makes.
    let digest: DigestAlgorithm
    /// Rights that the whole chain down to here has.
    let rights: AccessRights
    /// Of its issuer's signatures: the hash function of the sector public keys in the extensions. TR-03110-3 C.3.2.
    let issuerDigest: DigestAlgorithm
    /// May the card believe the date of this certificate? TR-03110-3 2.5.
    let isAccurate: Bool

    /// A trust point: self-signed, with its domain parameters.
    init(trustPoint bytes: [UInt8]) throws(CVCertificateError) {
        certificate = try CVCertificate(bytes)
        guard certificate.chat.role == .cvca, certificate.authorityReference == certificate.holderReference,
            let digest = certificate.digest
        else { throw .malformed("not a self-signed certificate of a CVCA") }
        key = try certificate.publicKey.key()
        guard try certificate.isSigned(by: key, digest) else { throw .malformed("signature is wrong") }
        (self.digest, issuerDigest) = (digest, digest)
        rights = certificate.chat.rights
        isAccurate = true
    }

    /// The holder of a certificate whose signature by `issuer` has been checked.
    init(_ certificate: CVCertificate, issuedBy issuer: Authority) throws(CVCertificateError) {
        guard let digest = certificate.digest else { throw .unsupported }
        self.certificate = certificate
        key = try certificate.publicKey.key(inheriting: issuer.key.curve)
        (self.digest, issuerDigest) = (digest, issuer.digest)
        rights = issuer.rights.intersection(certificate.chat.rights)
        isAccurate = issuer.isAccurate && certificate.chat.role != .documentVerifierNonOfficial
    }
}

/// One private key of the card.
final class CardKey: Sendable {
    let id: Int
    let key: ECPrivateKey

    init(id: Int, key: consuming ECPrivateKey) {
        self.id = id
        self.key = key
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import Text

/// The state of authentication with one terminal. It ends with the secure channel.
struct CardSession {
    /// The password that opened the channel.
    var password: PasswordID?
    /// The rights that the terminal requested in PACE. TR-03110-2 3.2.
    var chat: CHAT?
    /// Comp() of the card's ephemeral key in PACE.
    var idPICC: [UInt8] = []

    /// The authority whose key verifies the next certificate.
    var issuer: CertificateHolder?
    /// The holder of the certificate that was accepted last.
    var imported: CertificateHolder?
    var challenge: [UInt8]?
    /// From MSE:Set AT, until the signature of the terminal comes.
    var announced: Announcement?
    /// Set after terminal authentication.
    var terminal: Terminal?
    /// True in the channel that chip authentication has opened.
    var isChipAuthenticated = false
    var chosen: Chosen?

    /// The data of MSE:Set AT for terminal authentication.
    struct Announcement {
        var terminal: CertificateHolder
        /// Comp() of the terminal's ephemeral key.
        var ephemeralKey: [UInt8]
        var auxiliaryData: AuxiliaryData?
    }

    /// A terminal that has proved that it has its private key.
    struct Terminal {
        var authority: CertificateHolder
        /// The requested rights that every certificate of its chain grants.
        var rights: AccessRights
        var ephemeralKey: [UInt8]
        var auxiliaryData: AuxiliaryData?
    }

    /// The selection by MSE:Set AT for chip authentication or restricted identification.
    enum Chosen {
        case chipAuthentication(CardKey, AES)
        case restrictedIdentification(CardKey, DigestAlgorithm)
    }

    /// Whether the terminal may use this right: only after terminal and chip authentication. TR-03110-2 2.1.
    func allows(_ right: AccessRight) -> Bool {
        isChipAuthenticated && terminal?.rights.contains(right) == true
    }
}

/// The holder of an accepted CV certificate.
struct CertificateHolder {
    let certificate: CVCertificate
    let key: ECPublicKey
    /// The hash function of the signatures of the holder.
    let digest: DigestAlgorithm
    /// The rights that every certificate of the chain grants.
    let rights: AccessRights
    /// The hash function of the issuer's signatures, also for the sector public keys in the extensions.
    /// TR-03110-3 C.3.2.
    let issuerDigest: DigestAlgorithm
    /// Whether the card may take its date from this certificate. TR-03110-3 2.5.
    let isAccurate: Bool

    /// Makes a trust point from a self-signed certificate with domain parameters.
    init(trustPoint bytes: [UInt8]) throws(Malformed) {
        certificate = try CVCertificate(bytes)
        guard certificate.chat.role == .cvca, certificate.authorityReference == certificate.holderReference,
            let digest = certificate.digest
        else { throw Malformed("not a self-signed certificate of a CVCA") }
        key = try certificate.publicKey.key()
        guard try certificate.isSigned(by: key, digest) else { throw Malformed("signature is wrong") }
        self.digest = digest
        issuerDigest = digest
        rights = certificate.chat.rights
        isAccurate = true
    }

    /// Makes the holder of a certificate whose signature by `issuer` is verified.
    init(_ certificate: CVCertificate, issuedBy issuer: CertificateHolder) throws(Malformed) {
        guard let digest = certificate.digest else { throw .unsupported }
        self.certificate = certificate
        key = try certificate.publicKey.key(inheriting: issuer.key.curve)
        self.digest = digest
        issuerDigest = issuer.digest
        rights = issuer.rights.intersection(certificate.chat.rights)
        isAccurate = issuer.isAccurate && certificate.chat.role != .documentVerifierNonOfficial
    }
}

/// One private key of the card.
final class CardKey: Sendable {
    let key: ECPrivateKey

    init(_ key: consuming ECPrivateKey) { self.key = key }
}

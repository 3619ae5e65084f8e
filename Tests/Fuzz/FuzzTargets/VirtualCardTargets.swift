// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import ISO7816
import ReadersVirtual
import VirtualEID

@Sendable func cvCertificate(_ input: UnsafeRawBufferPointer) {
    guard let certificate = try? CVCertificate(Array(input)) else { return }
    guard let again = try? CVCertificate(certificate.encoded) else {
        return require(false, "a written certificate cannot be read")
    }
    require(again == certificate, "a certificate changes when it is written and read")
    require((7...16).contains(certificate.holderReference.count), "a reference of a wrong length")
    _ = certificate.descriptionHash
    _ = certificate.sectorHashes
    if let key = try? certificate.publicKey.key(inheriting: .brainpoolP256r1) {
        _ = try? certificate.isSigned(by: key, certificate.digest ?? .sha256)
    }
}

@Sendable func cardSecurity(_ input: UnsafeRawBufferPointer) {
    guard let security = try? CardSecurity(Array(input)) else { return }
    require(security.content.count < input.count, "infos longer than their file")
}

private let card = try? VirtualCard()

/// Commands to the virtual card, each after one byte of length. Every answer has a status word.
@Sendable func virtualCard(_ input: UnsafeRawBufferPointer) {
    guard let card else { return require(false, "no default card") }
    runCommands(input, card) {
        guard let state = await card.eidState else { return require(false, "no eID card") }
        require(state.pukCounter == 10 && !state.isDeactivated, "changed without a password")
    }
}

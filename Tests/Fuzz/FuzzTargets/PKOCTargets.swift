// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import ReadersVirtual
import Taps
import VirtualTaps

/// The certificate of a card. The site has no issuer, so the issuer of each input is unknown.
@Sendable func pkocCertificate(_ input: UnsafeRawBufferPointer) {
    guard let certificate = try? PKOCCertificate(Array(input)), let day = CVDate(year: 2026, month: 11, day: 22) else {
        return
    }
    require(certificate.body.count <= input.count, "a body longer than the certificate")
    require(certificate.problem(at: PKOCSite(), on: day) == .unknownIssuer, "a certificate without an issuer counts")
}

/// A reading. The input is the answers of the card, each after two bytes of length.
@Sendable func pkocDialogue(_ input: UnsafeRawBufferPointer) {
    guard let day = CVDate(year: 2026, month: 11, day: 22) else { return }
    let isValidated = input.count % 2 == 1
    runDialogue(input) { channel in
        if let reader = try? await PKOCReader.select(on: channel) {
            // The seeds were made with these bytes, so that they reach the end.
            let reading = try? await reader.read(for: PKOCSite(isValidated: isValidated), on: day) { count in
                count == 16
                    ? [
                        0x94, 0x0A, 0x19, 0x1A, 0x9D, 0xD3, 0x25, 0x1E, 0xC2, 0x8A, 0xE6, 0x25, 0x55, 0x6E, 0xA4, 0x91,
                    ] : [UInt8](repeating: 0, count: count)
            }
            if case .credential(let credential)? = reading {
                require(credential.edition == .one, "a certificate without an issuer, or a repeated answer, counts")
            }
        }
        require(await channel.sent.count < 1000, "the dialogue does not end")
    }
}

/// Commands to a virtual card, each after one byte of length. Every answer has a status word.
@Sendable func virtualPKOC(_ input: UnsafeRawBufferPointer) {
    var description = VirtualPKOCDescription()
    if let first = input.first, first & 1 == 1 { description.certificate = [0x7F, 0x21, 0x00] }
    guard let card = try? description.makeCard() else { return require(false, "no card") }
    runCommands(UnsafeRawBufferPointer(rebasing: input.dropFirst()), card)
}

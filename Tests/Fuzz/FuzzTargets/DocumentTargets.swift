// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import ReadersVirtual
import Text
import VirtualDocument

@Sendable func machineReadableZone(_ input: UnsafeRawBufferPointer) {
    if let number = MachineReadableZone.number(typed: input) {
        require(MachineReadableZone.number(typed: number) == number, "a number changes when it is typed again")
    }
    if let date = MachineReadableZone.date(typed: input) {
        require(MachineReadableZone.date(typed: date) == date, "a date changes when it is typed again")
    }
    if let scanned = try? MachineReadableZone(scanned: input) {
        require((try? MachineReadableZone(scanned: scanned.text.utf8)) == scanned, "a zone changes when it is scanned")
    }
    guard let zone = try? MachineReadableZone(input) else { return }
    require((try? MachineReadableZone(zone.text.utf8)) == zone, "a zone changes when it is written and read")
    require(zone.information.count >= 24, "a password that is too short")
}

/// The data groups, EF.COM and the content of EF.SOD: each parser gets the same bytes.
@Sendable func documentGroups(_ input: UnsafeRawBufferPointer) {
    let file = Array(input)
    _ = MachineReadableZone(group: file)
    require(LengthInfo(file).maximumAnswer.map { $0 >= 0 } ?? true, "a negative length")
    _ = HistoricalBytes(answerToReset: file)
    _ = try? CommonData(file)
    _ = try? SecurityObject(file)
    if let person = try? PersonalDetails(file) {
        require(person.otherNames.count <= 128, "more names than objects")
    }
    _ = try? IssuanceDetails(file)
    if let persons = try? PersonsToNotify(file).persons { require(persons.count <= 17, "too many persons") }
    if let images = try? SignatureImages(file).images {
        require(images.allSatisfy { $0.data.count <= file.count }, "a picture longer than its file")
    }
}

@Sendable func documentFaces(_ input: UnsafeRawBufferPointer) {
    guard let images = try? FaceImages(Array(input)).images else { return }
    require(!images.isEmpty && images.count <= 16, "a wrong number of pictures")
    require(images.allSatisfy { $0.data.count <= input.count }, "a picture longer than its file")
}

/// EF.SOD, EF.CardSecurity and other signed files.
@Sendable func documentSignature(_ input: UnsafeRawBufferPointer) {
    let file = Array(input)
    if let (object, count) = DefiniteLengths.first(of: file) {
        require(count <= file.count && object.count <= file.count + 64, "an object longer than its bytes")
        require(DefiniteLengths.shortest(object).count <= object.count, "a shortest form that is longer")
        var ending = IndefiniteLength()
        require(file[1] != 0x80 || ending.least(of: file) == count, "two ends of one object")
    }
    if let signed = try? SecurityObject.signedData(file) {
        _ = try? signed.proofs(of: .securityObject)
    }
    if let signed = try? SignedData(file) {
        _ = try? signed.proofs(of: .cardSecurity)
        _ = try? DefectList(content: signed.content)
    }
}

@Sendable func documentCertificate(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let certificate = try? DocumentCertificate(bytes) {
        require(certificate.bytes == bytes, "a certificate without its bytes")
        _ = certificate.check(signedBy: certificate)
        var anchors = DocumentAnchors()
        try? anchors.trust(certificate)
        let check = anchors.judge(
            SignedData.Claim(certificate: certificate),
            as: .securityObject,
            countries: nil,
            at: 1_795_608_000
        )
        require(check.result != .passed, "a signer of no country")
    }
    if let key = try? PublicKeyInfo(bytes), case .elliptic(let point) = key {
        require((try? ECPublicKey(point.uncompressed, on: point.curve)) == point, "a point that is not on its curve")
    }
    _ = try? RevocationList(bytes)
}

@Sendable func masterList(_ input: UnsafeRawBufferPointer) {
    guard let list = try? MasterList(Array(input)) else { return }
    require(Set(list.certificates).count == list.certificates.count, "a certificate twice")
}

@Sendable func directoryExport(_ input: UnsafeRawBufferPointer) {
    var anchors = DocumentAnchors()
    _ = anchors.addFiles([("file", Array(input))], at: 1_795_608_000)
    guard let values = DirectoryExport.values(of: Array(input)) else { return }
    let total = values.reduce(0) { $0 + $1.content.count }
    require(total <= input.count, "values longer than the text")
}

/// A whole reading of a document. The input is the answers of the chip, each after two bytes of length.
@Sendable func documentDialogue(_ input: UnsafeRawBufferPointer) {
    runDialogue(input) { channel in
        let key = AccessKey(information: Secret(Array("L898902C3674081223504152".utf8)))
        let chip = DocumentChip(channel: channel, key: key)
        var reading = DocumentReading(groups: [1, 2, 11])
        try? await reading.run(chip, key: key, anchors: DocumentAnchors(), at: 1_795_608_000)
        require(reading.checks.authority.result != .passed, "trusted without an authority")
        require(reading.files.values.reduce(0) { $0 + $1.count } <= 1 << 20, "more bytes than answers")
    }
}

private let document: VirtualCard? = {
    var description = VirtualDocumentDescription()
    description.information = Array("L898902C3674081223504152".utf8)
    description.can = Array("654321".utf8)
    description.hasBAC = true
    description.pace = [
        PACEParameters(curve: .brainpoolP256r1, cipher: .aes128),
        PACEParameters(mapping: .integrated, domain: .curve(.brainpoolP256r1), cipher: .aes128),
    ]
    description.files = ["CardAccess": [0x31, 0x00], "DG1": [0x61, 0x00], "SOD": [0x77, 0x00]]
    return try? description.makeCard()
}()

/// Commands to the virtual document, each after one byte of length. Every answer has a status word.
@Sendable func virtualDocument(_ input: UnsafeRawBufferPointer) {
    guard let document else { return require(false, "the virtual document cannot be made") }
    runCommands(input, document)
}

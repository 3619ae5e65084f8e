// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import HDWallet
package import ISO7816
import Text

/// Replaces what could name a card or its holder in a recording: numbers of cards, identifiers of applications on one
/// card, and keys. The same value always becomes the same other value, of the same length and shape. A key becomes another
/// key of its curve: whoever checks keys takes it.
///
/// What is known to be the same on all cards of a kind stays; everything else of four bytes or more is replaced.
package struct Pseudonyms {
    /// New for each recording: without it, a number of four bytes could be found by trying all.
    private let key: [UInt8]

    private static let shortest = 4
    private static let deepest = 8

    package init() throws(CryptoError) { key = try Random.bytes(32) }

    /// The same commands with other answers.
    package func replacing(in exchanges: [CardRecording.Exchange]) -> [CardRecording.Exchange] {
        var result = exchanges
        var index = 0
        while index < exchanges.count {
            let end = Self.end(ofFileAt: index, exchanges)
            var content = exchanges[index..<end].flatMap { $0.answer.dropLast(2) }
            replace(&content, of: exchanges[index].command)
            var start = 0
            for place in index..<end {
                let count = max(0, exchanges[place].answer.count - 2)
                result[place].answer.replaceSubrange(0..<count, with: content[start..<start + count])
                start += count
            }
            index = end
        }
        return result
    }

    /// The end of the commands that read one file from its beginning, or of one answer in parts.
    private static func end(ofFileAt index: Int, _ exchanges: [CardRecording.Exchange]) -> Int {
        guard let first = CommandAPDU(bytes: exchanges[index].command) else { return index + 1 }
        var end = index + 1
        var count = exchanges[index].answer.count - 2
        while end < exchanges.count, let next = CommandAPDU(bytes: exchanges[end].command) {
            let offset = Int(next.p1) << 8 | Int(next.p2)
            let isNext = next.ins == 0xC0 || first.ins == 0xB0 && next.ins == 0xB0 && offset == count && count > 0
            guard isNext else { break }
            count += exchanges[end].answer.count - 2
            end += 1
        }
        return end
    }

    private func replace(_ content: inout [UInt8], of command: [UInt8]) {
        let all = 0..<content.count
        guard let asked = CommandAPDU(bytes: command), content.count >= Self.shortest else { return }
        switch (asked.cla, asked.ins, asked.p1) {
        case (0xFF, 0xCA, 0x00): replaceNumber(&content, all, keeping: 1)
        // The historical bytes are the same on all cards of a kind.
        case (0xFF, 0xCA, _): return
        // EF.CardAccess and EF.COM name protocols and files.
        case (_, 0xB0, _) where content[0] == 0x31 || content[0] == 0x60: return
        // The first bytes of a file of the holder are a tag and a length.
        case (_, 0xB0, _) where content.count == Self.shortest && asked.le == Self.shortest: return
        default: replace(&content, all, depth: 0)
        }
    }

    /// Replaces the values of the objects of a range, and what is no object.
    private func replace(_ content: inout [UInt8], _ range: Range<Int>, depth: Int) {
        var reader = BERReader(content[range])
        var end = range.lowerBound
        while let object = try? reader.next() {
            end = range.upperBound - reader.remainder.count
            let value = end - object.value.count..<end
            // A Keycard 4.0 counts the bytes of its template one short.
            if depth == 0, object.isConstructed, reader.remainder.count == 1 { end = range.upperBound }
            if object.isConstructed, depth < Self.deepest {
                replace(&content, value.lowerBound..<end, depth: depth + 1)
            } else if !Self.isKept(object) {
                // The first five bytes of a card's number are country and issuer; before its serial number, an OpenPGP card
                // has application and manufacturer.
                let keeping = Self.isOpenPGP(object) ? 10 : object.tag == 0x5A ? 5 : 0
                replaceNumber(&content, value, keeping: keeping)
            }
        }
        replaceNumber(&content, end..<range.upperBound, keeping: 0)
    }

    /// Identifiers of applications and protocols, labels, paths, lists of tags.
    private static let kept: Set<UInt32> = [0x06, 0x4F, 0x50, 0x51, 0x5C, 0x84]
    private static let constants = ["U2F_V2", "FIDO_2_0"].map { Array($0.utf8) }

    private static func isKept(_ object: BERTLV) -> Bool {
        object.value.count < shortest || kept.contains(object.tag) && !isOpenPGP(object)
    }

    /// Whether an object is the identifier of an OpenPGP card, which has its serial number.
    private static func isOpenPGP(_ object: BERTLV) -> Bool {
        (object.tag == 0x4F || object.tag == 0x84) && object.value.count == 16
            && object.value.starts(with: [0xD2, 0x76, 0x00, 0x01, 0x24, 0x01])
    }

    /// Replaces the bytes of a range, except its first ones.
    private func replaceNumber(_ content: inout [UInt8], _ range: Range<Int>, keeping: Int) {
        let value = Array(content[range])
        guard value.count >= Self.shortest, !Self.constants.contains(value), Set(value).count > 1 else { return }
        if keeping == 0, let key = replacementKey(value) {
            content.replaceSubrange(range, with: key)
            return
        }
        // An uncompressed point begins with 04, also on a curve that is not known here.
        let isPoint = value[0] == 0x04 && value.count >= 49 && value.count % 2 == 1
        let first = min(value.count, isPoint ? 1 : keeping)
        let rest = Array(value[first...])
        content.replaceSubrange(range.lowerBound + first..<range.upperBound, with: replacement(rest))
    }

    /// Another key, or the certificate of another Keycard; nil if a value is none. The x of a compressed point may be on
    /// several curves; then the first one counts, beginning with that of the wallets.
    private func replacementKey(_ value: [UInt8]) -> [UInt8]? {
        if let certificate = replacementCertificate(value) { return certificate }
        let isCompressed = value[0] != 0x04
        if let key = try? PublicKey(value), let new = privateKey(for: key) {
            return isCompressed ? new.publicKey.compressed : new.publicKey.uncompressed
        }
        for curve in Curve.allCases where value.count == 1 + (isCompressed ? 1 : 2) * curve.fieldLength {
            let key =
                isCompressed
                ? try? ECPublicKey(compressedPoint: value, on: curve) : try? ECPublicKey(value, on: curve)
            guard let key, let new = publicKey(for: key) else { continue }
            return isCompressed ? new.compressedPoint : new.uncompressed
        }
        return nil
    }

    /// The key in place of a key of secp256k1, the curve of the wallets, in both of its forms.
    private func privateKey(for key: PublicKey) -> PrivateKey? {
        try? PrivateKey(Secret(stream(for: key.compressed).prefix(PrivateKey.count)))
    }

    private func publicKey(for key: ECPublicKey) -> ECPublicKey? {
        guard let group = try? key.curve.group else { return nil }
        // Without its first byte, a number is below the order of each of these curves.
        var number = Array(stream(for: key.compressedPoint).prefix(key.curve.scalarLength))
        number[0] = 0
        return try? ECPrivateKey(Secret(number), on: group).publicKey
    }

    /// What another authority has signed for another card: a compressed key, the signature of its hash, and the number that
    /// finds the key of the authority.
    private func replacementCertificate(_ value: [UInt8]) -> [UInt8]? {
        let signatureCount = 64
        guard value.count == PublicKey.compressedCount + signatureCount + 1, let id = value.last,
            let card = try? PublicKey(Array(value.prefix(PublicKey.compressedCount))),
            let signature = try? Signature(compact: Array(value.dropFirst(PublicKey.compressedCount).dropLast())),
            let hash = try? DigestAlgorithm.sha256.hash(card.compressed),
            let authority = try? signature.recover(id: id, for: hash),
            let newCard = privateKey(for: card)?.publicKey.compressed, let newAuthority = privateKey(for: authority),
            let newHash = try? DigestAlgorithm.sha256.hash(newCard), let signed = try? newAuthority.sign(newHash),
            let newID = try? signed.recoveryID(for: newHash, by: newAuthority.publicKey)
        else { return nil }
        return newCard + signed.compact + [newID]
    }

    /// Another value of the same form: decimal digits in halves of bytes, digits and letters, or any bytes.
    private func replacement(_ value: [UInt8]) -> [UInt8] {
        let random = stream(for: value)
        let isDecimal = value.allSatisfy { ($0 >> 4 < 10 || $0 >> 4 == 15) && ($0 & 15 < 10 || $0 & 15 == 15) }
        let isText = value.allSatisfy { (0x20...0x7E).contains($0) }
        return zip(value, random).map { old, new -> UInt8 in
            if isText { return Self.character(old, new) }
            guard isDecimal else { return new }
            return Self.digit(old >> 4, new >> 4) << 4 | Self.digit(old & 15, new & 15)
        }
    }

    private static func digit(_ old: UInt8, _ new: UInt8) -> UInt8 { old < 10 ? new % 10 : old }

    private static func character(_ old: UInt8, _ new: UInt8) -> UInt8 {
        switch old {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(ascii: "0") + new % 10
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt8(ascii: "A") + new % 26
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt8(ascii: "a") + new % 26
        default: old
        }
    }

    /// As many bytes as the value has, which depend on all of it.
    private func stream(for value: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        guard let seed = try? DigestAlgorithm.sha256.hash(key + value) else {
            return [UInt8](repeating: 0, count: value.count)
        }
        var counter: UInt32 = 0
        while bytes.count < value.count {
            let block = withUnsafeBytes(of: counter.bigEndian, Array.init)
            guard let part = try? DigestAlgorithm.sha256.hash(key + seed + block) else { break }
            bytes += part
            counter += 1
        }
        bytes += [UInt8](repeating: 0, count: max(0, value.count - bytes.count))
        return bytes
    }
}

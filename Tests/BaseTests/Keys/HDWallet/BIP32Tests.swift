// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Foundation
import HDWallet
import TestSupport
import Testing
import Text

@Suite("Keys of BIP-32")
struct BIP32Tests {
    struct File: Decodable {
        struct Vector: Decodable {
            let seed: String
            let path: String
            let key: String
            let chainCode: String
        }
        let vectors: [Vector]
    }

    @Test("the test vectors of BIP-32 hold")
    func published() throws {
        let all = try vectors("bip32.json", as: File.self).vectors
        #expect(all.count == 14)
        for vector in all {
            let master = try ExtendedPrivateKey(seed: Secret(hex(vector.seed)))
            let key = try master.derive(try #require(DerivationPath(vector.path)))
            #expect(bytes(key.key.scalar) == hex(vector.key), "\(vector.path)")
            #expect(bytes(key.chainCode) == hex(vector.chainCode), "\(vector.path)")
        }
    }

    @Test("the first Ethereum address of the words abandon ... about is the known one")
    func ethereumAddress() throws {
        let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"
        let master = try ExtendedPrivateKey(seed: try Mnemonic(words: Secret(words.utf8)).seed())
        let key = try master.derive(.firstEthereumAddress).key.publicKey
        #expect(EthereumAddress(key).description == "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")
        #expect(DerivationPath.firstEthereumAddress.description == "m/44'/60'/0'/0/0")
    }

    @Test(
        "a path is read and written",
        arguments: [
            ("m", "m", [] as [UInt32]),
            ("m/0", "m/0", [0]),
            (
                "m/44'/60h/0H/0/2147483647", "m/44'/60'/0'/0/2147483647",
                [0x8000_002C, 0x8000_003C, 0x8000_0000, 0, 0x7FFF_FFFF]
            ),
            ("m/1/2/3/4/5/6/7/8/9/10", "m/1/2/3/4/5/6/7/8/9/10", Array(1...10)),
        ]
    )
    func path(text: String, written: String, indexes: [UInt32]) throws {
        let path = try #require(DerivationPath(text))
        #expect(path.indexes == indexes)
        #expect(path.description == written)
        #expect(path.bytes.count == 4 * indexes.count)
    }

    @Test(
        "an invalid path is refused",
        arguments: [
            "", "m/", "/0", "0/1", "m//1", "m/-1", "m/+1", "m/1''", "m/'", "m/2147483648", "m/99999999999", "M/0",
            "m/0/",
            "m/1/2/3/4/5/6/7/8/9/10/11", "m/0x1", "m/1 ", "m/١",
        ]
    )
    func noPath(text: String) { #expect(DerivationPath(text) == nil) }

    @Test("a seed has 16 to 64 bytes", arguments: [0, 15, 65])
    func seedLength(count: Int) {
        #expect(throws: CryptoError.invalidLength) {
            _ = try ExtendedPrivateKey(seed: Secret([UInt8](repeating: 1, count: count)))
        }
    }

    @Test(
        "the examples of EIP-55 are written with their upper-case letters",
        arguments: [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ]
    )
    func checksum(text: String) {
        #expect(EthereumAddress(bytes: hex(String(text.dropFirst(2))))?.description == text)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import HDWallet
import Keycard
import Server
import Text

/// What a workflow signs: the digest, and what a person can read of it.
struct Signing: Sendable, Equatable {
    enum Content: Sendable, Equatable {
        /// EIP-191, version 0x45.
        case message(String)
        /// EIP-712.
        case typedData(TypedData)
        /// EIP-191 of any version: bytes that begin with 0x19.
        case preimage([UInt8])
    }

    let content: Content

    /// The maximum number of bytes of `message` and of `preimage`.
    static let maximumCount = 4096

    /// What is signed with the key.
    var digest: [UInt8] {
        switch content {
        case .message(let text): EthereumMessage.digest(text)
        case .typedData(let data): data.digest
        case .preimage(let bytes): Keccak256.hash(bytes)
        }
    }

    /// Reads `message`, `typedData` or `preimage` of RUN_WALLET, of which there must be one.
    static func read(_ arguments: Arguments) throws(Failure) -> Signing {
        let count = [arguments.has("message"), arguments.has("typedData"), arguments.has("preimage")]
            .count { $0 }
        guard count == 1 else {
            throw Failure(.insufficientData, "One of typedData, message and preimage must say what to sign")
        }
        if let text = try arguments.optionalText("message", 1...maximumCount) {
            return Signing(content: .message(text))
        }
        let preimage = "0x and hexadecimal digits of 3 to \(maximumCount) bytes, the first of them 19"
        if let bytes = try arguments.optional(
            "preimage",
            preimage,
            { value -> [UInt8]? in
                guard let digits = value.string, digits.hasPrefix("0x"),
                    let bytes = Hex.decode(digits.dropFirst(2), limit: maximumCount), bytes.count >= 3, bytes[0] == 0x19
                else { return nil }
                return bytes
            }
        ) {
            return Signing(content: .preimage(bytes))
        }
        let json = try arguments.required("typedData", "an object") { $0.members == nil ? nil : $0 }
        return try translating(
            { (error: Malformed) in Failure(.invalidDataDefinition, "typedData cannot be signed: \(error.text)") },
            Signing(content: .typedData(try TypedData(json)))
        )
    }

    /// The names of the members of a payload that are signed.
    func signedMembers(of payload: QRPayload) -> [String] {
        let members = payload.entity([]).members
        return switch content {
        // The app has the payload itself signed.
        case .message(let text):
            JSON.object(QRPayload(text)?.entity([]).members ?? []).bytes == JSON.object(members).bytes
                ? members.map(\.key) : []
        case .typedData(let data): Self.signedMembers(of: payload, in: data)
        case .preimage: []
        }
    }

    private static func signedMembers(of payload: QRPayload, in data: TypedData) -> [String] {
        let claims = payload.claims
        var signed = zip(claims, data.signs(claims.map(\.claim))).filter(\.1).map(\.0.member)
        // An amount belongs to its receiver.
        if !signed.contains(payload.addressesMember) { signed.removeAll { $0 == "amounts" } }
        return signed
    }

    func write(to object: inout JSONWriter) {
        switch content {
        case .message(let text):
            object.member("standard", "EIP-191")
            object.member("message", text)
        case .typedData(let data):
            object.member("standard", "EIP-712")
            object.member("typedData", data.json)
        case .preimage(let bytes):
            object.member("standard", "EIP-191")
            object.member("preimage", "0x" + Hex.encode(bytes))
        }
        object.member("digest", Hex.encode(digest))
    }

    /// Signs with the key m/44'/60'/0'/0/0 of an open card.
    /// - Returns: `signer` and `signature`.
    @Loop func sign(_ dialogue: KeycardDialogue, _ card: HeldKeycard) async throws(Failure) -> [JSON.Member] {
        let path = DerivationPath.firstEthereumAddress
        let digest = digest
        let key = try await dialogue.step("EXPORT KEY", card, await card.applet.exportPublicKey(path))
        let signature: KeycardSignature
        do throws(Failure) {
            signature = try await dialogue.step(
                "SIGN",
                card,
                await card.applet.sign(digest, with: path, expecting: key)
            )
        } catch {
            guard error.code != .cardLost, error.code != .cancelled else { throw error }
            var failure = error
            failure.code = Failure.Code(WalletCode.signatureFailed.rawValue)
            throw failure
        }
        let bytes = signature.signature.compact + [27 + signature.recoveryID]
        return [
            JSON.Member("signer", .string(EthereumAddress(key).description)),
            JSON.Member("signature", .string("0x" + Hex.encode(bytes))),
        ]
    }
}

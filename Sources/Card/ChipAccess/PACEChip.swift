// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import ISO7816
package import Text

extension PACE {
    /// The chip's side of one PACE run. `answer` takes every data field of GENERAL AUTHENTICATE. After an error the run is
    /// over.
    package struct Chip: ~Copyable, Sendable {
        /// The command that is expected next.
        package enum Step: Sendable { case nonce, mapping, agreement, token, established, over }

        package private(set) var step = Step.nonce

        private let parameters: PACEParameters
        private let passwordKey: Secret
        private let authorities: CertificationAuthorities
        private var fixedKeys: FixedKeys?
        private var nonce: Secret?
        /// The static key of the chip authentication mapping.
        private let staticKey: ECPrivateKey?
        /// That key's proof, which is sent with the token.
        private var proof: Secret?
        private var agreementKey: AgreementPrivateKey?
        private var keys: SessionKeys?
        private var terminalKey: AgreementPublicKey?
        private var ownKey: AgreementPublicKey?

        /// - Parameters:
        ///   - parameters: the variant that MSE:Set AT selected.
        ///   - passwordKey: from `PACE.passwordKey`.
        ///   - certificationAuthorities: the names of the trust points, sent with the token; only when the terminal sent
        ///     a CHAT. TR-03110-3 B.1.
        ///   - fixedKeys: for worked examples only; nil for random keys.
        ///   - nonce: for worked examples only, whole blocks; nil for a random one.
        ///   - staticKey: the key that the chip authentication mapping proves.
        package init(
            _ parameters: PACEParameters,
            passwordKey: consuming Secret,
            certificationAuthorities: CertificationAuthorities = CertificationAuthorities(),
            fixedKeys: consuming FixedKeys? = nil,
            nonce: consuming Secret? = nil,
            staticKey: consuming ECPrivateKey? = nil
        ) {
            self.parameters = parameters
            self.passwordKey = passwordKey
            authorities = certificationAuthorities
            self.fixedKeys = fixedKeys
            self.nonce = nonce
            self.staticKey = staticKey
        }

        /// Takes the data field of the next command and returns that of its answer.
        /// - Throws: `.wrongToken` when the password of the terminal is wrong; the chip then counts a failed try.
        package mutating func answer(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            let due = step
            step = .over
            let answer: [UInt8]
            switch due {
            case .nonce:
                answer = try sendNonce(data)
                step = .mapping
            case .mapping:
                answer = try map(data)
                step = .agreement
            case .agreement:
                answer = try agree(data)
                step = .token
            case .token:
                answer = try authenticate(data)
                step = .established
            case .established, .over:
                throw .outOfOrder
            }
            return answer
        }

        /// Returns the result after the fourth command. The result is nil before that, after an error, and on a second
        /// call.
        package mutating func takeOutcome() -> Outcome? {
            guard step == .established, let terminalKey, let ownKey, let idPICC = try? ownKey.compressed,
                let idPCD = try? terminalKey.compressed, let keys = keys.take()
            else { return nil }
            return Outcome(
                keys: keys,
                idPICC: idPICC,
                idPCD: idPCD,
                certificationAuthorities: authorities,
                mappingProof: nil
            )
        }

        /// Takes an empty object 7C and returns the encrypted nonce (80).
        private mutating func sendNonce(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            guard try unwrap(data).isEmpty else { throw .pace("data in the request for the nonce") }
            return try cryptoStep { () throws(CryptoError) in
                let number: Secret
                if let given = nonce.take() { number = given } else { number = try Random.secret(nonceLength) }
                let encrypted = try parameters.cipher.block.encrypt(number, key: passwordKey)
                nonce = consume number
                return wrap(BERTLV(0x80, encrypted))
            }
        }

        private var nonceLength: Int {
            switch parameters.mapping {
            case .generic, .chipAuthentication: AES.blockSize
            case .integrated: IntegratedMapping.nonceLength(parameters.cipher)
            }
        }

        /// Takes the terminal's mapping key or nonce (81) and returns our key, which is empty for a nonce (82).
        private mutating func map(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            switch parameters.mapping {
            case .generic, .chipAuthentication:
                let peer = try point(0x81, in: data, differentFrom: nil, in: parameters.domain)
                guard let number = nonce.take() else { throw .outOfOrder }
                return try cryptoStep { () throws(CryptoError) in
                    let own = try makeKey(for: .mapping, fixedKeys, on: try parameters.domain.group)
                    let group = try own.group.mapped(nonce: number, key: own, peer: peer)
                    agreementKey = try makeKey(for: .ephemeral, fixedKeys, on: group)
                    proof = try prove(own)
                    return wrap(BERTLV(0x82, own.publicKey.encoded))
                }
            case .integrated:
                let given = Secret(try only(0x81, in: data))
                guard let number = nonce.take() else { throw .outOfOrder }
                try cryptoStep { () throws(CryptoError) in
                    let random = try IntegratedMapping.random(
                        nonce: number,
                        terminalNonce: given,
                        primeBits: parameters.domain.primeBits,
                        cipher: parameters.cipher
                    )
                    let group = try parameters.domain.group.mapped(random: random)
                    agreementKey = try makeKey(for: .ephemeral, fixedKeys, on: group)
                }
                return wrap(BERTLV(0x82, [UInt8]()))
            }
        }

        /// Computes the proof of the static key: the key of the mapping divided by the static key.
        private borrowing func prove(_ mapping: borrowing AgreementPrivateKey) throws(CryptoError) -> Secret? {
            guard parameters.mapping == .chipAuthentication else { return nil }
            switch staticKey {
            case nil: return nil
            case .some(let staticKey):
                return try mapping.onCurve { key throws(CryptoError) in try key.divided(by: staticKey) }
            }
        }

        /// Takes the terminal's ephemeral key (83) and returns ours (84).
        private mutating func agree(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            guard let own = agreementKey.take() else { throw .outOfOrder }
            let peer = try point(0x83, in: data, differentFrom: own.publicKey, in: parameters.domain)
            try cryptoStep { () throws(CryptoError) in
                let secret = try own.sharedSecret(with: peer)
                keys = try SessionKeys(sharedSecret: secret, cipher: parameters.cipher)
            }
            terminalKey = peer
            ownKey = own.publicKey
            return wrap(BERTLV(0x84, own.publicKey.encoded))
        }

        /// Takes the terminal's token (85) and returns ours (86), with the names of the trust points (87, 88).
        private mutating func authenticate(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            let given = try only(0x85, in: data)
            guard let terminalKey, let ownKey, let keys = keys.take() else { throw .outOfOrder }
            let (expected, answer) = try cryptoStep(
                (
                    try token(for: ownKey, parameters: parameters, keys: keys),
                    try token(for: terminalKey, parameters: parameters, keys: keys)
                )
            )
            guard ConstantTime.equal(expected, given) else { throw .wrongToken }
            var objects = [BERTLV(0x86, answer)]
            if let proof = proof.take() {
                let encrypted = try cryptoStep { () throws(CryptoError) in
                    let vector = try proofVector(keys)
                    return try AES.encrypt(Padding.add(to: proof), key: keys.encryption, initialVector: vector)
                }
                objects.append(BERTLV(0x8A, encrypted))
            }
            self.keys = consume keys
            if let current = authorities.current { objects.append(BERTLV(0x87, current)) }
            if let previous = authorities.previous { objects.append(BERTLV(0x88, previous)) }
            return BERTLV(0x7C, objects).encoded
        }
    }
}

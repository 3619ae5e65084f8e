// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
package import Text

extension PACE {
    /// The terminal's side of one PACE run. The steps are called in the order of this list. After an error the run is over.
    package struct Terminal: ~Copyable, Sendable {
        private enum Step { case nonce, mapping, agreement, token, over }

        private let parameters: PACEParameters
        private let passwordKey: Secret
        private var fixedKeys: FixedKeys?
        private var step = Step.nonce
        private var nonce: Secret?
        private var mappingKey: AgreementPrivateKey?
        /// Our nonce in the integrated mapping.
        private var mappingNonce: Secret?
        private var chipMappingKey: AgreementPublicKey?
        private var agreementKey: AgreementPrivateKey?
        private var keys: SessionKeys?
        private var chipKey: AgreementPublicKey?
        private var ownKey: AgreementPublicKey?

        /// - Parameters:
        ///   - parameters: a variant of the card.
        ///   - passwordKey: from `PACE.passwordKey`.
        ///   - fixedKeys: for worked examples only; nil for random keys.
        package init(
            _ parameters: PACEParameters,
            passwordKey: consuming Secret,
            fixedKeys: consuming FixedKeys? = nil
        ) {
            self.parameters = parameters
            self.passwordKey = passwordKey
            self.fixedKeys = fixedKeys
        }

        /// The data field of the first command, which asks for the nonce.
        package static let request: [UInt8] = [0x7C, 0x00]

        /// Takes the encrypted nonce (object 80) and returns the mapping key or our nonce (81).
        package mutating func receiveNonce(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            try advance(.nonce)
            let encrypted = try only(0x80, in: data)
            guard isNonceLength(encrypted.count, parameters.cipher) else { throw .pace("nonce of a wrong length") }
            try cryptoStep { () throws(CryptoError) in
                nonce = try parameters.cipher.block.decrypt(encrypted, key: passwordKey)
            }
            switch parameters.mapping {
            case .generic, .chipAuthentication:
                try cryptoStep { () throws(CryptoError) in
                    let key = try makeKey(for: .mapping, fixedKeys, on: try parameters.domain.group)
                    ownKey = key.publicKey
                    mappingKey = consume key
                }
                step = .mapping
                return try send(0x81)
            case .integrated:
                guard encrypted.count == IntegratedMapping.nonceLength(parameters.cipher) else {
                    throw .pace("nonce of a wrong length")
                }
                let own = try cryptoStep(makeNonce())
                let answer = own.withBytes { wrap(BERTLV(0x81, Array($0))) }
                mappingNonce = consume own
                step = .mapping
                return answer
            }
        }

        /// Takes the chip's mapping key (82), which is empty in the integrated mapping, and returns the ephemeral key (83).
        package mutating func receiveMapping(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            try advance(.mapping)
            let group = try map(data)
            try cryptoStep { () throws(CryptoError) in
                let key = try makeKey(for: .ephemeral, fixedKeys, on: group)
                ownKey = key.publicKey
                agreementKey = consume key
            }
            step = .agreement
            return try send(0x83)
        }

        private mutating func map(_ data: [UInt8]) throws(ChipError) -> AgreementGroup {
            switch parameters.mapping {
            case .generic, .chipAuthentication:
                let peer = try point(0x82, in: data, differentFrom: ownKey, in: parameters.domain)
                guard let own = mappingKey.take(), let nonce = nonce.take() else { throw .outOfOrder }
                chipMappingKey = peer
                return try cryptoStep(own.group.mapped(nonce: nonce, key: own, peer: peer))
            case .integrated:
                let objects = try unwrap(data)
                guard objects.isEmpty || objects == [BERTLV(0x82, [UInt8]())] else { throw .pace("unexpected object") }
                guard let own = mappingNonce.take(), let nonce = nonce.take() else { throw .outOfOrder }
                let domain = parameters.domain
                let cipher = parameters.cipher
                return try cryptoStep { () throws(CryptoError) in
                    let random = try IntegratedMapping.random(
                        nonce: nonce,
                        terminalNonce: own,
                        primeBits: domain.primeBits,
                        cipher: cipher
                    )
                    return try domain.group.mapped(random: random)
                }
            }
        }

        /// Draws our nonce of the integrated mapping, or takes that of a worked example.
        private borrowing func makeNonce() throws(CryptoError) -> Secret {
            switch fixedKeys {
            case nil: return try Random.secret(parameters.cipher.keyLength)
            case .some(let keys): return keys.mapping.clone()
            }
        }

        /// Takes the chip's ephemeral key (84) and returns the token (85).
        package mutating func receiveEphemeral(_ data: [UInt8]) throws(ChipError) -> [UInt8] {
            try advance(.agreement)
            let peer = try point(0x84, in: data, differentFrom: ownKey, in: parameters.domain)
            guard let own = agreementKey.take() else { throw .outOfOrder }
            return try cryptoStep { () throws(CryptoError) in
                let secret = try own.sharedSecret(with: peer)
                let keys = try SessionKeys(sharedSecret: secret, cipher: parameters.cipher)
                let token = try token(for: peer, parameters: parameters, keys: keys)
                self.keys = consume keys
                chipKey = peer
                step = .token
                return wrap(BERTLV(0x85, token))
            }
        }

        /// Takes the chip's token (86), the names of its trust points (87, 88) and its proof in the chip authentication
        /// mapping (8A), and returns the result.
        package mutating func receiveToken(_ data: [UInt8]) throws(ChipError) -> Outcome {
            try advance(.token)
            let objects = try unwrap(data)
            guard let first = objects.first, first.tag == 0x86 else { throw .pace("no token") }
            var authorities = CertificationAuthorities()
            var proof: [UInt8]?
            for object in objects.dropFirst() {
                if parameters.mapping == .chipAuthentication, object.tag == 0x8A, proof == nil {
                    proof = object.value
                    continue
                }
                guard !object.value.isEmpty, object.value.count <= 16 else { throw .pace("name of a CVCA key") }
                switch (object.tag, authorities.current, authorities.previous) {
                case (0x87, nil, nil): authorities.current = object.value
                case (0x88, .some, nil): authorities.previous = object.value
                default: throw .pace("unexpected object")
                }
            }
            guard let keys = keys.take(), let chipKey, let ownKey else { throw .outOfOrder }
            let expected = try cryptoStep(token(for: ownKey, parameters: parameters, keys: keys))
            guard ConstantTime.equal(expected, first.value) else { throw .wrongToken }
            let (idPICC, idPCD) = try cryptoStep((try chipKey.compressed, try ownKey.compressed))
            let mappingProof = mappingProof(proof, keys)
            return Outcome(
                keys: keys,
                idPICC: idPICC,
                idPCD: idPCD,
                certificationAuthorities: authorities,
                mappingProof: mappingProof
            )
        }

        /// Decrypts the proof of the chip authentication mapping; nil when it is missing or malformed.
        private func mappingProof(_ encrypted: [UInt8]?, _ keys: borrowing SessionKeys) -> MappingProof? {
            guard let encrypted, !encrypted.isEmpty, encrypted.count <= 96, encrypted.count % AES.blockSize == 0,
                case .curve(let mappingKey)? = chipMappingKey
            else { return nil }
            guard let vector = try? proofVector(keys),
                let padded = try? AES.decrypt(encrypted, key: keys.encryption, initialVector: vector),
                let number = Padding.remove(from: padded)
            else { return nil }
            return MappingProof(number: number.withBytes { Array($0) }, mappingKey: mappingKey)
        }

        private func send(_ tag: UInt32) throws(ChipError) -> [UInt8] {
            guard let ownKey else { throw .outOfOrder }
            return wrap(BERTLV(tag, ownKey.encoded))
        }

        /// Checks that this step is due. The run is over until the step sets the next one.
        private mutating func advance(_ due: Step) throws(ChipError) {
            let isDue = step == due
            step = .over
            guard isDue else { throw .outOfOrder }
        }
    }
}

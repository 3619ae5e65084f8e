// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
package import Secrets

extension PACE {
    /// The terminal's side of one PACE run. The steps are called in the order of this list. After an error the run is over.
    package struct Terminal: ~Copyable, Sendable {
        private enum Step { case nonce, mapping, agreement, token, over }

        private let parameters: PACEParameters
        private let passwordKey: Secret
        private var fixedKeys: FixedKeys?
        private var step = Step.nonce
        private var nonce: Secret?
        private var mappingKey: ECPrivateKey?
        private var agreementKey: ECPrivateKey?
        private var keys: SessionKeys?
        private var chipKey: ECPublicKey?
        private var ownKey: ECPublicKey?

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

        /// Takes the encrypted nonce (object 80) and returns the mapping key (81).
        package mutating func receiveNonce(_ data: [UInt8]) throws(EIDError) -> [UInt8] {
            try take(.nonce)
            let encrypted = try only(0x80, in: data)
            guard nonceLengths.contains(encrypted.count) else { throw .pace("nonce of a wrong length") }
            try crypto { () throws(CryptoError) in
                nonce = try AES.decrypt(encrypted, key: passwordKey)
                let key = try makeKey(for: .mapping, fixedKeys, on: try parameters.curve.group)
                ownKey = key.publicKey
                mappingKey = consume key
            }
            step = .mapping
            return try send(0x81)
        }

        /// Takes the chip's mapping key (82) and returns the ephemeral key (83).
        package mutating func receiveMapping(_ data: [UInt8]) throws(EIDError) -> [UInt8] {
            try take(.mapping)
            let peer = try point(0x82, in: data, differentFrom: ownKey, on: parameters.curve)
            guard let own = mappingKey.take(), let nonce = nonce.take() else { throw .outOfOrder }
            try crypto { () throws(CryptoError) in
                let group = try own.group.mapped(nonce: nonce, key: own, peer: peer)
                let key = try makeKey(for: .ephemeral, fixedKeys, on: group)
                ownKey = key.publicKey
                agreementKey = consume key
            }
            step = .agreement
            return try send(0x83)
        }

        /// Takes the chip's ephemeral key (84) and returns the token (85).
        package mutating func receiveEphemeral(_ data: [UInt8]) throws(EIDError) -> [UInt8] {
            try take(.agreement)
            let peer = try point(0x84, in: data, differentFrom: ownKey, on: parameters.curve)
            guard let own = agreementKey.take() else { throw .outOfOrder }
            return try crypto { () throws(CryptoError) in
                let secret = try own.sharedSecret(with: peer)
                let keys = try SessionKeys(sharedSecret: secret, cipher: parameters.cipher)
                let token = try token(for: peer, parameters: parameters, keys: keys)
                self.keys = consume keys
                chipKey = peer
                step = .token
                return wrap(BERTLV(0x85, token))
            }
        }

        /// Takes the chip's token (86) and the names of its trust points (87, 88), and returns the result.
        package mutating func receiveToken(_ data: [UInt8]) throws(EIDError) -> Outcome {
            try take(.token)
            let objects = try unwrap(data)
            guard let first = objects.first, first.tag == 0x86 else { throw .pace("no token") }
            var authorities = CertificationAuthorities()
            for object in objects.dropFirst() {
                guard !object.value.isEmpty, object.value.count <= 16 else { throw .pace("name of a CVCA key") }
                switch (object.tag, authorities.current, authorities.previous) {
                case (0x87, nil, nil): authorities.current = object.value
                case (0x88, .some, nil): authorities.previous = object.value
                default: throw .pace("unexpected object")
                }
            }
            guard let keys = keys.take(), let chipKey, let ownKey else { throw .outOfOrder }
            let expected = try crypto { () throws(CryptoError) in
                try token(for: ownKey, parameters: parameters, keys: keys)
            }
            guard ConstantTime.equal(expected, first.value) else { throw .wrongToken }
            return Outcome(
                keys: keys,
                idPICC: chipKey.compressed,
                idPCD: ownKey.compressed,
                certificationAuthorities: authorities
            )
        }

        private func send(_ tag: UInt32) throws(EIDError) -> [UInt8] {
            guard let ownKey else { throw .outOfOrder }
            return wrap(BERTLV(tag, ownKey.uncompressed))
        }

        /// Checks that this step is due. The run is over until the step sets the next one.
        private mutating func take(_ due: Step) throws(EIDError) {
            let isDue = step == due
            step = .over
            guard isDue else { throw .outOfOrder }
        }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import COpenPACE
import COpenSSL
import ChipAccess
import Crypto
import EID
import Text

/// One side of PACE and of its secure messaging in libeac.
final class OpenPACE {
    /// A function of libeac failed.
    struct Failure: Error {
        let function: String
    }

    private let context: UnsafeMutablePointer<EAC_CTX>
    private let secret: UnsafeMutablePointer<PACE_SEC>

    /// Adds the object identifiers of libeac to the table of libcrypto, once per process.
    private static let initialized: Void = EAC_init()

    init(_ parameters: PACEParameters, password: String, id: PasswordID) throws {
        _ = Self.initialized
        context = try unwrap(EAC_CTX_new(), "EAC_CTX_new")
        let kind =
            switch id {
            case .mrz: PACE_MRZ
            case .can: PACE_CAN
            case .pin: PACE_PIN
            case .puk: PACE_PUK
            }
        secret = try unwrap(PACE_SEC_new(password, password.utf8.count, kind), "PACE_SEC_new")
        context.pointee.tr_version = EAC_TR_VERSION_2_02
        let agreement = parameters.curve == nil ? "DH" : "ECDH"
        let mapping =
            switch parameters.mapping {
            case .generic: "GM"
            case .integrated: "IM"
            case .chipAuthentication: "CAM"
            }
        let cipher =
            switch parameters.cipher {
            case .tripleDES: "3DES-CBC-CBC"
            case .aes128: "AES-CBC-CMAC-128"
            case .aes192: "AES-CBC-CMAC-192"
            case .aes256: "AES-CBC-CMAC-256"
            }
        let name = "id-PACE-\(agreement)-\(mapping)-\(cipher)"
        let protocolID = EAC_OBJ_txt2nid(name)
        try check(EAC_CTX_init_pace(context, protocolID, Int32(parameters.parameterID)), "EAC_CTX_init_pace")
    }

    deinit {
        EAC_CTX_clear_free(context)
        PACE_SEC_clear_free(secret)
    }

    // MARK: PACE

    func makeEncryptedNonce() throws -> [UInt8] {
        try take(PACE_STEP1_enc_nonce(context, secret), "PACE_STEP1_enc_nonce")
    }

    func decryptNonce(_ nonce: [UInt8]) throws {
        try lend(nonce) { try check(PACE_STEP2_dec_nonce(context, secret, $0), "PACE_STEP2_dec_nonce") }
    }

    func makeMappingKey() throws -> [UInt8] {
        try take(PACE_STEP3A_generate_mapping_data(context), "PACE_STEP3A_generate_mapping_data")
    }

    func map(_ peer: [UInt8]) throws {
        try lend(peer) { try check(PACE_STEP3A_map_generator(context, $0), "PACE_STEP3A_map_generator") }
    }

    func makeEphemeralKey() throws -> [UInt8] {
        try take(PACE_STEP3B_generate_ephemeral_key(context), "PACE_STEP3B_generate_ephemeral_key")
    }

    /// Agrees on the keys and returns the token of this side.
    func agree(_ peer: [UInt8]) throws -> [UInt8] {
        try lend(peer) {
            try check(PACE_STEP3B_compute_shared_secret(context, $0), "PACE_STEP3B_compute_shared_secret")
            try check(PACE_STEP3C_derive_keys(context), "PACE_STEP3C_derive_keys")
            return try take(
                PACE_STEP3D_compute_authentication_token(context, $0),
                "PACE_STEP3D_compute_authentication_token"
            )
        }
    }

    func accepts(token: [UInt8]) throws -> Bool {
        try lend(token) { PACE_STEP3D_verify_authentication_token(context, $0) == 1 }
    }

    var keys: (encryption: [UInt8], authentication: [UInt8]) {
        get throws {
            let agreement = try unwrap(context.pointee.pace_ctx?.pointee.ka_ctx, "ka_ctx")
            return (
                try copy(agreement.pointee.k_enc, "k_enc"),
                try copy(agreement.pointee.k_mac, "k_mac")
            )
        }
    }

    /// Comp() of an ephemeral public key.
    func compress(_ point: [UInt8]) throws -> [UInt8] {
        try lend(point) { try take(EAC_Comp(context, EAC_ID_PACE, $0), "EAC_Comp") }
    }

    // MARK: Secure messaging

    /// Uses the keys of the run for secure messaging.
    func startSecureMessaging() throws {
        try check(EAC_CTX_set_encryption_ctx(context, EAC_ID_PACE), "EAC_CTX_set_encryption_ctx")
    }

    func setCounter(_ value: UInt) throws { try check(EAC_set_ssc(context, value), "EAC_set_ssc") }

    func pad(_ data: [UInt8]) throws -> [UInt8] {
        try lend(data) { try take(EAC_add_iso_pad(context, $0), "EAC_add_iso_pad") }
    }

    func encrypt(_ data: [UInt8]) throws -> [UInt8] {
        try lend(data) { try take(EAC_encrypt(context, $0), "EAC_encrypt") }
    }

    func decrypt(_ data: [UInt8]) throws -> [UInt8] {
        try lend(data) { try take(EAC_decrypt(context, $0), "EAC_decrypt") }
    }

    func authenticate(_ data: [UInt8]) throws -> [UInt8] {
        try lend(data) { try take(EAC_authenticate(context, $0), "EAC_authenticate") }
    }
}

private func check(_ result: Int32, _ function: String) throws {
    guard result == 1 else { throw OpenPACE.Failure(function: function) }
}

private func unwrap<T>(_ pointer: T?, _ function: String) throws -> T {
    guard let pointer else { throw OpenPACE.Failure(function: function) }
    return pointer
}

private func copy(_ buffer: UnsafeMutablePointer<BUF_MEM>?, _ function: String) throws -> [UInt8] {
    let buffer = try unwrap(buffer, function)
    return Array(UnsafeRawBufferPointer(start: buffer.pointee.data, count: buffer.pointee.length))
}

/// Copies and frees a buffer of libeac.
private func take(_ buffer: UnsafeMutablePointer<BUF_MEM>?, _ function: String) throws -> [UInt8] {
    defer { BUF_MEM_free(buffer) }
    return try copy(buffer, function)
}

/// Calls `body` with the bytes in a buffer of libeac.
private func lend<R>(_ bytes: [UInt8], _ body: (UnsafeMutablePointer<BUF_MEM>) throws -> R) throws -> R {
    let buffer = try unwrap(BUF_MEM_new(), "BUF_MEM_new")
    defer { BUF_MEM_free(buffer) }
    guard BUF_MEM_grow(buffer, bytes.count) == bytes.count else { throw OpenPACE.Failure(function: "BUF_MEM_grow") }
    buffer.pointee.data?.withMemoryRebound(to: UInt8.self, capacity: bytes.count) { target in
        target.update(from: bytes, count: bytes.count)
    }
    return try body(buffer)
}

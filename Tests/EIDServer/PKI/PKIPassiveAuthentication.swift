// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Synchronization

/// Checks that a document signer of the known authority has signed EF.CardSecurity. TR-03110-2 3.4, RFC 5652 5.
enum PassiveAuthentication {
    private struct Question: Hashable {
        let file: [UInt8]
        let authority: [UInt8]

        /// The maximum number of stored answers.
        static let capacity = 64
    }
    /// The results so far. Cards of one batch have the same file, so the file identifies no person.
    private static let answers = Mutex<[Question: Bool]>([:])

    /// Whether the signature is right; `authority` is the X.509 certificate in DER of the authority.
    static func isGenuine(_ file: [UInt8], authority: [UInt8]) -> Bool {
        let question = Question(file: file, authority: authority)
        if let answer = answers.withLock({ $0[question] }) { return answer }
        let answer = verify(file, authority)
        answers.withLock { answers in
            if answers.count < Question.capacity { answers[question] = answer }
        }
        return answer
    }

    private static func verify(_ file: [UInt8], _ authority: [UInt8]) -> Bool {
        defer { ERR_clear_error() }
        let message = file.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var cursor = buffer.baseAddress
            return d2i_CMS_ContentInfo(nil, &cursor, buffer.count)
        }
        let root = authority.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            var cursor = buffer.baseAddress
            return d2i_X509(nil, &cursor, buffer.count)
        }
        defer {
            CMS_ContentInfo_free(message)
            X509_free(root)
        }
        guard let message, let root, let store = X509_STORE_new() else { return false }
        defer { X509_STORE_free(store) }
        X509_STORE_add_cert(store, root)
        // libcrypto has no purpose for the certificate of a document signer.
        X509_STORE_set_purpose(store, X509_PURPOSE_ANY)
        return CMS_verify(message, nil, store, nil, nil, UInt32(CMS_BINARY)) == 1
    }
}

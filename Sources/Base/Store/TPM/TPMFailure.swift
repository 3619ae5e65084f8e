// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Why a call of the TPM failed. No case contains a key.
package enum TPMFault: Sendable, Equatable {
    /// There is no TPM that can be used; the text says why.
    case unavailable(String)
    /// `[keys] tpm = no`: badged must not use a TPM.
    case notAllowed
    /// The TPM closed the connection before it answered.
    case gone
    /// The TPM has not answered in time.
    case timedOut
    /// Too many wrong passwords were given to the TPM.
    case lockedOut
    /// This TPM did not make the key: the TPM was cleared, or is that of another computer.
    case foreign
    /// The answer does not have the form of a TPM answer.
    case malformed
    /// The TPM or libtss2 refuses, with this code (TSS2_RC).
    case refused(UInt32)
}

extension Failure {
    /// A call of the TPM has failed.
    package static func tpm(_ fault: TPMFault) -> Failure {
        let (code, text, advice): (Code, Phrase, Phrase?) =
            switch fault {
            case .unavailable(let reason): (.tpmUnavailable, "there is no TPM: \(reason)", nil)
            case .notAllowed:
                (.tpmUnavailable, "the key is in a TPM, which [keys] tpm = no forbids", "set tpm = auto")
            case .gone:
                (.tpmUnavailable, "the TPM has closed the connection", "look at the log of the kernel, and try again")
            case .timedOut:
                (.tpmUnavailable, "the TPM has not answered in time", "try again, or restart the computer")
            case .lockedOut:
                (.tpmLocked, "the TPM is locked after wrong passwords", "wait, or reset it with tpm2_dictionarylockout")
            case .foreign:
                (.tpmForeign, "the TPM does not know this key", "the TPM was cleared, or is in another computer")
            case .malformed:
                (.tpmUnavailable, "the answer of the TPM is malformed", "check [keys] tpm_device in badged.conf(5)")
            case .refused(let code):
                (
                    .tpmUnavailable,
                    "the TPM returned the error code 0x\(String(code, radix: 16))",
                    "see tpm2_rc_decode(1)"
                )
            }
        return Failure(code, text, advice: advice)
    }
}

extension Failure.Code {
    package static let tpmUnavailable = Self("TPMUnavailable")
    package static let tpmLocked = Self("TPMLocked")
    /// This TPM did not make the key.
    package static let tpmForeign = Self("TPMForeign")
}

// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a call of the TPM failed. No case contains a key.
package enum TPMError: Error, Sendable, Equatable {
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

    /// What happened and what to do next.
    package var text: String {
        switch self {
        case .unavailable(let reason): "there is no TPM: \(reason)"
        case .notAllowed: "the key is in a TPM, which [keys] tpm = no forbids: set tpm = auto"
        case .gone: "the TPM has closed the connection: look at the log of the kernel, and try again"
        case .timedOut: "the TPM has not answered in time: try again, or restart the computer"
        case .lockedOut: "the TPM is locked after wrong passwords: wait, or reset it with tpm2_dictionarylockout"
        case .foreign: "the TPM does not know this key: the TPM was cleared, or is in another computer"
        case .malformed: "the answer of the TPM is malformed: check [keys] tpm_device in badged.conf(5)"
        case .refused(let code): "the TPM returned the error code 0x\(String(code, radix: 16)): see tpm2_rc_decode(1)"
        }
    }
}

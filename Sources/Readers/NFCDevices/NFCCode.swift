// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC

/// An error code of libnfc.
struct NFCCode: Error, Sendable, Equatable {
    let value: Int32

    static let openFailed = NFCCode(value: Int32(NFC_ENOTSUCHDEV))
    static let unsupported = NFCCode(value: Int32(NFC_EDEVNOTSUPP))

    enum Meaning: Sendable, Equatable {
        /// The card did not answer, or the answer was damaged. The device works.
        case radio
        case aborted
        /// The chip or libnfc's driver for it does not have this function.
        case unsupported
        /// The device does not answer or is gone.
        case device
    }

    var meaning: Meaning {
        switch value {
        // libnfc reports NFC_ECHIP for a frame that has the wrong length or form.
        case NFC_ERFTRANS, NFC_ETGRELEASED, NFC_ECHIP, NFC_EOVFLOW, NFC_EMFCAUTHFAIL: .radio
        case NFC_EOPABORTED: .aborted
        case NFC_EDEVNOTSUPP, NFC_ENOTIMPL, NFC_EINVARG: .unsupported
        default: .device
        }
    }
}

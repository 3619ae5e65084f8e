// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// RIPEMD-160, for the checksums of Antelope's keys only. ISO/IEC 10118-3.
package enum RIPEMD160 {
    package static func hash(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 20)
        try check(EVP_Digest(bytes, bytes.count, &out, nil, EVP_ripemd160(), nil))
        return out
    }
}

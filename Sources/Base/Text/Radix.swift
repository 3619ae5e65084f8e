// SPDX-License-Identifier: Apache-2.0

/// Numbers of any length in another base.
package enum Radix {
    /// Converts digits of one base, at most 256, into those of another one. The first digit is the highest, and no zeros
    /// lead the result; zero has no digits.
    package static func convert(_ digits: some Sequence<UInt8>, from: Int, to base: Int) -> [UInt8] {
        var result: [UInt8] = []
        for digit in digits {
            var carry = Int(digit)
            for index in result.indices {
                carry += Int(result[index]) * from
                result[index] = UInt8(carry % base)
                carry /= base
            }
            while carry > 0 {
                result.append(UInt8(carry % base))
                carry /= base
            }
        }
        return result.reversed()
    }
}

extension BinaryInteger {
    /// The decimal digits, with zeros in front if there are fewer than `count`.
    package func padded(to count: Int) -> String {
        let digits = String(self)
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }
}

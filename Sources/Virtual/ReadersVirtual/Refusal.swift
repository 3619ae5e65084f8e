// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// The status word with which a virtual card refuses a command.
package struct Refusal: Error {
    package let status: StatusWord

    package init(_ status: UInt16) { self.status = StatusWord(status) }
}

extension Refusal {
    package static let wrongLength = Refusal(0x6700)
    package static let wrongSignature = Refusal(0x6982)
    package static let wrongState = Refusal(0x6985)
    package static let noApplication = Refusal(0x6A82)
    package static let noData = Refusal(0x6A88)
    package static let wrongParameters = Refusal(0x6B00)
    package static let wrongInstruction = Refusal(0x6D00)
    package static let wrongClass = Refusal(0x6E00)
    package static let failure = Refusal(0x6F00)
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import Text

/// An accepted request parses to the same value when it is written again.
@Sendable func driverRequest(_ input: UnsafeRawBufferPointer) {
    guard let request = DriverRequest(bytes: Array(input)) else { return }
    require(DriverRequest(bytes: request.bytes) == request, "the request does not parse to the same value")
}

/// An accepted report is the same when it is written and parsed again.
@Sendable func driverReport(_ input: UnsafeRawBufferPointer) {
    guard let report = DriverReport(bytes: Array(input)) else { return }
    let bytes = report.bytes
    require(bytes.count <= max(input.count, DriverMessage.maximumSize), "the report is too long")
    require(DriverReport(bytes: bytes)?.bytes == bytes, "the report does not parse to the same value")
}

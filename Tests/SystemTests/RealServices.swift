// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing

/// Tests with real system services. They need a separate namespace and run in sequence, only with
/// `Tests/System/in-namespace.sh swift test --filter SystemTests`.
@Suite(
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["BADGED_SYSTEM_TESTS"] == "1"),
    .timeLimit(.minutes(5))
)
enum RealServices {}

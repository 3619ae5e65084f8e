// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing

/// Tests against real system services. They need a machine of their own, so they run only by
/// `Tests/System/in-namespace.sh swift test --filter SystemTests`, one after the other.
@Suite(
    .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["BADGED_SYSTEM_TESTS"] == "1"),
    .timeLimit(.minutes(5))
)
enum RealServices {}

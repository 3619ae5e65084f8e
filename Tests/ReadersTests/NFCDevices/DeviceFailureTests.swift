// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import NFCDevices

/// When a device that has failed is opened again.
@Suite("Failures of NFC devices")
struct DeviceFailureTests {
    private let now = ContinuousClock.now

    /// The pauses before the attempts that follow by themselves, at most 20.
    private func pauses(_ failure: DeviceFailure) -> [Duration] {
        var (failure, pauses) = (failure, [Duration]())
        while pauses.count < 20 {
            failure.add(at: now)
            guard let next = failure.nextAttempt else { break }
            pauses.append(now.duration(to: next))
        }
        return pauses
    }

    @Test("a device that could never be opened gets eight more attempts within half a minute")
    func neverOpen() {
        let pauses = pauses(DeviceFailure(wasOpen: false, at: now))
        #expect(pauses.first == .milliseconds(100))
        #expect(pauses.count == 8 && pauses.reduce(.zero, +) < .seconds(30))
    }

    @Test("a device that was open is tried for as long as it is there, after at most a second")
    func unsteady() {
        let pauses = pauses(DeviceFailure(wasOpen: true, at: now))
        #expect(pauses.first == .milliseconds(100))
        #expect(pauses.count == 20 && pauses.last == .seconds(1))
    }

    @Test("nothing is due while a device is open, before its time, and after it was given up")
    func due() {
        var failure = DeviceFailure(wasOpen: true, at: now)
        #expect(failure.isDue(at: now))
        failure.add(at: now)
        #expect(!failure.isDue(at: now) && failure.isDue(at: now + .milliseconds(100)))
        failure.open()
        #expect(!failure.isDue(at: now + .seconds(3600)))
        failure.giveUp()
        #expect(!failure.isDue(at: now + .seconds(3600)) && !failure.isUnsteady)
    }
}

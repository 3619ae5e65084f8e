// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// A way to the radio. A new one is one target with one of these, and one line in the program that wires it.
@Loop package protocol Scanner: AnyObject {
    /// Name in INFO, SCAN and logs, such as `bluez`.
    nonisolated var name: String { get }

    /// Told of everything; set before the first `scan`.
    var observer: (any ScannerObserver)? { get set }

    var status: ScannerStatus { get }

    /// Scans from now on, or scans differently. Never fails: what is in the way shows in `status`, and is tried again
    /// when it may have gone.
    func scan(_ demand: ScanDemand)

    /// Does not scan any more and gives back what it holds of the radio. An adapter that it has just switched off is
    /// switched on again after that.
    func stop()

    /// Returns when no adapter is off on its account any more. After `stop`, at the end of the process.
    func settle() async

    /// What a scan would meet, looked at once and without scanning. Not while it scans.
    func examine() async -> ScannerStatus

    /// Takes a step against silence, on one adapter or, with nil, on all. False: there is no such step here, or it must not
    /// be taken now; the next one is tried at once.
    func recover(_ step: RecoveryStep, adapter: Int?) -> Bool
}

/// Who gets what a scanner hears.
@Loop package protocol ScannerObserver: AnyObject {
    /// One advertisement. `data` is empty when the scanner knows of a change of strength only; it is valid during the
    /// call.
    func heard(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int)

    /// `status` has another value.
    func scannerChanged(_ scanner: any Scanner)

    /// An adapter has gone; its number may come back as another one.
    func adapterGone(_ adapter: Int)
}

/// What all clients together want of the radio.
package struct ScanDemand: Sendable, Equatable {
    package enum Mode: String, Sendable, CaseIterable {
        /// Leaves the radio to others for a part of the time, and asks senders for more as seldom as possible.
        case powerSaving
        case performance
    }

    package var mode: Mode
    package var profiles: Set<ReaderProfile>
    /// Empty: any.
    package var lockServiceCodes: Set<Int>

    package init(
        mode: Mode = .powerSaving,
        profiles: Set<ReaderProfile> = ReaderProfile.doors,
        lockServiceCodes: Set<Int> = []
    ) {
        (self.mode, self.profiles, self.lockServiceCodes) = (mode, profiles, lockServiceCodes)
    }

    /// The union of several wishes; nil when there is none.
    package static func union(_ demands: some Sequence<ScanDemand>) -> ScanDemand? {
        demands.reduce(nil) { (result: ScanDemand?, next) in
            guard var result else { return next }
            if next.mode == .performance { result.mode = .performance }
            result.profiles.formUnion(next.profiles)
            // Who wants any code wants all.
            result.lockServiceCodes =
                result.lockServiceCodes.isEmpty || next.lockServiceCodes.isEmpty
                ? [] : result.lockServiceCodes.union(next.lockServiceCodes)
            return result
        }
    }
}

/// The steps of the ladder, gentle ones first.
package enum RecoveryStep: Int, Sendable, CaseIterable {
    /// For `ScanWatch.probe` milliseconds the radio listens to whatever there is.
    case probe
    /// The filters or monitors are set up again.
    case renew
    /// The scan is stopped and started.
    case restart
    /// The connection to the service or the kernel is made anew.
    case reopen
    /// The adapter is switched off and on. Never while it has connections of others, unless that is configured.
    case powerCycle
}

/// One Bluetooth adapter of the host.
package struct RadioAdapter: Sendable, Equatable {
    /// `hci0`. The number may change when it is plugged in again; the address stays.
    package var name: String
    package var address: String
    package var isPowered: Bool
    /// It scans, as far as the system says.
    package var isListening: Bool

    package init(name: String, address: String, isPowered: Bool, isListening: Bool = false) {
        (self.name, self.address, self.isPowered, self.isListening) = (name, address, isPowered, isListening)
    }

    /// That of its name.
    package var number: Int { Int(name.drop { !$0.isNumber }) ?? 0 }
}

/// What a scanner knows of itself.
package struct ScannerStatus: Sendable, Equatable {
    /// The radio listens, as far as the system says.
    package var isListening = false
    package var adapters: [RadioAdapter] = []
    /// What is in the way.
    package var fault: ScannerFault?
    /// Messages of the system in this scan that could not be read.
    package var malformed = 0

    package init(isListening: Bool = false, adapters: [RadioAdapter] = [], fault: ScannerFault? = nil) {
        (self.isListening, self.adapters, self.fault) = (isListening, adapters, fault)
    }
}

/// Why there is no scan, in words for a person.
package struct ScannerFault: Error, Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// The service, or the kernel's Bluetooth, is not there.
        case service = "bluetooth"
        case access = "bluetoothAccess"
        /// No adapter, or it is switched off.
        case adapter = "bluetoothAdapter"
        /// It is there, but refuses or says nothing.
        case scan = "bluetoothScan"
    }

    package var kind: Kind
    package var text: String
    package var advice: String
    /// This way to the radio will never work here; another one may.
    package var isFinal: Bool

    package init(_ kind: Kind, _ text: String, advice: String, isFinal: Bool = false) {
        (self.kind, self.text, self.advice, self.isFinal) = (kind, text, advice, isFinal)
    }

    package static let noAdapter = ScannerFault(.adapter, "there is no Bluetooth adapter", advice: "plug one in")
    package static let adapterOff =
        ScannerFault(.adapter, "the Bluetooth adapter is switched off", advice: "bluetoothctl power on")
}

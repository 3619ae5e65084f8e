// SPDX-License-Identifier: GPL-3.0-or-later

/// What is measured; the raw value is its name in baseline.json and for `--only`.
enum Row: String, CaseIterable {
    case start, stop
    case resident, proportional, privateDirty
    case roundTrip, roundTripTail, floor, roundTripApart, pipelined
    case wakeUps, waitingWakeUps, idleCPU
    case change, changeTotal, transfer
    case cardIn, cardOut
    case packages, packageSize, onlinePackages, onlinePackageSize
    case manyReaders, manyReadersMemory, afterLoad
    case auth, authBeyond, authProcessor, tenAuths, authMemory, authDirty, peerAuth
    case daemonSize, clientSize, cardSize
    case nfcShort, nfcLong, nfcWakeUps
    case adverts, advertsMemory
    case scanClient, floodTail, floodQuietTail, floodMemory
    case flips, flipsMean, flipsAverage, delay, delayMean, delayAverage

    var title: String {
        switch self {
        case .start: "exec to first GET_INFO answer, median"
        case .stop: "SIGTERM to end, median"
        case .resident: "resident memory, idle, PC/SC on"
        case .proportional: "proportional share of it (PSS)"
        case .privateDirty: "private dirty memory"
        case .roundTrip: "GET_INFO round trip, median, on one processor"
        case .roundTripTail: "GET_INFO round trip, p99"
        case .floor: "a bare echo of the same size (machine's floor)"
        case .roundTripApart: "GET_INFO round trip, wherever the kernel puts both"
        case .pipelined: "pipelined GET_INFO answers"
        case .wakeUps: "wake-ups, idle, two readers, quiet client"
        case .waitingWakeUps: "wake-ups while it waits in ENTER_PIN"
        case .idleCPU: "CPU while two readers are watched"
        case .change: "RUN_CHANGE_PIN beyond the card, median"
        case .changeTotal: "RUN_CHANGE_PIN, the card included, median"
        case .transfer: "one APDU through pcscd and vpcd (floor)"
        case .cardIn: "card in to READER, after pcscd and card, median"
        case .cardOut: "card out to READER, after pcscd, median"
        case .packages: "Debian packages beside pcscd"
        case .packageSize: "their installed size"
        case .onlinePackages: "the same with libcurl, for RUN_AUTH alone"
        case .onlinePackageSize: "their installed size"
        case .manyReaders: "50 PIN changes on 50 virtual readers at once"
        case .manyReadersMemory: "resident memory after these"
        case .afterLoad: "resident memory after 500 clients and pipelining"
        case .auth: "RUN_AUTH on a virtual card, the whole of it, median"
        case .authBeyond: "the same beyond the eID-Server's own time, median"
        case .authProcessor: "processor time of badged and virtual card for it, mean"
        case .tenAuths: "ten at once on ten readers, against one; cards of 1 ms"
        case .authMemory: "more resident memory than before the first of them"
        case .authDirty: "of that private and dirty"
        case .peerAuth: "RUN_AUTH against AusweisApp2's, one card, one server"
        case .daemonSize: "badged, stripped"
        case .clientSize: "badgectl, stripped"
        case .cardSize: "badged-virtual-card, stripped"
        case .nfcShort: "NFC: 200-byte APDU, to libnfc's own framing"
        case .nfcLong: "NFC: 30 000-byte APDU, to a plain C client"
        case .nfcWakeUps: "NFC: wake-ups, a board and no card"
        case .adverts: "advertising reports decoded, filtered and tracked"
        case .advertsMemory: "growth of the heap meanwhile"
        case .scanClient: "the same in badged, replayed to a client"
        case .floodTail: "GET_INFO round trip in a flood of readers, p99, median of 10 parts"
        case .floodQuietTail: "the same without the flood"
        case .floodMemory: "growth of resident memory in it"
        case .flips: "changes of mind too many, per walk"
        case .flipsMean: "of a mean of three values"
        case .flipsAverage: "of a moving average (0.3) with 16 dB"
        case .delay: "right for good about a door after, mean"
        case .delayMean: "a mean of three values"
        case .delayAverage: "a moving average (0.3) with 16 dB"
        }
    }

    var unit: String {
        switch self {
        case .start, .stop, .change, .changeTotal, .cardIn, .cardOut, .manyReaders, .auth, .authBeyond, .authProcessor,
            .delay, .delayMean, .delayAverage:
            "ms"
        case .resident, .proportional, .privateDirty, .packageSize, .onlinePackageSize, .manyReadersMemory, .afterLoad,
            .authMemory, .authDirty, .daemonSize, .clientSize, .cardSize, .floodMemory:
            "MB"
        case .roundTrip, .roundTripTail, .floor, .roundTripApart, .transfer, .floodTail, .floodQuietTail: "µs"
        case .pipelined, .wakeUps, .waitingWakeUps, .nfcWakeUps, .adverts, .scanClient: "/s"
        case .nfcShort, .nfcLong, .peerAuth: "×"
        case .idleCPU: "%"
        case .advertsMemory: "bytes"
        case .packages, .onlinePackages, .tenAuths, .flips, .flipsMean, .flipsAverage: ""
        }
    }

    /// Digits after the point.
    var digits: Int {
        switch self {
        case .pipelined, .packages, .onlinePackages, .manyReaders, .adverts, .advertsMemory, .scanClient, .delay,
            .delayMean,
            .delayAverage:
            0
        case .flips, .flipsMean, .flipsAverage: 3
        case .idleCPU: 3
        case .wakeUps, .waitingWakeUps, .nfcWakeUps: 2
        case .cardIn, .cardOut, .change, .changeTotal, .tenAuths, .nfcShort, .nfcLong, .peerAuth: 2
        default: 1
        }
    }

    /// AusweisApp2 1.26.2 headless, as measured on a machine of this kind.
    var peer: String {
        switch self {
        case .start: "53"
        case .stop: "16.5"
        case .resident: "39"
        case .proportional: "38"
        case .privateDirty: "4.3"
        case .roundTrip, .roundTripApart: "105-204"
        case .roundTripTail: "303"
        case .pipelined: "7400-25000"
        case .wakeUps, .waitingWakeUps: "6.1-6.6"
        case .idleCPU: "0.43"
        case .change: "11.7"
        case .changeTotal: "18.8"
        case .cardIn, .cardOut: "400"
        case .packages, .onlinePackages: "112"
        case .packageSize, .onlinePackageSize: "249"
        case .floor, .transfer, .manyReaders, .manyReadersMemory, .afterLoad, .auth, .authBeyond, .authProcessor,
            .tenAuths, .authMemory, .authDirty, .peerAuth, .daemonSize, .clientSize, .cardSize, .nfcShort, .nfcLong,
            .nfcWakeUps, .adverts, .advertsMemory, .scanClient, .floodTail, .floodQuietTail, .floodMemory, .flips,
            .flipsMean, .flipsAverage, .delay, .delayMean, .delayAverage:
            ""
        }
    }

    /// Worst value that is allowed; for `pipelined` the smallest. "0" is kept to what the last digit shown can say:
    /// a process that really sleeps shows 0, a timer of a minute would not.
    var limit: Double? {
        switch self {
        case .start: 12
        case .resident: 16
        case .roundTrip: 35
        case .pipelined: 100_000
        case .wakeUps, .waitingWakeUps, .nfcWakeUps: 0
        case .idleCPU: 0
        case .nfcShort: 1.3
        case .nfcLong: 1.5
        case .change: 6
        case .cardIn, .cardOut: 5
        case .authBeyond: 60
        case .tenAuths: 4
        case .peerAuth: 1
        case .authMemory, .authDirty: 1
        case .packages: 15
        case .packageSize: 40
        case .adverts: 200_000
        case .advertsMemory: 0
        case .scanClient: 50_000
        case .floodMemory: 1
        default: nil
        }
    }

    var isBetterWhenLarge: Bool { self == .pipelined || self == .adverts || self == .scanClient }

    /// So many times worse than the baseline is still noise.
    var noise: Double {
        switch self {
        // Counted, not timed: only a change of ours or of Debian's moves them.
        case .packages, .packageSize, .onlinePackages, .onlinePackageSize, .daemonSize, .clientSize, .cardSize: 1.05
        // Pages: a little differs by how the kernel reads ahead.
        case .resident, .proportional, .privateDirty: 1.15
        // How much malloc gives back depends on how the threads met.
        case .afterLoad, .manyReadersMemory: 1.4
        case .authMemory, .authDirty, .floodMemory: 4
        // Medians of milliseconds on a machine that others use too.
        case .start, .stop, .change, .changeTotal, .manyReaders, .auth, .authBeyond, .authProcessor, .tenAuths:
            1.6
        // One sleeping core more or less awake doubles a round trip.
        case .roundTrip, .floor, .roundTripApart, .transfer, .pipelined, .adverts, .scanClient: 2
        case .roundTripTail, .floodTail, .floodQuietTail: 4
        // Two threads race for two cores, and the difference of their times is small.
        case .cardIn, .cardOut: 3
        case .wakeUps, .waitingWakeUps, .nfcWakeUps, .idleCPU, .advertsMemory: 1
        // Ratios of one run: their limit says enough.
        case .nfcShort, .nfcLong, .peerAuth: 2
        // The same walks, the same verdicts.
        case .flips, .flipsMean, .flipsAverage, .delay, .delayMean, .delayAverage: 1.01
        }
    }

    /// Below this a value is as good as none, and no ratio is taken.
    var negligible: Double {
        switch self {
        case .cardIn, .cardOut: 0.5
        case .stop: 2
        case .authMemory, .authDirty, .floodMemory: 1
        default: 0
        }
    }
}

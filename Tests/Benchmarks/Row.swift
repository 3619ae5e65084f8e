// SPDX-License-Identifier: GPL-3.0-or-later

/// A figure of the report. The raw value is its name in baseline.json and for `--only`.
///
/// A time depends on the machine. So a time is judged by its ratio to a floor: a time of a simpler program that is
/// measured in the same run. Counts, sizes and ratios are judged as they are.
enum Row: String, CaseIterable {
    case start, startFloor, stop
    case resident, proportional, privateDirty
    case roundTrip, roundTripTail, floor, roundTripApart, floorApart, pipelined
    case wakeUps, waitingWakeUps, idleCPU
    case change, changeTotal, transfer
    case cardIn, cardOut
    case tapPKOC, tapAliro, tapTransfer
    case documentRead, documentExchange, documentCommands, documentCancel, masterList, documentChain
    case mdocChecks, mdocRead, mdocCommands
    case walletSign, walletSetup, walletTransfer, walletMemory, walletWakeUps
    case vaultOpen, keySign, tpmSign, vaultWakeUps
    case mpinLogin, mpinPlain
    case fleetEvent, fleetMemory
    case panelCPU, panelPoll, panelFloor, panelMemory, panelTap
    case packages, packageSize, onlinePackages, onlinePackageSize
    case manyReaders, manyReadersMemory, afterLoad
    case auth, authBeyond, authServer, authProcessor, tenAuths, authMemory, authDirty
    case peerStart, peerMemory, peerRoundTrip, peerChange, peerAuth
    case daemonSize, clientSize, cardSize
    case nfcShort, nfcLong, nfcWakeUps
    case adverts, advertsMemory
    case scanClient, floodTail, floodQuietTail, floodMemory
    case flips, flipsMean, flipsAverage, delay, delayMean, delayAverage

    /// What is known about a row before it is measured.
    struct Facts {
        let title: String
        let unit: String
        /// Digits after the point.
        let digits: Int
        /// The row to which the ratio is taken. Of rows with the unit "/s", the floor is a time of the same event.
        var floor: Row?
        /// Worst value that is allowed; with a floor, the worst ratio.
        var limit: Double?
        /// A ratio to the baseline above this one is a failure; nil when the row is not compared.
        var noise: Double?

        init(
            _ title: String,
            _ unit: String,
            _ digits: Int,
            of floor: Row? = nil,
            limit: Double? = nil,
            noise: Double? = nil
        ) {
            (self.title, self.unit, self.digits) = (title, unit, digits)
            (self.floor, self.limit, self.noise) = (floor, limit, noise)
        }
    }

    var facts: Facts {
        switch self {
        case .start: Facts("exec to first GET_INFO answer, median", "ms", 1, of: .startFloor, limit: 25, noise: 1.6)
        case .startFloor: Facts("the same of a bare echo (floor)", "ms", 2)
        case .stop: Facts("SIGTERM to end, median", "ms", 1)

        case .resident: Facts("resident memory, idle, PC/SC on", "MB", 1, limit: 18, noise: 1.15)
        case .proportional: Facts("proportional share of it (PSS)", "MB", 1, noise: 1.15)
        case .privateDirty: Facts("private dirty memory", "MB", 1, noise: 1.15)

        case .roundTrip:
            Facts("GET_INFO round trip, median, on one processor", "µs", 1, of: .floor, limit: 2.5, noise: 1.4)
        case .roundTripTail: Facts("GET_INFO round trip, p99", "µs", 1, of: .floor, noise: 4)
        case .floor: Facts("a bare echo of the same size (floor)", "µs", 1)
        case .roundTripApart: Facts("GET_INFO round trip, on any processors", "µs", 1, of: .floorApart, noise: 2)
        case .floorApart: Facts("the bare echo on any processors (floor)", "µs", 1)
        case .pipelined: Facts("pipelined GET_INFO answers", "/s", 0, of: .floor, limit: 0.6, noise: 2)

        case .wakeUps: Facts("wake-ups, idle, two readers, quiet client", "/s", 2, limit: 0)
        case .waitingWakeUps: Facts("wake-ups while it waits in ENTER_PIN", "/s", 2, limit: 0)
        case .idleCPU: Facts("CPU while two readers are watched", "%", 3, limit: 0)

        case .change: Facts("RUN_CHANGE_PIN beyond the card, median", "ms", 2, of: .transfer, limit: 75, noise: 1.6)
        case .changeTotal: Facts("RUN_CHANGE_PIN, the card included, median", "ms", 2, of: .transfer, noise: 1.6)
        case .transfer: Facts("one APDU through pcscd and vpcd (floor)", "µs", 1)
        case .cardIn:
            Facts("card in to READER, after pcscd and card, median", "ms", 2, of: .transfer, limit: 36, noise: 3)
        case .cardOut: Facts("card out to READER, after pcscd, median", "ms", 2, of: .transfer, limit: 24, noise: 3)

        // The goals are 5 ms for these two, and 4 and 150 ms below. A transfer takes 29 to 107 µs on the machines of
        // docs/benchmarks.md.
        case .tapPKOC:
            Facts("PKOC: tap to CREDENTIAL, after pcscd and card, median", "ms", 2, of: .tapTransfer, limit: 47)
        case .tapAliro: Facts("the same with Aliro, standard phase", "ms", 2, of: .tapTransfer, limit: 47)
        case .tapTransfer: Facts("one APDU to these cards through pcscd and vpcd (floor)", "µs", 1)

        // The limits are the goals.
        case .documentRead:
            Facts(
                "a passport with BAC, DG1, DG2 of 13.6 KB beyond wire and card",
                "ms",
                2,
                of: .documentExchange,
                limit: 1.2
            )
        case .documentExchange: Facts("a bare exchange of as many commands and bytes, and the card (floor)", "ms", 2)
        // EF.ATR/INFO of the document allows answers of 1000 bytes.
        case .documentCommands: Facts("commands for it", "", 0, limit: 27, noise: 1.05)
        case .documentCancel: Facts("CANCEL of a document on a chip of 300 ms to the end, median", "ms", 1, limit: 100)
        // 1.3 times the eight commands of a Python reader (2.7 ms), and 2 ms.
        case .mdocRead: Facts("a phone, tap to verdict of ageOver beyond the phone, median", "ms", 2, limit: 5.5)
        case .mdocCommands: Facts("commands for it", "", 0, limit: 8, noise: 1.05)
        case .masterList: Facts("master list of 500 authorities, imported", "ms", 0, limit: 1000)
        case .documentChain: Facts("the authority of a signer among 500, median", "ms", 2, limit: 5)
        case .mdocChecks:
            Facts("mobile document: session, request, and the checks of one, median", "ms", 2, limit: 0.6)

        case .walletSign:
            Facts("a signature (ACTIVATE_USER) beyond the Keycard, median", "ms", 2, of: .walletTransfer, limit: 45)
        case .walletSetup:
            Facts("SETUP_DEVICE, the Keycard included, median", "ms", 1, of: .walletTransfer, limit: 1400)
        case .walletTransfer: Facts("one APDU to the Keycard through pcscd and vpcd (floor)", "µs", 1)
        case .walletMemory:
            Facts("resident memory with a paired Keycard, beyond that after a PIN change", "MB", 1, limit: 1.5)
        case .walletWakeUps: Facts("wake-ups, idle, with a Keycard", "/s", 2, limit: 0)

        // The limits are the goals. They are far above the values, so they need no floor.
        case .vaultOpen: Facts("opening of a vault with 1000 keys, all read, median", "ms", 1, limit: 50)
        case .keySign: Facts("a signature with a key of the vault in software, median", "ms", 2, limit: 1)
        case .tpmSign: Facts("the same with a key in a TPM (swtpm), median", "ms", 1)
        case .vaultWakeUps: Facts("wake-ups, idle, with the vault open", "/s", 2, limit: 0)

        // The goal is 15 ms. The plain requests take 1.0 to 1.1 ms on the machine of docs/benchmarks.md.
        case .mpinLogin:
            Facts("a login with M-Pin beyond the work of its servers, median", "ms", 1, of: .mpinPlain, limit: 30)
        case .mpinPlain: Facts("the same requests of a plain client, without work (floor)", "ms", 2)

        // The goals: 1000 events a second, and 6 kB a host.
        case .fleetEvent: Facts("an event of a fleet, from 1000 queues to a consumer, mean", "µs", 0, limit: 1000)
        case .fleetMemory: Facts("memory (PSS) of the broker for each host of this fleet", "KiB", 1, limit: 6)

        // The limits are the goals.
        case .panelCPU: Facts("CPU of badged-osdp, eight panels poll every 50 ms, secure channel", "%", 2, limit: 1)
        case .panelPoll: Facts("one of these polls, processor time", "µs", 1, of: .panelFloor, limit: 5)
        case .panelFloor: Facts("the same bytes through cat(1) (floor)", "µs", 1)
        case .panelMemory: Facts("memory (PSS) of badged-osdp meanwhile", "MB", 1, limit: 12)
        case .panelTap: Facts("tap to the answer of the next poll, median", "ms", 2, limit: 5)

        case .packages: Facts("Debian packages beside pcscd", "", 0, limit: 15, noise: 1.05)
        case .packageSize: Facts("their installed size", "MB", 1, limit: 40, noise: 1.05)
        case .onlinePackages: Facts("the same with badged-network, for RUN_AUTH", "", 0, noise: 1.05)
        case .onlinePackageSize: Facts("their installed size", "MB", 1, noise: 1.05)

        case .manyReaders: Facts("50 PIN changes on 50 virtual readers at once", "ms", 0)
        case .manyReadersMemory: Facts("resident memory after these", "MB", 1, noise: 1.4)
        case .afterLoad: Facts("resident memory after 500 clients and pipelining", "MB", 1, noise: 1.4)

        case .auth: Facts("RUN_AUTH on a virtual card, median", "ms", 1, of: .authServer, noise: 1.6)
        case .authBeyond:
            Facts(
                "the same without the time of the eID-Server, median",
                "ms",
                1,
                of: .authServer,
                limit: 15,
                noise: 1.6
            )
        case .authServer: Facts("the time of the eID-Server for one (floor)", "ms", 1)
        case .authProcessor:
            Facts("processor time of badged and virtual card for it, mean", "ms", 1, of: .authServer, noise: 1.6)
        case .tenAuths: Facts("ten at once on ten readers, to one; cards of 1 ms", "×", 2, limit: 4, noise: 1.6)
        case .authMemory: Facts("resident memory after 60 authentications, growth", "MB", 1, limit: 12)
        case .authDirty: Facts("private dirty memory after these, growth", "MB", 1, limit: 2.5)

        case .peerStart: Facts("exec to first answer, to that of AusweisApp2", "×", 2, limit: 1 / 3)
        case .peerMemory: Facts("memory (PSS) with a card, to that of AusweisApp2", "×", 2, limit: 0.36)
        case .peerRoundTrip: Facts("GET_INFO round trip, to that of AusweisApp2", "×", 2, limit: 1 / 3)
        case .peerChange: Facts("RUN_CHANGE_PIN, to that of AusweisApp2", "×", 2, limit: 1 / 1.6)
        case .peerAuth: Facts("RUN_AUTH, to that of AusweisApp2", "×", 2, limit: 1)

        case .daemonSize: Facts("badged, stripped", "MB", 1, noise: 1.05)
        case .clientSize: Facts("badgectl, stripped", "MB", 1, noise: 1.05)
        case .cardSize: Facts("badged-virtual-card, stripped", "MB", 1, noise: 1.05)

        // badged-nfc is another process, so each APDU costs two more switches of context. A card needs milliseconds.
        case .nfcShort: Facts("NFC: APDU of 200 bytes, to plain C with libnfc's framing", "×", 2, limit: 3)
        case .nfcLong: Facts("NFC: APDU of 30 000 bytes, to plain C", "×", 2, limit: 1.5)
        case .nfcWakeUps: Facts("NFC: wake-ups, a board and no card", "/s", 2, limit: 0)

        case .adverts:
            Facts("advertising reports decoded, filtered and tracked", "/s", 0, of: .floor, limit: 0.4, noise: 2)
        case .advertsMemory: Facts("growth of the heap meanwhile", "bytes", 0, limit: 0)
        case .scanClient: Facts("the same in badged, replayed to a client", "/s", 0, of: .floor, limit: 1.5, noise: 2)
        case .floodTail:
            Facts("GET_INFO in a flood of readers, p99, median of 10 parts", "µs", 1, of: .floodQuietTail, limit: 6)
        case .floodQuietTail: Facts("the same without the flood (floor)", "µs", 1)
        case .floodMemory: Facts("growth of resident memory in it", "MB", 1, limit: 1)

        // The same walks give the same verdicts. The limit of `flips` and `delay` is the better of the other two.
        case .flips: Facts("wrong changes of the verdict, per walk", "", 3, noise: 1.01)
        case .flipsMean: Facts("of a mean of three values", "", 3, noise: 1.01)
        case .flipsAverage: Facts("of a moving average (0.3) with 16 dB", "", 3, noise: 1.01)
        case .delay: Facts("time to the final right verdict about a door, mean", "ms", 0, noise: 1.01)
        case .delayMean: Facts("of a mean of three values", "ms", 0, noise: 1.01)
        case .delayAverage: Facts("of a moving average (0.3) with 16 dB", "ms", 0, noise: 1.01)
        }
    }
}

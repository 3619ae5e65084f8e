// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Measures badged as a client sees it. run.sh starts pcscd and passes a folder and the programs.
@main struct Program {
    private static let usage = """
        usage: badged-bench --badged PATH --floor PATH --folder PATH [--virtual-card PATH] [--eid-server PATH] [--tpm SOCKET] [--mpin-server FILE] [--documents FILE] [--baseline FILE] [--write-baseline]
                            [--given ROW=NUMBER]... [--only ROW]... [--divisor N] [--hosts N] [--broker PORT]

        """

    static func main() {
        do throws(BenchError) {
            let settings = try read(CommandLine.arguments.dropFirst())
            exit(try run(settings))
        } catch {
            complain("badged-bench: error: \(error)")
            exit(2)
        }
    }

    private static func read(_ arguments: ArraySlice<String>) throws(BenchError) -> Settings {
        var settings = Settings()
        var rest = arguments
        func value() throws(BenchError) -> String {
            guard let value = rest.popFirst() else { throw BenchError("a value is missing\n\(usage)") }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--badged": settings.badged = try value()
            case "--floor": settings.floor = try value()
            case "--virtual-card": settings.virtualCard = try value()
            case "--eid-server": settings.eidServer = try value()
            case "--tpm": settings.tpm = try value()
            case "--mpin-server": settings.mpinServer = try value()
            case "--broker": settings.broker = UInt16(try value())
            case "--hosts": settings.hosts = Int(try value()) ?? 1000
            case "--documents": settings.documents = try value()
            case "--folder": settings.folder = try value()
            case "--baseline": settings.baseline = try value()
            case "--write-baseline": settings.writesBaseline = true
            case "--divisor": settings.divisor = Int(try value()) ?? 1
            case "--only":
                let name = try value()
                guard Row(rawValue: name) != nil else {
                    let rows = Row.allCases.map(\.rawValue).joined(separator: ", ")
                    throw BenchError("no row \(name); there are \(rows)")
                }
                settings.only.insert(name)
            case "--given":
                let parts = try value().split(separator: "=")
                guard parts.count == 2, let row = Row(rawValue: String(parts[0])), let number = Double(parts[1]) else {
                    throw BenchError("--given takes ROW=NUMBER")
                }
                settings.given[row] = number
            default: throw BenchError("unknown option \(argument)\n\(usage)")
            }
        }
        guard !settings.badged.isEmpty, !settings.floor.isEmpty, !settings.folder.isEmpty, settings.divisor > 0 else {
            throw BenchError("--badged, --floor and --folder are needed\n\(usage)")
        }
        return settings
    }

    /// - Returns: the exit code.
    private static func run(_ settings: Settings) throws(BenchError) -> Int32 {
        signal(SIGPIPE, SIG_IGN)
        var report = Report(only: settings.only)
        for (row, number) in settings.given { report.add(row, number, "") }
        say("start and end")
        if report.wants(.start, .startFloor, .stop) { try StartBench.run(settings, &report) }
        say("round trips")
        if report.wants(
            .roundTrip,
            .roundTripTail,
            .floor,
            .roundTripApart,
            .floorApart,
            .pipelined,
            .adverts,
            .scanClient
        ) {
            try RoundTripBench.run(settings, &report)
        }
        say("load")
        if report.wants(.afterLoad) { try LoadBench.run(settings, &report) }
        if report.wants(.manyReaders, .manyReadersMemory) { try ManyReadersBench.run(settings, &report) }
        say("authentications")
        if report.wants(.auth, .authBeyond, .authServer, .authProcessor, .tenAuths, .authMemory, .authDirty) {
            try AuthenticationBench.run(settings, &report)
        }
        say("cards")
        if report.wants(.cardIn, .cardOut, .change, .changeTotal, .transfer, .waitingWakeUps) {
            try CardBench.run(settings, &report)
        }
        if report.wants(.tapPKOC, .tapAliro, .tapTransfer) { try TapBench.run(settings, &report) }
        if report.wants(
            .documentRead,
            .documentExchange,
            .documentCommands,
            .documentCancel,
            .masterList,
            .documentChain,
            .mdocChecks
        ) {
            try DocumentBench.run(settings, &report)
        }
        if report.wants(.mdocRead, .mdocCommands) { try MdocBench.run(settings, &report) }
        if report.wants(.walletSign, .walletSetup, .walletTransfer, .walletMemory, .walletWakeUps) {
            try WalletBench.run(settings, &report)
        }
        if report.wants(.vaultOpen, .keySign, .tpmSign, .vaultWakeUps) { try KeyBench.run(settings, &report) }
        if report.wants(.mpinLogin, .mpinPlain) { try MPinBench.run(settings, &report) }
        say("a fleet")
        if report.wants(.fleetEvent, .fleetMemory) { try FleetBench.run(settings, &report) }
        say("door panels")
        if report.wants(.panelCPU, .panelPoll, .panelMemory, .panelTap) { try PanelBench.run(settings, &report) }
        say("idle")
        if report.wants(.nfcShort, .nfcLong, .nfcWakeUps) { try NFCBench.run(settings, &report) }
        if report.wants(.resident, .proportional, .privateDirty, .wakeUps, .idleCPU) {
            try IdleBench.run(settings, &report)
        }
        say("door readers")
        try DoorReaderBench.run(settings, &report)
        try ScanBench.run(settings, &report)
        print("\(Baseline.thisMachine())\n")
        let baseline = try Baseline(path: settings.baseline)
        let failures = report.print(against: baseline)
        if settings.writesBaseline {
            var values = baseline?.values ?? [:]
            values.merge(report.values) { $1 }
            try Baseline(machine: Baseline.thisMachine(), values: values).write(to: settings.baseline)
            print("baseline written: \(settings.baseline)")
        }
        for failure in failures { print("FAILED: \(failure)") }
        return failures.isEmpty ? 0 : 1
    }

    private static func say(_ step: String) { complain("bench: \(step)") }

    /// A line on standard error.
    private static func complain(_ text: String) {
        let line = text + "\n"
        _ = write(2, line, line.utf8.count)
    }
}

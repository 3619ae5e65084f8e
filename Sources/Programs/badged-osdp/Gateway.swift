// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import OSDP
import Text

/// All buses, and the taps that go to their panels.
@Loop final class Gateway {
    private let files: LineFiles
    private let link: DaemonLink
    private let service: ServiceNotification
    private var configuration = OSDPConfiguration()
    private var panels: [PanelBus] = []
    private var readers: [ReaderBus] = []
    private let signs: SignsOfLife

    init(_ files: LineFiles, _ link: DaemonLink, _ service: ServiceNotification) {
        self.files = files
        self.link = link
        self.service = service
        signs = SignsOfLife(service)
    }

    func run(_ settings: LineSettings) async {
        use(settings)
        service.ready(status: status)
        signs.tell()
        await link.watch(
            tapped: { [unowned self] tap in tapped(tap) },
            watches: { [unowned self] isWatching in
                for panel in panels { panel.setReading(isWatching) }
            }
        )
    }

    private var status: String { "serving \(panels.count) panels" }

    private func tapped(_ tap: DaemonLink.Tap) {
        for panel in panels where panel.wants(tap.reader) {
            do throws(Malformed) {
                let card = try CardRule.number(of: tap.card, for: panel.name, configuration.rules)
                panel.present(card, tap)
            } catch {
                let text = "\(panel.name): tap \(tap.number) at '\(tap.reader)' is not told: \(error.text)"
                LineLog.write(.notice, "\(panel.name) not told \(tap.reader)", text)
                panel.refuse()
            }
        }
    }

    /// The program ends: what becomes of the cards that wait is in the log.
    func end() {
        for panel in panels { panel.end("badged-osdp ends") }
        link.end()
    }

    // MARK: Settings

    /// Reads the configuration again. A file with an error changes nothing.
    func reload() {
        service.reloading()
        defer { service.ready(status: status) }
        do throws(LineFiles.StartErrors) {
            let new = try files.read()
            let old = configuration
            use(new)
            Log.notice("the settings were read again: \(files.path) is in force")
            if old.folder != new.configuration.folder || old.socket != new.configuration.socket {
                Log.warning("socket and folder of [server] stay as they were until a restart")
            }
        } catch {
            for error in error.list { Log.error("\(error.message); hint: \(error.hint)") }
            Log.error("the settings are refused, and the old ones stay")
            Log.notice("credentials, and keys in folders that are new, need systemctl restart badged-osdp")
        }
    }

    /// Puts settings in force. Lines whose settings and keys did not change go on.
    private func use(_ new: LineSettings) {
        configuration = new.configuration
        Log.level = configuration.logLevel
        let wantedPanels = Array(zip(configuration.panels, new.peripherals))
        let wantedReaders = configuration.readerLines
        // All that end do so first: a line may have another name now.
        panels.removeAll { bus in
            if wantedPanels.contains(where: { bus.serves($0, $1) }) { return false }
            bus.end("the settings of its panel have changed")
            return true
        }
        readers.removeAll { bus in
            if wantedReaders.contains(where: { bus.serves($0.line, $0.members, new.keys) }) { return false }
            bus.end()
            return true
        }
        link.keep(Set(configuration.panels.map(\.bus.name) + configuration.readers.map(\.name)))
        link.needsTaps = !configuration.panels.isEmpty
        panels = wantedPanels.map { panel, peripheral in
            if let old = panels.first(where: { $0.serves(panel, peripheral) }) { return old }
            let bus = PanelBus(panel, peripheral, files.folder, link)
            bus.setReading(link.isWatching)
            bus.start()
            return bus
        }
        readers = wantedReaders.map { line, members in
            if let old = readers.first(where: { $0.serves(line, members, new.keys) }) { return old }
            let bus = ReaderBus(line, members, new.keys, link)
            bus.start()
            return bus
        }
    }
}

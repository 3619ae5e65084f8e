// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
import Text

/// Where the bytes of a bus go.
package enum OSDPLine: Sendable, Hashable {
    /// A serial device.
    case device(String)
    /// Connects to a port. Numbers only: no name is looked up.
    case connect(address: String, port: Int)
    /// Waits at a port for the other side, one at a time.
    case listen(address: String, port: Int)

    package var text: String {
        switch self {
        case .device(let path): path
        case .connect(let address, let port): "tcp \(address):\(port)"
        case .listen(let address, let port): "port \(address):\(port)"
        }
    }
}

/// The settings of osdp.conf(5). The format is that of badged.conf(5).
package struct OSDPConfiguration: Sendable, Equatable {
    package static let defaultPath = "/etc/badged/osdp.conf"
    package static let standardFolder = "/var/lib/badged-osdp"

    /// What panels and readers in the wall have in common.
    package struct Bus: Sendable, Equatable {
        package let name: String
        package var line: OSDPLine?
        package var baud = 9600
        package var address = 0
        package var security = OSDPPeripheral.Security.required
        package var keyFile: String?
        /// Whether the kernel switches the direction of the line.
        package var isRS485 = false

        init(name: String) { self.name = name }
    }

    /// `[panel NAME]`: badged-osdp is a reader of this panel.
    package struct Panel: Sendable, Equatable {
        package var bus: Bus
        /// Minutes of the install mode after the start; 0: none.
        package var installMinutes = 0
        package var acceptsCommunication = false
        /// Milliseconds before an answer.
        package var turnaround = 0
        /// Seconds that a card waits.
        package var wait = 5
        package var leds = 1
        package var hasBuzzer = true
        package var rows = 1
        package var outputs = 0
        /// What clients show while the panel is silent.
        package var silence = OSDPDisplay.Silence.keep
        package var silenceText = ""
        /// Who checks the signatures of cards with PKOC.
        package var pkoc = Checker.reader
        /// The readers of badged whose taps the panel gets; empty: all.
        package var readers: [String] = []
        /// Whether nothing in the settings leads to a key that is required.
        package var lacksKey: Bool { bus.keyFile == nil && bus.security == .required && installMinutes == 0 }

        /// badged, or the panel as well.
        package enum Checker: String, Sendable, CaseIterable { case reader, panel }

        /// GPIO lines of the board, by what they show.
        package var lines: [Indicator: GPIOLine] = [:]

        /// What a GPIO line shows.
        package enum Indicator: Sendable, Hashable {
            case red, green, blue, buzzer
            case output(Int)

            init?(_ word: String) {
                switch word {
                case "red": self = .red
                case "green": self = .green
                case "blue": self = .blue
                case "buzzer": self = .buzzer
                default:
                    guard word.hasPrefix("output"), let number = Int(word.dropFirst(6)), (0..<8).contains(number) else {
                        return nil
                    }
                    self = .output(number)
                }
            }
        }

        package struct GPIOLine: Sendable, Hashable {
            package let chip: String
            package let line: Int
        }
    }

    package var panels: [Panel] = []
    /// `[reader NAME]`: readers in the wall, in the order of the file.
    package var readers: [Bus] = []
    package var rules = CardRule.standard
    package var formats: [String: CardFormat] = [:]
    package var folder = OSDPConfiguration.standardFolder
    /// nil: that of this system.
    package var socket: String?
    package var logLevel = Log.Level.notice
    /// The names of the panels, readers and formats with a line that cannot be used; empty: another section has one.
    /// Nothing is told of what such a section lacks.
    package private(set) var faulty: Set<String> = []

    package init() {}

    private struct Draft {
        var fields: (text: String, place: String)?
        var parities = ""
        var format: [String] = []
    }

    /// Reads a file, and appends the error of each line that cannot be used.
    package init(path: String, errors: inout [StartError]) {
        do throws(StartError) {
            guard let bytes = try INIFile.contents(of: path, checksOwner: true) else {
                throw .inConfiguration("there is no file \(path)", hint: "see osdp.conf(5)")
            }
            read(bytes, path, &errors)
            check(path, &errors)
        } catch {
            errors.append(error)
            faulty = [""]
        }
    }

    package mutating func read(_ bytes: [UInt8], _ file: String, _ errors: inout [StartError]) {
        var section: String?
        var name = ""
        var seen: Set<String> = []
        var drafts: [String: Draft] = [:]
        var ruleTexts: [ConfigurationValue] = []
        for (number, content) in INIFile(bytes: bytes).lines {
            let place = "\(file), line \(number)"
            do throws(StartError) {
                switch content {
                case .fault(let text, let hint): throw .inConfiguration("\(place): \(text)", hint: hint)
                case .section(let header):
                    section = ""
                    name = ""
                    let words = CardRule.words(header)
                    section = try begin(words, header, place, &seen)
                    name = words.count == 2 ? words[1] : ""
                case .value(let key, let text):
                    guard let section else {
                        throw .beforeSections(key, place, "osdp.conf(5)")
                    }
                    // The error of an unknown section is at its header.
                    guard !section.isEmpty else { continue }
                    let value = ConfigurationValue(text, "\(place): [\(section)] \(key)")
                    if section == "rules", key == "rule" {
                        ruleTexts.append(value)
                        continue
                    }
                    guard seen.insert("[\(section) \(name)] \(key)").inserted else {
                        throw .inConfiguration("\(place): \(key) occurs twice", hint: "leave one of the two lines")
                    }
                    guard !text.isEmpty else { continue }
                    switch section {
                    case "server": try readServer(key, value, place)
                    case "panel": try readPanel(key, value, place)
                    case "reader":
                        guard !readers.isEmpty else { continue }
                        guard let rule = Self.busKeys[key] else {
                            throw Self.unknown(key, in: section, Self.busKeys.keys, place)
                        }
                        try rule.read(&readers[readers.count - 1], value)
                    case "format": try Self.readFormat(key, value, &drafts[name, default: Draft()], place)
                    default: throw Self.unknown(key, in: section, ["rule"], place)
                    }
                }
            } catch {
                errors.append(error)
                faulty.insert(name)
            }
        }
        finish(drafts, ruleTexts, &errors)
    }

    /// Begins a section.
    private mutating func begin(
        _ words: [String],
        _ header: String,
        _ place: String,
        _ seen: inout Set<String>
    ) throws(StartError) -> String {
        let known = ["server", "rules", "panel NAME", "reader NAME", "format NAME"]
        let hasName = words.count == 2
        guard let first = words.first, (1...2).contains(words.count),
            known.contains(hasName ? "\(first) NAME" : first)
        else {
            let hint = Suggestion.question(header, among: known) + "see osdp.conf(5)"
            throw .inConfiguration("\(place): unknown section [\(header)]", hint: hint)
        }
        guard hasName else { return first }
        let isName =
            (1...32).contains(words[1].utf8.count)
            && words[1].utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                    || [0x5F, 0x2E, 0x2D].contains($0)
            } && words[1].utf8.first != 0x2E
        guard isName else {
            throw .inConfiguration(
                "\(place): '\(words[1])' is no name",
                hint: "1 to 32 letters, digits, and the characters _ . -, not . first"
            )
        }
        // Files and messages name both by this name alone.
        let space = first == "format" ? "format" : "bus"
        guard seen.insert("\(space) \(words[1])").inserted else {
            throw .inConfiguration("\(place): the name \(words[1]) occurs twice", hint: "choose another name")
        }
        if first == "panel" { panels.append(Panel(bus: Bus(name: words[1]))) }
        if first == "reader" { readers.append(Bus(name: words[1])) }
        return first
    }

    private static func unknown(
        _ key: String,
        in section: String,
        _ keys: some Sequence<String>,
        _ place: String
    ) -> StartError {
        let hint = Suggestion.question(key, among: keys) + "see osdp.conf(5)"
        return .inConfiguration("\(place): unknown key '\(key)' in [\(section)]", hint: hint)
    }

    private mutating func readServer(
        _ key: String,
        _ value: ConfigurationValue,
        _ place: String
    ) throws(StartError) {
        switch key {
        case "socket": socket = try value.absolutePath()
        case "folder": folder = try value.absolutePath()
        case "log": logLevel = try value.logLevel()
        default: throw Self.unknown(key, in: "server", ["socket", "folder", "log"], place)
        }
    }

    private mutating func readPanel(
        _ key: String,
        _ value: ConfigurationValue,
        _ place: String
    ) throws(StartError) {
        guard !panels.isEmpty else { return }
        let last = panels.count - 1
        if let rule = Self.busKeys[key] {
            try rule.read(&panels[last].bus, value)
        } else if let rule = Self.panelKeys[key] {
            try rule.read(&panels[last], value)
        } else {
            throw Self.unknown(key, in: "panel", Array(Self.busKeys.keys) + Array(Self.panelKeys.keys), place)
        }
    }

    private static func readFormat(
        _ key: String,
        _ value: ConfigurationValue,
        _ draft: inout Draft,
        _ place: String
    ) throws(StartError) {
        switch key {
        case "fields": draft.fields = (value.text, place)
        case "parities": draft.parities = value.text
        case "facility": draft.format.append("facility=\(try value.number(in: 0...Int(Int32.max)))")
        case "reversed": if try value.bool() { draft.format.append("reversed") }
        case "align":
            guard value.text == "left" || value.text == "right" else { throw value.refuse("left, right") }
            draft.format.append(value.text)
        default:
            throw unknown(key, in: "format", ["fields", "parities", "facility", "reversed", "align"], place)
        }
    }

    /// Makes the formats, and the rules that name them.
    private mutating func finish(
        _ drafts: [String: Draft],
        _ ruleTexts: [ConfigurationValue],
        _ errors: inout [StartError]
    ) {
        for (name, draft) in drafts.sorted(by: { $0.key < $1.key }) where !faulty.contains(name) {
            let place = draft.fields?.place ?? "[format \(name)]"
            do throws(Malformed) {
                guard CardFormat(named: name) == nil else { throw Malformed("badged-osdp has a format of this name") }
                guard let text = draft.fields?.text else { throw Malformed("fields is missing") }
                let plain = CardFormat(.fields(try CardFields(text, parities: draft.parities)))
                formats[name] = try CardFormat(words: [name] + draft.format, [name: plain])
            } catch {
                errors.append(.inConfiguration("\(place): format \(name): \(error.text)", hint: "see osdp.conf(5)"))
            }
        }
        guard !ruleTexts.isEmpty else { return }
        rules = []
        var taken = CardRule.Taken()
        for value in ruleTexts {
            do throws(Malformed) {
                let rule = try CardRule(value.text, formats)
                if let panel = rule.panel, !faulty.contains(""), !panels.contains(where: { $0.bus.name == panel }) {
                    errors.append(value.refuse("panel=NAME with the name of a panel of this file"))
                } else if !taken.insert(rule) {
                    errors.append(value.refuse("a rule for taps that no rule above takes, or move it above these"))
                }
                rules.append(rule)
            } catch {
                errors.append(value.refuse(error.text))
            }
        }
    }

    /// What single lines do not show.
    private func check(_ file: String, _ errors: inout [StartError]) {
        func refuse(_ text: String, _ hint: String) {
            errors.append(.inConfiguration("\(file): \(text)", hint: hint))
        }
        let panels = panels.filter { !faulty.contains($0.bus.name) }
        let readers = readers.filter { !faulty.contains($0.name) }
        if panels.isEmpty, readers.isEmpty, faulty.isEmpty {
            refuse("there is neither a panel nor a reader", "write a section [panel NAME] with device = /dev/...")
        }
        var users: [OSDPLine: [String]] = [:]
        for bus in panels.map(\.bus) {
            if let line = bus.line { users[line, default: []].append(bus.name) }
        }
        for group in Self.lines(of: readers) {
            users[group.line, default: []].append(group.members[0].name)
            if Set(group.members.map(\.address)).count < group.members.count {
                refuse("two readers at \(group.line.text) have one address", "give each reader an address of its own")
            }
            if Set(group.members.map(\.baud)).count > 1 {
                refuse("readers at \(group.line.text) have different baud rates", "a line has one baud rate")
            }
        }
        for (line, names) in users.sorted(by: { $0.key.text < $1.key.text }) where names.count > 1 {
            refuse("\(names.joined(separator: " and ")) use \(line.text)", "a line has one panel, or readers only")
        }
        for case .listen(let address, let port) in users.keys where !["0.0.0.0", "::"].contains(address) {
            for every in ["0.0.0.0", "::"] where users[.listen(address: every, port: port)] != nil {
                let line = OSDPLine.listen(address: address, port: port)
                refuse("\(line.text) is also one of port \(every):\(port)", "give each line a port of its own")
            }
        }
        for bus in panels.map(\.bus) + readers {
            if bus.line == nil { refuse("\(bus.name) has no line", "write device =, tcp = or listen =") }
        }
        for panel in panels where panel.bus.security == .off && panel.installMinutes > 0 {
            refuse("\(panel.bus.name): install needs the secure channel", "remove security = off")
        }
        for panel in panels where !panel.silenceText.isEmpty && (panel.silence == .keep || panel.rows == 0) {
            refuse("\(panel.bus.name) never shows silence_text", "write silence = dark or blink, and text = 1")
        }
        for panel in panels {
            for case .output(let number) in panel.lines.keys where number >= panel.outputs {
                refuse("\(panel.bus.name) has no output\(number)", "write outputs = \(number + 1)")
            }
        }
        var asked: Set<String> = []
        for panel in panels where panel.pkoc == .panel {
            let name = panel.bus.name
            if panel.bus.security != .required || panel.installMinutes > 0 {
                refuse("\(name): pkoc = panel needs the secure channel with a key", "write key = FILE, and no install")
            }
            if panel.readers.isEmpty {
                refuse("\(name): pkoc = panel is for readers that are named", "write readers = NAME")
            }
            if !asked.isDisjoint(with: panel.readers) {
                refuse("\(name): another panel asks the cards of its reader", "write pkoc = panel for one of them")
            }
            asked.formUnion(panel.readers)
        }
        for reader in readers where reader.security == .required && reader.keyFile == nil {
            refuse("\(reader.name) has no key", "write key = FILE, or security = off")
        }
    }

    /// The readers in the wall by their line, in the order of the file.
    package var readerLines: [(line: OSDPLine, members: [Bus])] { Self.lines(of: readers) }

    private static func lines(of readers: [Bus]) -> [(line: OSDPLine, members: [Bus])] {
        var groups: [(line: OSDPLine, members: [Bus])] = []
        for reader in readers {
            guard let line = reader.line else { continue }
            if let index = groups.firstIndex(where: { $0.line == line }) {
                groups[index].members.append(reader)
            } else {
                groups.append((line, [reader]))
            }
        }
        return groups
    }

    /// The files that the settings name.
    package var files: [String] { (panels.map(\.bus) + readers).compactMap(\.keyFile) }
}

extension OSDPConfiguration.Bus {
    /// The key in `keyFile`; nil: none is named.
    package func key(_ environment: Environment = systemEnvironment) throws(StartError) -> OSDPKey? {
        guard let keyFile else { return nil }
        let content = try SecretFile.read(keyFile, limit: 33, setting: "key of \(name)", environment)
        guard let key = OSDPKey(file: content) else {
            throw .inConfiguration(
                "\(keyFile) is no key",
                hint: "write 16 random bytes, or 32 hexadecimal digits: openssl rand -hex 16"
            )
        }
        guard !key.isDefault else {
            throw .inConfiguration(
                "\(keyFile) has the key of the installation, which everybody knows",
                hint: "make a key of your own: openssl rand -hex 16; let the panel set it with install = MINUTES"
            )
        }
        guard !key.isWeak else {
            throw .inConfiguration(
                "\(keyFile) has a key of 16 equal bytes, which is no secret",
                hint: "make a key of your own: openssl rand -hex 16"
            )
        }
        return key
    }
}

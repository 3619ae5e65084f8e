// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// The keys of `[panel NAME]` and `[reader NAME]`.
extension OSDPConfiguration {
    typealias BusTable = [String: SettingRule<Bus>]

    static let busKeys: BusTable = [
        "device": .init { bus, value throws(StartError) in
            let path = try value.absolutePath()
            guard path.hasPrefix("/dev/"), !path.contains("/../") else { throw value.refuse("a path below /dev") }
            try bus.use(.device(path), value)
        },
        "tcp": .init { bus, value throws(StartError) in
            let (address, port) = try value.addressAndPort()
            try bus.use(.connect(address: address, port: port), value)
        },
        "listen": .init { bus, value throws(StartError) in
            let (address, port) = try value.addressAndPort()
            try bus.use(.listen(address: address, port: port), value)
        },
        "baud": .init { bus, value throws(StartError) in
            guard let baud = Int(value.text), OSDPPeripheral.baudRates.contains(baud) else {
                throw value.refuse(OSDPPeripheral.baudRates.map(String.init).joined(separator: ", "))
            }
            bus.baud = baud
        },
        "address": .number(\.address, in: 0...126),
        "security": .word(\.security),
        "key": .path(\.keyFile),
        "rs485": .bool(\.isRS485),
    ]

    typealias PanelTable = [String: SettingRule<Panel>]

    static let panelKeys: PanelTable = [
        "install": .number(\.installMinutes, in: 0...1440),
        "comset": .bool(\.acceptsCommunication),
        "turnaround": .number(\.turnaround, in: 0...100),
        "wait": .number(\.wait, in: 1...60),
        "leds": .number(\.leds, in: 0...8),
        "buzzer": .bool(\.hasBuzzer),
        "text": .number(\.rows, in: 0...8),
        "outputs": .number(\.outputs, in: 0...8),
        "silence": .word(\.silence),
        "silence_text": .init { panel, value throws(StartError) in
            guard value.text.utf8.count <= OSDPDisplay.mostColumns,
                value.text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
            else { throw value.refuse("at most \(OSDPDisplay.mostColumns) characters of ASCII") }
            panel.silenceText = value.text
        },
        "gpio": .form(\.lines, ConfigurationValue.lines),
        "pkoc": .word(\.pkoc),
        "readers": .init { panel, value in
            panel.readers = value.text.split(separator: ",").map { String(INIFile.trim($0)) }.filter { !$0.isEmpty }
        },
    ]
}

extension OSDPConfiguration.Bus {
    fileprivate mutating func use(_ line: OSDPLine, _ value: ConfigurationValue) throws(StartError) {
        guard self.line == nil else { throw value.refuse("one of device, tcp and listen") }
        self.line = line
    }
}

extension ConfigurationValue {
    /// `red gpiochip0:17, output0 gpiochip0:5`.
    fileprivate func lines() throws(StartError) -> [OSDPConfiguration.Panel.Indicator: OSDPConfiguration.Panel.GPIOLine]
    {
        let form =
            "a list such as red gpiochip0:17, green gpiochip0:18, with red, green, blue, buzzer, output0 to output7"
        var found: [OSDPConfiguration.Panel.Indicator: OSDPConfiguration.Panel.GPIOLine] = [:]
        for entry in text.split(separator: ",") {
            let words = CardRule.words(String(entry))
            let parts = words.count == 2 ? words[1].split(separator: ":").map(String.init) : []
            guard parts.count == 2, let indicator = OSDPConfiguration.Panel.Indicator(words[0]),
                parts[0].hasPrefix("gpiochip"), Int(parts[0].dropFirst(8)) != nil, let line = Int(parts[1]),
                (0..<1024).contains(line), found[indicator] == nil
            else { throw refuse(form) }
            found[indicator] = .init(chip: parts[0], line: line)
        }
        guard Set(found.values).count == found.count else { throw refuse("each GPIO line once") }
        return found
    }

    /// `ADDRESS:PORT`, with an address in numbers.
    fileprivate func addressAndPort() throws(StartError) -> (String, Int) {
        let form = "ADDRESS:PORT with an address in numbers, such as 192.0.2.1:4001 or [2001:db8::1]:4001"
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")), let port = Int(text[text.index(after: colon)...]),
            (1...65_535).contains(port)
        else { throw refuse(form) }
        var address = String(text[..<colon])
        var (four, six) = (in_addr(), in6_addr())
        if address.hasPrefix("["), address.hasSuffix("]") {
            address = String(address.dropFirst().dropLast())
            guard inet_pton(AF_INET6, address, &six) == 1 else { throw refuse(form) }
        } else {
            guard inet_pton(AF_INET, address, &four) == 1 else { throw refuse(form) }
        }
        return (address, port)
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// The keys of `[panel NAME]` and `[reader NAME]`.
extension OSDPConfiguration {
    typealias BusTable = [String: @Sendable (inout Bus, ConfigurationValue) throws(StartError) -> Void]

    static let busKeys: BusTable = [
        "device": { bus, value throws(StartError) in
            let path = try value.absolutePath()
            guard path.hasPrefix("/dev/"), !path.contains("/../") else { throw value.refuse("a path below /dev") }
            try bus.use(.device(path), value)
        },
        "tcp": { bus, value throws(StartError) in
            let (address, port) = try value.addressAndPort()
            try bus.use(.connect(address: address, port: port), value)
        },
        "listen": { bus, value throws(StartError) in
            let (address, port) = try value.addressAndPort()
            try bus.use(.listen(address: address, port: port), value)
        },
        "baud": { bus, value throws(StartError) in
            guard let baud = Int(value.text), OSDPPeripheral.baudRates.contains(baud) else {
                throw value.refuse(OSDPPeripheral.baudRates.map(String.init).joined(separator: ", "))
            }
            bus.baud = baud
        },
        "address": { bus, value throws(StartError) in bus.address = try value.number(in: 0...126) },
        "security": { bus, value throws(StartError) in bus.security = try value.word() },
        "key": { bus, value throws(StartError) in bus.keyFile = try value.absolutePath() },
        "rs485": { bus, value throws(StartError) in bus.isRS485 = try value.bool() },
    ]

    typealias PanelTable = [String: @Sendable (inout Panel, ConfigurationValue) throws(StartError) -> Void]

    static let panelKeys: PanelTable = [
        "install": { panel, value throws(StartError) in panel.installMinutes = try value.number(in: 0...1440) },
        "comset": { panel, value throws(StartError) in panel.acceptsCommunication = try value.bool() },
        "turnaround": { panel, value throws(StartError) in panel.turnaround = try value.number(in: 0...100) },
        "wait": { panel, value throws(StartError) in panel.patience = try value.number(in: 1...60) },
        "leds": { panel, value throws(StartError) in panel.leds = try value.number(in: 0...8) },
        "buzzer": { panel, value throws(StartError) in panel.hasBuzzer = try value.bool() },
        "text": { panel, value throws(StartError) in panel.rows = try value.number(in: 0...8) },
        "outputs": { panel, value throws(StartError) in panel.outputs = try value.number(in: 0...8) },
        "silence": { panel, value throws(StartError) in panel.silence = try value.word() },
        "silence_text": { panel, value throws(StartError) in
            guard value.text.utf8.count <= OSDPDisplay.mostColumns,
                value.text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
            else { throw value.refuse("at most \(OSDPDisplay.mostColumns) characters of ASCII") }
            panel.silenceText = value.text
        },
        "gpio": { panel, value throws(StartError) in panel.lines = try value.lines() },
        "readers": { panel, value throws(StartError) in
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

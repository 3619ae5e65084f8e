// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// What a report says of this host.
enum ReportFacts {
    private static let maximumOutput = 1 << 20

    // MARK: Versions

    /// The kernel and the distribution.
    static var system: [String] {
        var names = utsname()
        uname(&names)
        func text(_ field: some Any) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        var lines = ["\(text(names.sysname)) \(text(names.release)) \(text(names.machine))"]
        if case .bytes(let bytes) = PlainFile.read("/usr/lib/os-release", limit: 65_536) {
            let name = Array("PRETTY_NAME=".utf8)
            for line in bytes.split(separator: 0x0A) where line.starts(with: name) {
                let value = line.dropFirst(name.count).filter { $0 != UInt8(ascii: "\"") }
                lines.append(String(decoding: value, as: UTF8.self))
            }
        }
        return lines
    }

    /// The packages of Debian that badged works with.
    static var packages: [String] {
        let wanted = [
            "badged", "bluez", "dbus", "libacsccid", "libccid", "libifd", "libnfc", "libpcsclite1", "libusb-", "pcscd",
            "polkitd", "systemd", "vsmartcard",
        ].map { Array($0.utf8) }
        let list = output("dpkg-query", ["--show", "--showformat=${Package} ${Version}\\n"]) ?? []
        return list.filter { line in wanted.contains { line.utf8.starts(with: $0) } }
    }

    // MARK: USB

    private static let usbFolder = "/sys/bus/usb/devices"
    /// Smart card readers, wireless controllers, and devices of their maker's own kind, as NFC boards are.
    private static let classes = ["0b", "e0", "ff"]

    /// The devices that may be a reader or a radio, without serial numbers.
    static var usbDevices: [String] {
        let interfaces = names(in: usbFolder).filter { name in
            name.contains(":") && classes.contains(value("\(name)/bInterfaceClass"))
        }
        let devices = Set(interfaces.map { String($0.prefix { $0 != ":" }) })
        return devices.sorted().map { device in
            let kinds = interfaces.filter { $0.hasPrefix("\(device):") }.map { value("\($0)/bInterfaceClass") }
            let id = "\(value("\(device)/idVendor")):\(value("\(device)/idProduct"))"
            return "\(id) \(value("\(device)/bcdDevice")) \(value("\(device)/manufacturer")) "
                + "\(value("\(device)/product")), class \(Set(kinds).sorted().joined(separator: ", "))"
        }
    }

    private static func value(_ file: String) -> String {
        guard let descriptor = fopen("\(usbFolder)/\(file)", "r") else { return "" }
        defer { fclose(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = fread(&bytes, 1, bytes.count, descriptor)
        return String(decoding: bytes[..<count].prefix { $0 != 0x0A }, as: UTF8.self)
    }

    private static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            )
        }
        return names
    }

    // MARK: Settings

    /// The settings that differ from the defaults.
    static var settings: [String] {
        guard let program = ChildProcess.path(of: "badged"), let lines = output(program, ["--print-config"]) else {
            return ["badged cannot print them"]
        }
        return settings(in: lines)
    }

    /// The settings of `badged --print-config` that are in a file. Values that could be secret or personal are left out.
    static func settings(in lines: [String]) -> [String] {
        var found: [String] = []
        var section = ""
        var isDefault = false
        for line in lines {
            if line.hasPrefix("[") {
                section = line
            } else if line.hasPrefix("#") {
                isDefault = line == "# default"
            } else if !isDefault {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let value = parts.count == 2 ? parts[1].drop { $0 == " " } : ""
                var key = String(parts.first ?? "")
                if section == "[access]", !key.hasPrefix("default ") { key = "somebody " }
                found.append("\(section) \(key)= \(isHarmless(value) ? String(value) : "(set)")")
            }
        }
        return found
    }

    /// Words of settings that are no names.
    private static let words = Set(
        Permissions.all.words + [
            "yes", "no", "none", "auto", "mgmt", "bluez", "error", "warning", "notice", "info", "debug", "low",
            "normal",
            "high", "never", "always", "binary",
        ]
    )
    private static let longestNumber = 6

    private static func isHarmless(_ value: Substring) -> Bool {
        value.utf8.split(separator: UInt8(ascii: ",")).allSatisfy { part in
            let word = String(decoding: part.filter { $0 != UInt8(ascii: " ") }, as: UTF8.self)
            let isNumber = word.utf8.count <= longestNumber && word.utf8.allSatisfy { (0x30...0x39).contains($0) }
            return isNumber || words.contains(word)
        }
    }

    // MARK: Log

    private static let units = [
        "badged.service", "badged-network@*", "badged-remote@*", "badged-activation*", "pcscd.service",
    ]
    private static let logLines = 200

    /// The last lines of the journal.
    static var log: [String] {
        let arguments =
            units.flatMap { ["--unit", $0] } + [
                "--lines", String(logLines), "--output", "short-iso", "--no-hostname", "--no-pager", "--quiet",
            ]
        guard let lines = output("journalctl", arguments), !lines.isEmpty else {
            return ["none that this user may read: root and the groups adm and systemd-journal may"]
        }
        return lines
    }

    // MARK: Programs

    /// What a program prints; nil if it cannot be started.
    private static func output(_ program: String, _ arguments: [String]) -> [String]? {
        guard let path = program.hasPrefix("/") ? program : ChildProcess.installed(program) else { return nil }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        defer { close(ends[0]) }
        let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let started = ChildProcess.start(path, arguments, standard: (nothing, ends[1]))
        close(ends[1])
        if nothing >= 0 { close(nothing) }
        guard let started else { return nil }
        let child = Child(started)
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < maximumOutput {
            let count = read(ends[0], &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += part[..<count]
        }
        child.end()
        return bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }
}

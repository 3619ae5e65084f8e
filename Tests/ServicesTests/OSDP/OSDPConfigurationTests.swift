// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Host
import TestSupport
import Testing

@testable import OSDP

@Suite("The settings of badged-osdp")
struct OSDPConfigurationTests {
    /// Reads a file with this content.
    private static func read(_ text: String) throws -> (OSDPConfiguration, [String]) {
        let folder = try TemporaryFolder()
        let path = try folder.write("osdp.conf", Array(text.utf8))
        var errors: [StartError] = []
        let configuration = OSDPConfiguration(path: path, errors: &errors)
        return (configuration, errors.map { $0.message.replacingOccurrences(of: path, with: "osdp.conf") })
    }

    @Test("every setting is read")
    func all() throws {
        let (configuration, errors) = try Self.read(
            """
            [server]
            socket = /run/other.sock
            folder = /var/lib/other
            [panel front]
            device = /dev/serial/by-path/x
            baud = 115200
            address = 5
            key = /etc/badged/front.key
            comset = yes
            rs485 = yes
            turnaround = 2
            wait = 7
            leds = 2
            buzzer = no
            text = 0
            outputs = 3
            silence = blink
            gpio = red gpiochip0:17, buzzer gpiochip1:4, output2 gpiochip0:5
            readers = Desk, Door 1
            pkoc = panel
            [reader hall]
            tcp = [::1]:4001
            security = off
            [reader yard]
            tcp = [::1]:4001
            address = 1
            key = /etc/badged/yard.key
            [rules]
            rule = any -> mine facility=3 left
            rule = tag -> uid
            [format mine]
            fields = P1 F8 C16 P1
            parities = even:1FFE000 odd:1FFE
            """
        )
        #expect(errors == [])
        let panel = try #require(configuration.panels.first)
        #expect(panel.bus.line == .device("/dev/serial/by-path/x"))
        #expect((panel.bus.baud, panel.bus.address, panel.wait) == (115_200, 5, 7))
        #expect((panel.leds, panel.rows, panel.outputs, panel.hasBuzzer) == (2, 0, 3, false))
        #expect(panel.silence == .blink && panel.silenceText.isEmpty)
        #expect(panel.readers == ["Desk", "Door 1"] && panel.pkoc == .panel)
        #expect(panel.lines[.output(2)] == .init(chip: "gpiochip0", line: 5) && panel.lines.count == 3)
        #expect(panel.acceptsCommunication && panel.bus.isRS485 && panel.turnaround == 2)
        #expect(configuration.readerLines.count == 1)
        #expect(configuration.readerLines.first?.members.map(\.name) == ["hall", "yard"])
        #expect(configuration.rules.count == 2)
        #expect((configuration.socket, configuration.folder) == ("/run/other.sock", "/var/lib/other"))
    }

    @Test(
        "a wrong line is refused with its place",
        arguments: [
            ("[panel a]\ndevice = /dev/x\nbaud = 9601", "osdp.conf, line 3: [panel] baud cannot be '9601'"),
            ("[panel a]\ndevice = /etc/passwd", "osdp.conf, line 2: [panel] device cannot be '/etc/passwd'"),
            ("[panel a]\ntcp = example.org:1", "osdp.conf, line 2: [panel] tcp cannot be 'example.org:1'"),
            ("[panel a]\ntcp = 192.0.2.1:0", "osdp.conf, line 2: [panel] tcp cannot be '192.0.2.1:0'"),
            ("[panel a]\naddress = 127", "osdp.conf, line 2: [panel] address cannot be '127'"),
            ("[panel a]\nsecurity = maybe", "osdp.conf, line 2: [panel] security cannot be 'maybe'"),
            ("[panel a]\ncolour = red", "osdp.conf, line 2: unknown key 'colour' in [panel]"),
            ("[reader a]\nwait = 3", "osdp.conf, line 2: unknown key 'wait' in [reader]"),
            ("[door a]", "osdp.conf, line 1: unknown section [door a]"),
            ("[panel]", "osdp.conf, line 1: unknown section [panel]"),
            ("[panel a/b]", "osdp.conf, line 1: 'a/b' is no name"),
            ("[panel ..]", "osdp.conf, line 1: '..' is no name"),
            ("[panel a]\n[reader a]", "osdp.conf, line 2: the name a occurs twice"),
            ("[panel a]\nwait = 3\nwait = 4", "osdp.conf, line 3: wait occurs twice"),
            ("[rules]\nrule = any -> what", "osdp.conf, line 2: [rules] rule cannot be 'any -> what'"),
            ("[panel a]\n[rules]\nrule = panel=zz -> key64", "osdp.conf, line 3: [rules] rule cannot be 'panel=zz"),
            ("[reader a]\n[rules]\nrule = any panel=a -> key64", "osdp.conf, line 3: [rules] rule cannot be 'any"),
            ("[rules]\nrule = any -> key64\nrule = pkoc -> key75", "osdp.conf, line 3: [rules] rule cannot be 'pkoc"),
            ("[rules]\nrule = any -> none\nrule = any -> key64", "osdp.conf, line 3: [rules] rule cannot be 'any"),
            (
                "[rules]\nrule = tag -> uid\nrule = pkoc -> key64\nrule = tag length=4 listed -> csn32",
                "osdp.conf, line 4: [rules] rule cannot be 'tag length=4"
            ),
            (
                "[panel a]\n[rules]\nrule = unverified -> none\nrule = tag panel=a -> csn32",
                "osdp.conf, line 4: [rules] rule cannot be 'tag panel=a"
            ),
            ("[format uid]\nfields = C8", "osdp.conf, line 2: format uid: badged-osdp has a format of this name"),
            ("[format x]\nparities = even:1", "[format x]: format x: fields is missing"),
            ("[panel a]\ngpio = red gpio0:1", "osdp.conf, line 2: [panel] gpio cannot be 'red gpio0:1'"),
            ("[panel a]\ngpio = red gpiochip0:1, blue gpiochip0:1", "osdp.conf, line 2: [panel] gpio cannot be"),
            ("[panel a]\ndevice = /dev/x\ngpio = output0 gpiochip0:1", "osdp.conf: a has no output0"),
            ("[panel a]\nsilence = open", "osdp.conf, line 2: [panel] silence cannot be 'open'"),
            ("[panel a]\nsilence_text = Tür", "osdp.conf, line 2: [panel] silence_text cannot be 'Tür'"),
            (
                "[panel a]\nsilence_text = 123456789012345678901234567890123",
                "osdp.conf, line 2: [panel] silence_text cannot be"
            ),
            ("[panel a]\ndevice = /dev/x\nsilence_text = Away", "osdp.conf: a never shows silence_text"),
            (
                "[panel a]\ndevice = /dev/x\nsilence = dark\ntext = 0\nsilence_text = Away",
                "osdp.conf: a never shows silence_text"
            ),
            ("[panel a]\npkoc = card", "osdp.conf, line 2: [panel] pkoc cannot be 'card'"),
            (
                "[panel a]\ndevice = /dev/x\nkey = /k\npkoc = panel",
                "osdp.conf: a: pkoc = panel is for readers that are named"
            ),
            (
                "[panel a]\ndevice = /dev/x\nsecurity = optional\nreaders = Desk\npkoc = panel",
                "osdp.conf: a: pkoc = panel needs the secure channel with a key"
            ),
            (
                "[panel a]\ndevice = /dev/x\ninstall = 5\nreaders = Desk\npkoc = panel",
                "osdp.conf: a: pkoc = panel needs the secure channel with a key"
            ),
            (
                "[panel a]\ndevice = /dev/x\nkey = /k\nreaders = Desk, Hall\npkoc = panel\n"
                    + "[panel b]\ndevice = /dev/y\nkey = /k\nreaders = Hall\npkoc = panel",
                "osdp.conf: b: another panel asks the cards of its reader"
            ),
            ("[server]", "osdp.conf: there is neither a panel nor a reader"),
            ("[panel a]\nkey = /k", "osdp.conf: a has no line"),
            ("[reader a]\ndevice = /dev/x", "osdp.conf: a has no key"),
            (
                "[panel a]\ndevice = /dev/x\n[panel b]\ndevice = /dev/x",
                "osdp.conf: a and b use /dev/x"
            ),
            (
                "[panel a]\nlisten = 0.0.0.0:4870\n[panel b]\nlisten = 127.0.0.1:4870",
                "osdp.conf: port 127.0.0.1:4870 is also one of port 0.0.0.0:4870"
            ),
            (
                "[reader a]\ndevice = /dev/x\nkey = /k\n[reader b]\ndevice = /dev/x\nkey = /k",
                "osdp.conf: two readers at /dev/x have one address"
            ),
            ("[panel a]\ndevice = /dev/x\ntcp = 192.0.2.1:1", "osdp.conf, line 3: [panel] tcp cannot be '192.0.2.1:1'"),
        ]
    )
    func wrong(_ text: String, _ message: String) throws {
        let (_, errors) = try Self.read(text + "\n")
        #expect(errors.contains { $0.hasPrefix(message) }, "\(errors)")
    }

    @Test("rules that take other taps than those above are right, and thousands are read at once")
    func rules() throws {
        let lines = [
            "panel=b -> key75", "pkoc listed -> key64", "pkoc -> key75", "tag length=4 -> csn32",
            "tag length=7 -> csn56",
            "tag panel=b -> none", "tag -> uid", "any -> key64", "raw -> raw", "unverified -> none",
        ]
        let panels = "[panel a]\ndevice = /dev/x\nkey = /k\n[panel b]\ndevice = /dev/y\nkey = /k\n[rules]\n"
        let (configuration, errors) = try Self.read(panels + lines.map { "rule = \($0)\n" }.joined())
        #expect(errors == [] && configuration.rules.count == lines.count)
        let many = (1...8000).map { "rule = tag length=\($0) -> uid\n" }.joined()
        #expect(try Self.read(panels + many).1 == [])
    }

    @Test(
        "a key that everybody can guess is refused",
        arguments: [
            (String(repeating: "00", count: 16), "16 equal bytes"),
            (String(repeating: "ff", count: 16), "16 equal bytes"),
            (String(repeating: "\u{0}", count: 16), "16 equal bytes"),
            ("303132333435363738393a3b3c3d3e3f", "everybody"),
            ("00000000000000000000000000000001", nil),
        ] as [(String, String?)]
    )
    func guessedKeys(_ content: String, _ fault: String?) throws {
        let folder = try TemporaryFolder()
        var bus = OSDPConfiguration.Bus(name: "front")
        let path = try folder.write("front.key", Array(content.utf8))
        chmod(path, 0o600)
        bus.keyFile = path
        var message: String?
        do throws(StartError) { _ = try bus.key() } catch { message = error.message }
        #expect(fault.map { message?.contains($0) == true } ?? (message == nil), "\(message ?? "")")
    }
}

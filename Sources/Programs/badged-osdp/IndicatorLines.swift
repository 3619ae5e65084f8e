// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host
import OSDP

/// GPIO lines of the board that show a panel: lamps, a sounder and outputs. gpio-v2 of the kernel
@Loop final class IndicatorLines {
    private let name: String
    private var descriptors: [OSDPConfiguration.Panel.Indicator: Int32] = [:]
    private var states: [OSDPConfiguration.Panel.Indicator: Bool] = [:]
    private var indicators = OSDPIndicators()
    private var outputs: [Bool] = []
    private lazy var alarm = Loop.Alarm { [unowned self] in write() }

    /// Takes the lines, which are off then. A line that cannot be used is in the log, and the others work.
    init(_ name: String, _ lines: [OSDPConfiguration.Panel.Indicator: OSDPConfiguration.Panel.GPIOLine]) {
        self.name = name
        for (indicator, line) in lines {
            let descriptor = clinux_open_gpio("/dev/\(line.chip)", UInt32(line.line))
            guard descriptor >= 0 else {
                Log.error("\(name): \(line.chip):\(line.line) cannot be used: \(Self.reason(errno))")
                continue
            }
            descriptors[indicator] = descriptor
        }
    }

    private static func reason(_ code: Int32) -> String {
        switch code {
        case ENOENT: "there is no such chip"
        case EINVAL: "the chip has no such line"
        case EBUSY: "another program or driver uses it (gpioinfo shows which one)"
        case EACCES, EPERM: "the user of this program may not open the chip (a rule of udev allows it)"
        default: errorText(code)
        }
    }

    /// Gives the lines back. Lamps and sounder are off then; an output stays as it is, as far as its chip allows.
    func end() {
        alarm.cancel()
        for (indicator, descriptor) in descriptors {
            switch indicator {
            case .red, .green, .blue, .buzzer: _ = clinux_set_gpio(descriptor, 0)
            case .output: break
            }
            close(descriptor)
        }
        descriptors = [:]
    }

    func show(_ display: OSDPDisplay, _ beep: OSDPDisplay.Beep?) {
        guard !descriptors.isEmpty else { return }
        indicators.show(display.lights.first ?? .dark, beep, at: Loop.now)
        outputs = display.outputs
        write()
    }

    private func write() {
        let now = Loop.now
        let lamps = indicators.lamps(at: now)
        for (indicator, descriptor) in descriptors {
            let isOn =
                switch indicator {
                case .red: lamps & 1 != 0
                case .green: lamps & 2 != 0
                case .blue: lamps & 4 != 0
                case .buzzer: indicators.isSounding(at: now)
                case .output(let number): outputs.indices.contains(number) && outputs[number]
                }
            guard states[indicator] != isOn else { continue }
            states[indicator] = isOn
            if clinux_set_gpio(descriptor, isOn ? 1 : 0) != 0 {
                Log.error("\(name): a GPIO line does not change: \(errorText())")
            }
        }
        if let deadline = indicators.deadline(after: now) { alarm.set(at: deadline * 1000) } else { alarm.cancel() }
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// Draws the signal of door readers over time as an SVG image: points for advertisements, a line for the smoothed
/// level, and dashed lines for the limits.
struct SignalPlot {
    private let history: SignalHistory

    private static let (width, height) = (960.0, 540.0)
    private static let (left, top, right, bottom) = (60.0, 30.0, 250.0, 50.0)
    /// The axis of the strength in dBm.
    private static let (weakest, strongest) = (-100.0, -30.0)
    /// Colours that people with any colour vision distinguish. Okabe and Ito, Color Universal Design, 2008.
    private static let colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]

    init(_ history: SignalHistory) { self.history = history }

    /// The image; nil if nothing was received.
    var svg: String? {
        let tracks = history.tracks.sorted { $0.key < $1.key }
        let times = tracks.flatMap { $0.value.samples.map(\.time) }
        guard let start = times.min(), let end = times.max() else { return nil }
        let span = max(Double(end - start), 1000)
        func x(_ time: Int64) -> Double {
            Self.left + Double(time - start) / span * (Self.width - Self.left - Self.right)
        }
        var parts = [Self.frame, axes(seconds: span / 1000)]
        parts += limits(tracks.map(\.value))
        for (index, (id, track)) in tracks.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            let points = track.samples.map { "\(Self.text(x($0.time))),\(Self.text(Self.y($0.level)))" }
            parts.append(
                #"<polyline fill="none" stroke="\#(colour)" stroke-width="2" points="\#(points.joined(separator: " "))"/>"#
            )
            for sample in track.samples {
                parts.append(
                    #"<circle cx="\#(Self.text(x(sample.time)))" cy="\#(Self.text(Self.y(Double(sample.rssi))))" r="2" fill="\#(colour)" fill-opacity="0.5"/>"#
                )
            }
            parts.append(legend(index, id == track.name ? id : "\(track.name) (\(id))", colour))
        }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }

    // MARK: Parts

    private static let frame = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(text(width)) \(text(height))" \
        font-family="sans-serif" font-size="12">
        <rect width="100%" height="100%" fill="white"/>
        """

    /// Lines each 10 dB, and about ten times.
    private func axes(seconds: Double) -> String {
        var parts: [String] = []
        let (x0, x1) = (Self.left, Self.width - Self.right)
        for level in stride(from: Self.weakest, through: Self.strongest, by: 10) {
            let y = Self.text(Self.y(level))
            parts.append(
                #"<line x1="\#(Self.text(x0))" x2="\#(Self.text(x1))" y1="\#(y)" y2="\#(y)" stroke="lightgray"/>"#
            )
            parts.append(label(x0 - 8, Self.y(level) + 4, "\(Int(level))", anchor: "end"))
        }
        let step = [1.0, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400].first { seconds / $0 <= 12 } ?? 86_400
        for time in stride(from: 0, through: seconds, by: step) {
            let x = x0 + time / seconds * (x1 - x0)
            let (y0, y1) = (Self.text(Self.top), Self.text(Self.height - Self.bottom))
            parts.append(
                #"<line x1="\#(Self.text(x))" x2="\#(Self.text(x))" y1="\#(y0)" y2="\#(y1)" stroke="lightgray"/>"#
            )
            parts.append(label(x, Self.height - Self.bottom + 18, "\(Int(time))", anchor: "middle"))
        }
        parts.append(label((x0 + x1) / 2, Self.height - 12, tr("seconds"), anchor: "middle"))
        parts.append(label(8, 18, "dBm"))
        return parts.joined(separator: "\n")
    }

    /// One line for each limit. Readers that have the same one share it.
    private func limits(_ tracks: [SignalHistory.Track]) -> [String] {
        var names: [Int: Set<String>] = [:]
        for track in tracks { for (type, level) in track.limits { names[level, default: []].insert(type) } }
        let (x0, x1) = (Self.text(Self.left), Self.text(Self.width - Self.right))
        return names.sorted { $0.key > $1.key }.flatMap { level, types in
            let y = Self.y(Double(level))
            let line =
                #"<line x1="\#(x0)" x2="\#(x1)" y1="\#(Self.text(y))" y2="\#(Self.text(y))" stroke="dimgray" stroke-dasharray="6 4"/>"#
            let text = "\(types.sorted().joined(separator: ", ")) \(level)"
            return [line, label(Self.width - Self.right + 6, y + 4, text)]
        }
    }

    private func legend(_ index: Int, _ name: String, _ colour: String) -> String {
        let (x, y) = (Self.left + 10, Self.top + 18 + 16 * Double(index))
        return #"<rect x="\#(Self.text(x))" y="\#(Self.text(y - 9))" width="10" height="10" fill="\#(colour)"/>"# + "\n"
            + label(x + 16, y, name.printable)
    }

    private func label(_ x: Double, _ y: Double, _ text: String, anchor: String = "start") -> String {
        let content = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        return #"<text x="\#(Self.text(x))" y="\#(Self.text(y))" text-anchor="\#(anchor)">\#(content)</text>"#
    }

    private static func y(_ level: Double) -> Double {
        let part = (min(max(level, weakest), strongest) - weakest) / (strongest - weakest)
        return height - bottom - part * (height - top - bottom)
    }

    /// With one decimal.
    private static func text(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(abs(tenths % 10))"
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Text

let doorReaderFeature = FeatureCommands(
    group: .doors,
    commands: [ScanCommand.spec, ClosestCommand.spec, OpenCommand.spec, CaptureCommand.spec, ReaderKeysCommand.spec]
)

extension OptionSpec {
    static let code = OptionSpec(.code, ValueSpec("NUMBER"), "readers with this lock service code; 0: any")
}

extension ValueSpec.Completion {
    static let openingTypes = words(OpeningType.allCases.map(\.name))
}

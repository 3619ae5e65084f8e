// SPDX-License-Identifier: Apache-2.0

/// The messages about door readers.
let doorReaderMessages: [any NamedMessage.Type] = [
    ScanStatus.self, DoorReader.self, DoorReaderLost.self, DoorReaderList.self, ClosestDoorReader.self,
    Advertisement.self, DoorOpening.self, DoorOpeningResult.self, DoorOpeningQuestion.self, DoorOpeningTimeouts.self,
    AutomaticOpening.self,
]

// SPDX-License-Identifier: Apache-2.0
import BadgedOrigoKeys
import Dispatch
import Foundation

final class Doors: OrigoKeysManagerDelegate {
    private var manager: OrigoKeysManager?

    func start() {
        let options = [OrigoKeysOptionApplicationId: "APP", OrigoKeysOptionVersion: "1.0"]
        manager = OrigoKeysManager(delegate: self, options: options)
        manager?.startup()
    }

    func origoKeysDidStartup() {
        do {
            try manager?.isEndpointSetup()
            scan()
        } catch {
            manager?.setupEndpoint("AB12-CD34-EF56-GH78")
        }
    }

    func origoKeysDidFail(toStartup error: Error) { print("badged does not answer:", error) }

    func origoKeysDidSetupEndpoint() { scan() }

    func origoKeysDidFail(toSetupEndpoint error: Error) { print("no key:", error) }

    private func scan() {
        var error: NSError?
        manager?.startReaderScan(
            in: .optimizePerformance,
            supportedOpeningTypes: [OrigoKeysOpeningType.proximity.rawValue],
            lockServiceCodes: [2],
            error: &error
        )
        if let error { print(error.code, error.localizedDescription) }
    }

    func origoKeysShouldAttempt(
        toOpen reader: OrigoKeysReader,
        openingType: OrigoKeysOpeningType
    ) -> Bool { true }

    func origoKeysDidDisconnect(
        from reader: OrigoKeysReader,
        openingType: OrigoKeysOpeningType,
        openingResult: OrigoKeysOpeningResult
    ) {
        print(openingResult.status, openingResult.accessDecision)
    }
}

let doors = Doors()
doors.start()
dispatchMain()

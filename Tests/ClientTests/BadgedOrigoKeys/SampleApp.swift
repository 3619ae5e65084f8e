// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedOrigoKeys
import Foundation

/// An app as the guide of the Origo SDK shows it: only the imports are those of badged. It records its callbacks.
///
/// Unchecked: the tests call one method at a time, and the callbacks only write to the stream.
final class SampleApp: NSObject, OrigoKeysManagerExtendedDelegate, @unchecked Sendable {
    let LOCK_SERVICE_CODE_HID = 2
    var origoKeysManager: OrigoKeysManager?
    private var lockServiceCodes: [Any] = []
    private var openingTypes: [Any]?
    let said: AsyncStream<String>
    private let line: AsyncStream<String>.Continuation
    /// The answers to questions.
    var (opens, interacts) = (true, true)
    /// Whether the app opens a reader itself before it answers the question about this reader.
    var connectsWhenAsked = false
    private(set) var lastReader: OrigoKeysReader?
    private(set) var lastError: NSError?

    override init() {
        (said, line) = AsyncStream.makeStream()
        super.init()
        lockServiceCodes = [LOCK_SERVICE_CODE_HID]
        openingTypes = [
            OrigoKeysOpeningType.proximity.rawValue, NSNumber(value: OrigoKeysOpeningType.motion.rawValue),
            OrigoKeysOpeningType.applicationSpecific,
        ]
    }

    /// The next callback.
    func next() async -> String? {
        for await line in said { return line }
        return nil
    }

    func createInitializedMobileKeysManager() -> OrigoKeysManager? {
        let version = "SAMPLE-\(Bundle.main.infoDictionary?["CFBundleShortVersionString"] ?? 0)"
        let isApplePayDisable = "YES"
        let config = [
            OrigoKeysOptionApplicationId: "SAMPLE",
            OrigoKeysOptionVersion: version,
            OrigoKeysOptionSuppressApplePay: isApplePayDisable,
        ]
        return OrigoKeysManager(delegate: self, options: config)
    }

    // MARK: What the guide calls

    func isEndpointSetup() -> Bool {
        do {
            try origoKeysManager?.isEndpointSetup()
            return true
        } catch {
            lastError = error as NSError
            return false
        }
    }

    func listKeys() -> [OrigoKeysKey] {
        var error: NSError? = nil
        let keys = origoKeysManager?.listMobileKeys(&error) ?? []
        lastError = error
        return keys
    }

    func startScanning(_ scanMode: OrigoKeysScanMode = .optimizePerformance, _ types: [Any]? = nil) {
        var error: NSError? = nil
        origoKeysManager?.startReaderScan(
            in: scanMode,
            supportedOpeningTypes: types ?? openingTypes ?? [],
            lockServiceCodes: lockServiceCodes,
            error: &error
        )
        lastError = error
    }

    func open(_ reader: OrigoKeysReader?, _ type: OrigoKeysOpeningType) {
        var error: NSError? = nil
        if let reader { origoKeysManager?.connect(to: reader, openingType: type, error: &error) }
        lastError = error
    }

    func code(of key: OrigoKeysKey) -> (code: String?, next: UInt?) {
        var error: NSError? = nil
        let code = origoKeysManager?.generateOTP(for: key, error: &error)
        lastError = error
        return (code, origoKeysManager?.otpCounter(for: key, error: nil))
    }

    func store(_ data: Data, _ key: OrigoKeysKey, tag: UInt) -> Data? {
        var error: NSError? = nil
        let tag = OrigoKeysSeosTag(tag: tag)
        origoKeysManager?.put(data, keyOid: key.keyId, tag: tag, error: &error)
        lastError = error
        return origoKeysManager?.data(forKeyOid: key.keyId, tag: tag, error: nil)
    }

    // MARK: OrigoKeysManagerDelegate

    func origoKeysDidStartup() { line.yield("startup") }

    func origoKeysDidFail(toStartup error: any Error) {
        line.yield("no startup \((error as NSError).code)")
    }

    func origoKeysDidSetupEndpoint() { line.yield("setup") }

    func origoKeysDidFail(toSetupEndpoint error: any Error) {
        line.yield("no setup \((error as NSError).domain) \((error as NSError).code)")
    }

    func origoKeysDidUpdateEndpoint(with endpointUpdateSummary: OrigoKeysEndpointUpdateSummary) {
        let summary = endpointUpdateSummary
        line.yield("update \(summary.keyIssuedCount) \(summary.keyUpdatedCount) \(summary.keyRevokedCount)")
    }

    func origoKeysDidFail(toUpdateEndpoint error: any Error) {
        line.yield("no update \((error as NSError).code)")
    }

    func origoKeysDidTerminateEndpoint() { line.yield("terminated") }

    func origoKeysDidConnect(to reader: OrigoKeysReader, openingType type: OrigoKeysOpeningType) {
        line.yield("connect \(type)")
    }

    func origoKeysDidFailToConnect(
        to reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingStatus status: OrigoKeysOpeningStatusType
    ) {
        line.yield("no connect \(type) \(status)")
    }

    func origoKeysDidDisconnect(
        from reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingResult result: OrigoKeysOpeningResult
    ) {
        line.yield("disconnect \(type) \(result.status) \(result.statusPayload?.first ?? 0) \(result.accessDecision)")
    }

    func origoKeysShouldAttempt(toOpen reader: OrigoKeysReader, openingType type: OrigoKeysOpeningType) -> Bool {
        line.yield("open? \(type)")
        if connectsWhenAsked { origoKeysManager?.connect(to: reader, openingType: type, error: nil) }
        return opens
    }

    func origoKeysShouldInteract(withScannedReader origoKeysReader: OrigoKeysReader) -> Bool {
        if !interacts { line.yield("ignore") }
        return interacts
    }

    func origoKeysReaderAppeared(_ reader: OrigoKeysReader) {
        lastReader = reader
        line.yield("appeared")
    }

    func origoKeysReaderDisappeared(_ reader: OrigoKeysReader) { line.yield("disappeared") }

    func origoKeysUserDidEnterReaderRegion(_ beaconUUID: String?) { line.yield("enter \(beaconUUID ?? "")") }

    func origoKeysUserDidExitReaderRegion(_ beaconUUID: String?) { line.yield("exit \(beaconUUID ?? "")") }

    func origoKeysUserDidUnlockGesture() { line.yield("gesture") }
}

// SPDX-License-Identifier: Apache-2.0

/// Receives the results of calls and the events of readers, on the callback queue. An app implements the first four.
public protocol OrigoKeysManagerDelegate: AnyObject {
    func origoKeysDidStartup()
    func origoKeysDidFail(toStartup error: any Error)
    func origoKeysDidSetupEndpoint()
    /// The endpoint was not set up. Where the name of the error ends in `RetryError`, the same invitation can be used
    /// again.
    func origoKeysDidFail(toSetupEndpoint error: any Error)

    func origoKeysDidUpdateEndpoint()
    /// Called after `origoKeysDidUpdateEndpoint()`.
    func origoKeysDidUpdateEndpoint(with endpointUpdateSummary: OrigoKeysEndpointUpdateSummary)
    /// The endpoint was not updated, or not removed.
    func origoKeysDidFail(toUpdateEndpoint error: any Error)
    /// The endpoint was removed, with all keys. An invitation sets up a new one.
    func origoKeysDidTerminateEndpoint()

    func origoKeysDidConnect(to reader: OrigoKeysReader, openingType type: OrigoKeysOpeningType)
    /// There was no connection.
    func origoKeysDidFailToConnect(
        to reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingStatus status: OrigoKeysOpeningStatusType
    )
    /// The opening has ended after a connection.
    func origoKeysDidDisconnect(
        from reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingResult result: OrigoKeysOpeningResult
    )
    /// Asks whether badged may open this reader, which has come into range. In an app that does not implement this, no
    /// reader opens automatically.
    func origoKeysShouldAttempt(toOpen reader: OrigoKeysReader, openingType type: OrigoKeysOpeningType) -> Bool
    /// The same question with the type of later versions of the SDK. An app implements one of the two.
    func origoKeysShouldAttempt(toOpen reader: OrigoKeysReader?, openingType type: OrigoKeysOpeningType) -> Bool

    func origoKeysReaderAppeared(_ reader: OrigoKeysReader)
    func origoKeysReaderUpdated(_ reader: OrigoKeysReader)
    func origoKeysReaderDisappeared(_ reader: OrigoKeysReader)

    /// Asks whether the app uses this reader. false: the event about the reader is dropped, and the reader does not
    /// open automatically. badged joins advertisements, so the question comes at most twice a second for each reader.
    func origoKeysShouldInteract(withScannedReader origoKeysReader: OrigoKeysReader) -> Bool
    /// `unlockGesture()` was called.
    func origoKeysUserDidUnlockGesture()
}

extension OrigoKeysManagerDelegate {
    public func origoKeysDidUpdateEndpoint() {}
    public func origoKeysDidUpdateEndpoint(with endpointUpdateSummary: OrigoKeysEndpointUpdateSummary) {}
    public func origoKeysDidFail(toUpdateEndpoint error: any Error) {}
    public func origoKeysDidTerminateEndpoint() {}

    public func origoKeysDidConnect(to reader: OrigoKeysReader, openingType type: OrigoKeysOpeningType) {}

    public func origoKeysDidFailToConnect(
        to reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingStatus status: OrigoKeysOpeningStatusType
    ) {}

    public func origoKeysDidDisconnect(
        from reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType,
        openingResult result: OrigoKeysOpeningResult
    ) {}

    public func origoKeysShouldAttempt(
        toOpen reader: OrigoKeysReader,
        openingType type: OrigoKeysOpeningType
    ) -> Bool {
        origoKeysShouldAttempt(toOpen: Optional(reader), openingType: type)
    }

    public func origoKeysShouldAttempt(
        toOpen reader: OrigoKeysReader?,
        openingType type: OrigoKeysOpeningType
    ) -> Bool { false }

    public func origoKeysReaderAppeared(_ reader: OrigoKeysReader) {}
    public func origoKeysReaderUpdated(_ reader: OrigoKeysReader) {}
    public func origoKeysReaderDisappeared(_ reader: OrigoKeysReader) {}
    public func origoKeysShouldInteract(withScannedReader origoKeysReader: OrigoKeysReader) -> Bool { true }
    public func origoKeysUserDidUnlockGesture() {}
}

/// The name of the protocol with the questions about single readers, which `OrigoKeysManagerDelegate` has, too.
public protocol OrigoKeysManagerExtendedDelegate: OrigoKeysManagerDelegate {
    /// The first iBeacon of the region is received. The region is watched while the app scans; see
    /// `OrigoKeysOptionBeaconUUID`.
    func origoKeysUserDidEnterReaderRegion(_ beaconUUID: String?)
    /// No iBeacon of the region is received any more, or the scan has ended.
    func origoKeysUserDidExitReaderRegion(_ beaconUUID: String?)
}

extension OrigoKeysManagerExtendedDelegate {
    public func origoKeysUserDidEnterReaderRegion(_ beaconUUID: String?) {}
    public func origoKeysUserDidExitReaderRegion(_ beaconUUID: String?) {}
}

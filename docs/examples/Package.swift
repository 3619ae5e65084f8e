// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let badged = "badged"

let package = Package(
    name: "examples",
    dependencies: [.package(name: badged, path: Context.environment["BADGED_SOURCE"] ?? "../..")],
    targets: [
        .executableTarget(name: "change-pin", dependencies: [.product(name: "BadgedClient", package: badged)]),
        .executableTarget(name: "doors", dependencies: [.product(name: "BadgedOrigoKeys", package: badged)]),
        .executableTarget(name: "wrapper-app", dependencies: [.product(name: "BadgedClient", package: badged)]),
    ],
    swiftLanguageModes: [.v6]
)

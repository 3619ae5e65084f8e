// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
package import Text

/// A certificate of a country authority whose fingerprint is built into the program.
///
/// The certificates themselves are not part of badged. Each was found in the configuration of AusweisApp, and its
/// signature was verified along the chain.
package struct KnownAuthority: Sendable, Equatable {
    /// The name of the holder, such as `DECVCAeID00107`.
    package let holder: String
    /// The name of the issuer; the same as `holder` for a root.
    package let issuer: String
    /// The first and the last day, as `yyyy-MM-dd`.
    package let firstDay: String
    package let lastDay: String
    /// The SHA-256 of the file, in lower-case hexadecimal digits.
    package let fingerprint: String
    package let use: AuthorityUse

    package init(
        _ issuer: String,
        _ holder: String,
        _ firstDay: String,
        _ lastDay: String,
        _ use: AuthorityUse,
        _ fingerprint: String
    ) {
        self.issuer = issuer
        self.holder = holder
        self.firstDay = firstDay
        self.lastDay = lastDay
        self.use = use
        self.fingerprint = fingerprint
    }

    /// The authorities of the German eID card: the Federal Office for Information Security (BSI).
    package static let all: [KnownAuthority] = [
        KnownAuthority(
            "DECVCAeID00102",
            "DECVCAeID00102",
            "2010-10-18",
            "2013-10-18",
            .productive,
            "b97b252dd4beea03a9e9feba8ed021cbdc7c31b26eedf9ab80509198e09bea59"
        ),
        KnownAuthority(
            "DECVCAeID00102",
            "DECVCAeID00103",
            "2012-12-03",
            "2015-12-03",
            .productive,
            "b656c7dd33d65578360f52c267f1eba320c425f82281bb16a5258e160bca1644"
        ),
        KnownAuthority(
            "DECVCAeID00103",
            "DECVCAeID00104",
            "2015-09-14",
            "2018-09-14",
            .productive,
            "16f2b94742a1a164d72bfd44a4c458ac642582eb323db79613237f7183f4faaf"
        ),
        KnownAuthority(
            "DECVCAeID00104",
            "DECVCAeID00105",
            "2018-06-12",
            "2021-06-12",
            .productive,
            "11942ca663caa951a6b752b9407799bb3a3fbdb2df0d2259c8a64b92bee124f2"
        ),
        KnownAuthority(
            "DECVCAeID00105",
            "DECVCAeID00106",
            "2021-03-09",
            "2024-03-09",
            .productive,
            "8f6e3d043f0113073052838f09b5540e25493cd2fd881cb566ca5ed8c1103928"
        ),
        KnownAuthority(
            "DECVCAeID00106",
            "DECVCAeID00107",
            "2023-11-28",
            "2026-11-27",
            .productive,
            "db08ffe1ccdef0f35bca697d8f9cd54f95960a553d84a85bb664cc7dcf8b09ae"
        ),
        KnownAuthority(
            "DETESTeID00001",
            "DETESTeID00001",
            "2010-08-13",
            "2013-08-13",
            .test,
            "93702dd4dd7a63f66a4f8893e23470e8241f31c41bb3ed76c9e0b200263c4952"
        ),
        KnownAuthority(
            "DETESTeID00001",
            "DETESTeID00002",
            "2010-09-21",
            "2013-09-21",
            .test,
            "7c7a26c7021ca37430ca6098e2c027fd64bb37384ce0421e5b178f3008463b20"
        ),
        KnownAuthority(
            "DETESTeID00002",
            "DETESTeID00004",
            "2012-05-11",
            "2015-05-11",
            .test,
            "e3c7abe124f50b12a2e32fbad87457c49a40a05485b022b9eeaf95c856755186"
        ),
        KnownAuthority(
            "DETESTeID00004",
            "DETESTeID00005",
            "2015-05-04",
            "2018-05-04",
            .test,
            "95918ded81cf68c9310676e622ed08dd68a9e3bea04fb701d1e50cdef13579ec"
        ),
        KnownAuthority(
            "DETESTeID00005",
            "DETESTeID00006",
            "2018-02-05",
            "2021-02-05",
            .test,
            "277f4d80a88c8645ce7f846f88d5545212c7cec933fdfd9e0aecad9f70c792ce"
        ),
        KnownAuthority(
            "DETESTeID00006",
            "DETESTeID00007",
            "2020-10-13",
            "2023-10-13",
            .test,
            "f13aa824f5b7e5c213c900430e82631868dbaffe357b29e5f470032c888dd836"
        ),
        KnownAuthority(
            "DETESTeID00007",
            "DETESTeID00008",
            "2023-08-08",
            "2026-08-07",
            .test,
            "e617ed7fb4931947578ac1dc7bd93ee572649646585c0d7bae6edb645f6e1a55"
        ),
        KnownAuthority(
            "DECVCAeIDCT00001",
            "DECVCAeIDCT00001",
            "2024-03-06",
            "2027-03-06",
            .test,
            "f5efeb4d1b1da4b493b01733b6bb86f1349576142dafeb7b09ba176cee6cea77"
        ),
        KnownAuthority(
            "DECVCAeIDCT00001",
            "DECVCAeIDCTL0401",
            "2024-03-06",
            "2027-03-06",
            .test,
            "b3654b50f653483da14e23224eca011c70a6f19eaea09eaa99856810af7ad416"
        ),
        KnownAuthority(
            "DECVCAeIDCTL0401",
            "DECVCAeIDCTL0402",
            "2024-03-06",
            "2027-03-06",
            .test,
            "5e3eefc234298b66e03f2249e7ac596feac59fa8e97f6d4b20d6f1cd421500d4"
        ),
        KnownAuthority(
            "DECVCAeIDCTL0402",
            "DECVCAeIDCTL0403",
            "2024-03-06",
            "2027-03-06",
            .test,
            "22fcf8a648ba76ba83578cd9f83d9ff9468e9124dc1e24f1159fadab66a41367"
        ),
        KnownAuthority(
            "DECVCAeIDCTL0403",
            "DECVCAeIDCTL0404",
            "2024-03-06",
            "2027-03-06",
            .test,
            "26dfab2ff79be8e65efb753bb91ca2d6affebfe29c6ade89f4205cf3dbc15be9"
        ),
        KnownAuthority(
            "DECVCAeIDCTL0404",
            "DECVCAeIDCTL0405",
            "2024-03-06",
            "2027-03-06",
            .test,
            "f77ccb23d19bf8c60f83f2abe05bab6cacda277116df1c5e76af1a296ea00e20"
        ),
    ]
}

/// The purpose of the services of an authority.
package enum AuthorityUse: String, Sendable, Hashable, CaseIterable {
    /// Real cards and real services.
    case productive
    /// Test cards. Developer mode accepts only services of these authorities.
    case test

    /// The folder of the certificates, below the folder of the trust anchors.
    package var subfolder: String {
        switch self {
        case .productive: ""
        case .test: "/test"
        }
    }
}

extension KnownAuthority {
    /// Where AusweisApp can be had.
    private static let address = "https://www.ausweisapp.bund.de/download"

    /// The command that imports certificates, for advice.
    package static let importCommand = "sudo badgectl anchors import SOURCE"

    /// Says what to do when the certificate of `holder` is over, or when there is none, which is nil.
    package static func advice(after holder: String?, _ use: AuthorityUse, on day: CVDate) -> Phrase {
        guard holder.map({ name in all.contains { $0.holder == name } }) ?? true else {
            return "import a newer certificate of this authority: \(importCommand)"
        }
        let newest = all.filter { $0.use == use && $0.firstDay <= day.text && day.text <= $0.lastDay }
            .max { ($0.lastDay, $0.holder) < ($1.lastDay, $1.holder) }
        guard let newest else {
            let install: Phrase = "install the newest AusweisApp (\(address)), then sudo badgectl anchors import"
            // A link leads nowhere from no certificate.
            guard holder != nil else { return install }
            return
                "\(install); or log in at a service that sends the link to the next certificate, which badged then keeps"
        }
        return
            "AusweisApp 2.5 and later (\(address)) have \(newest.holder), valid until \(newest.lastDay): \(importCommand)"
    }
}

// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import HTTP
import TestSupport
import Text
import Transfers

@testable import EService

/// Certificates of Tests/PKI. `cvca` certifies `dv` and, by `link`, `cvca-next`, which certifies `dv-next`. Both document
/// verifiers have the same name and key, which certifies `terminal`.
enum Fixtures {
    static func certificate(_ name: String) throws -> CVCertificate {
        try CVCertificate(TestPKI.file("\(name).cvcert"))
    }

    static func pool(_ names: [String]) throws -> CVCertificatePool {
        CVCertificatePool(terminal: try certificate("terminal"), try names.map(certificate))
    }

    /// A day on which all certificates are valid.
    static func day() throws -> CVDate { try certificate("terminal").effectiveDate }

    /// The link certificate with another holder. Its signature is wrong.
    static func numbered(_ number: Int) throws -> CVCertificate {
        var bytes = try TestPKI.file("link.cvcert")
        let holder = Array("DETESTeIDBG00002".utf8)
        guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: holder) }) else {
            return try certificate("link")
        }
        let digits = Array("\(10_000 + number)".utf8)
        for (offset, digit) in digits.enumerated() { bytes[place + holder.count - digits.count + offset] = digit }
        return try CVCertificate(bytes)
    }

    /// EAC1 with these certificates and the description of Tests/PKI.
    static func input(_ names: [String], description: [UInt8]? = nil) throws -> EAC1Input {
        let certificates = try names.map { "<Certificate>\(hex(try certificate($0).encoded))</Certificate>" }.joined()
        let description = try description ?? TestPKI.file("description.der")
        let text = """
            <Data>\(certificates)<CertificateDescription>\(hex(description))</CertificateDescription></Data>
            """
        return try EAC1Input(XMLReader.read(Array(text.utf8), maximumLength: 100_000))
    }
}

extension PAOSMessage {
    init(_ document: [UInt8]) throws(Malformed) {
        try self.init(
            Result { () throws(Malformed) in try XMLReader.read(document, maximumLength: Self.maximumLength) }
        )
    }
}

extension TcToken {
    init(_ document: [UInt8], allowsHTTP: Bool = false) throws(InvalidTcToken) {
        let root = Result { () throws(Malformed) in try XMLReader.read(document, maximumLength: Self.maximumLength) }
        try self.init(root, allowsHTTP: allowsHTTP)
    }
}

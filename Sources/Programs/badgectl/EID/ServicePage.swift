// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import HTTP
import Host
import Text

/// What the service answers at the address to which the browser returns.
struct ServicePage {
    let status: Int
    /// The page as lines of text.
    let text: String

    /// The maximum number of bytes of a page.
    private static let maximumLength = 1 << 20
    private static let tooLong = tr("it is longer than 1 MiB")
    private static let limit = Duration.seconds(30)

    /// Fetches the page as a browser does: follows redirects, keeps cookies until the end, and checks the certificates
    /// by the authorities of the system. The proxies of the environment are used.
    static func fetch(_ url: String) throws -> ServicePage {
        do throws(HTTPFault) {
            guard let address = WebAddress(url) else { throw .unreachable(tr("it is no http or https address")) }
            let request = HTTPRequest(
                method: .page,
                address: address,
                headers: ["User-Agent: badgectl", "Accept: text/html, text/plain, application/json"],
                maximumLength: maximumLength
            )
            let session = HTTPSession(Network(), .system, HTTPLimits(connect: limit, transfer: limit))
            return ServicePage(try CallExecutor().wait { () throws(HTTPFault) in try await session.run(request) })
        } catch {
            throw CommandFailure(
                tr(
                    "the page of the service cannot be fetched: \(error == .tooLarge ? tooLong : tr(error.text(Phrase("the server"))))"
                ),
                hint: tr("open the address in a browser")
            )
        }
    }

    private init(_ response: HTTPResponse) {
        let parts = (response.header("content-type") ?? "").lowercased().split(separator: ";").map { part in
            String(part.filter { !$0.isWhitespace && $0 != "\"" })
        }
        let type = parts.first ?? ""
        let isLatin = parts.dropFirst().contains { ["charset=iso-8859-1", "charset=windows-1252"].contains($0) }
        var text = ""
        if isLatin {
            text.unicodeScalars.append(contentsOf: response.body.map { Unicode.Scalar($0) })
        } else {
            text = String(decoding: response.body, as: UTF8.self)
        }
        if type.hasSuffix("html") || type.hasSuffix("xhtml+xml") { text = HTMLText.text(text) }
        if !type.hasPrefix("text/"), !["html", "json", "xml"].contains(where: type.hasSuffix) {
            text = tr("\(response.body.count) bytes of \(type.isEmpty ? tr("an unknown type") : type)")
        }
        status = response.status
        self.text = text
    }
}

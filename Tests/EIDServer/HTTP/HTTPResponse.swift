// SPDX-License-Identifier: GPL-3.0-or-later

/// An answer, and how it is sent.
struct HTTPResponse: Sendable {
    /// How the bytes are sent.
    enum Delivery: Sendable, Equatable {
        case whole
        /// The connection is reset instead of the answer.
        case reset
        /// The body's first half, then a reset.
        case half
        /// One byte of the body in each interval.
        case drip(milliseconds: UInt32)
    }

    var status = 200
    var headers: [(String, String)] = []
    var body: [UInt8] = []
    var delivery = Delivery.whole
    /// The delay before the answer in seconds.
    var delay: UInt32 = 0
    var closes = false

    init(_ status: Int, _ type: String = "text/plain; charset=utf-8", _ body: [UInt8] = []) {
        (self.status, self.body) = (status, body)
        headers = [("Content-Type", type), ("Cache-Control", "no-store")]
    }

    init(_ status: Int, text: String) { self.init(status, "text/plain; charset=utf-8", Array(text.utf8)) }

    /// Makes a redirect to a URL.
    init(_ status: Int, location: String) {
        self.init(status)
        headers.append(("Location", location))
    }

    static var reset: HTTPResponse {
        var response = HTTPResponse(500)
        response.delivery = .reset
        return response
    }

    /// The status line and the headers.
    var head: [UInt8] {
        var text = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Status")\r\nContent-Length: \(body.count)\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if closes { text += "Connection: close\r\n" }
        return Array((text + "\r\n").utf8)
    }

    private static let reasons = [
        200: "OK", 301: "Moved Permanently", 302: "Found", 303: "See Other", 307: "Temporary Redirect",
        400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error",
    ]
}

// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import badgectl

@Suite("HTML as text") struct HTMLTextTests {
    @Test(
        "a page becomes lines of text",
        arguments: [
            ("", ""), ("plain", "plain"),
            ("<h1>Hallo</h1><p>Gr&uuml;&szlig;e &amp; &#x4e;&#111;</p>", "Hallo\nGrüße & No"),
            ("a <b>b</b>\n c<br>d", "a b c\nd"), ("<script>if (a < b) x(\"</p>\")</script>z", "z"),
            ("<SCRIPT>x</SCRIPT>y<style>p{}</style>", "y"), ("<!-- <p>no</p> -->yes", "yes"), ("<!-- open", ""),
            ("<p title='>'>x", "x"), ("<p title=\"open", ""), ("<", ""),
            ("a & b &; &#; &#xFFFFFFFF; &nope;", "a & b &; &#; &#xFFFFFFFF; &nope;"),
            ("<table><tr><td>1</td><td>2</td></tr></table>", "1\n2"), ("<script>never ends", ""), ("&", "&"),
            ("<title>t</title><body>b</body>", "b"), ("x</p></p></p>y", "x\ny"),
        ]
    )
    func text(page: String, text: String) {
        #expect(HTMLText.text(page) == text)
    }
}

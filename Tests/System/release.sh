#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# packaging/release: the sums, the source archive without a history, and the bill of materials.
# shares: packages
. "$(dirname "$0")/lib.sh"
needs dpkg-buildpackage git python3 xz readelf swift
needs_programs badged badgectl
cd "$root"
[ -e .git ] || cannot "needs the history of git"
[ "$("$bin/badged" --version)" = "badged $(packaging/version)" ] || cannot "the programs are older than the sources (make build)"
BIN=$bin packaging/release >"$work/out" 2>"$work/err" || { cat "$work/err"; exit 1; }
release=$root/$(cat "$work/out")
version=$("$bin/badged" --version | cut -d' ' -f2)
sums() { (cd "$release" && sha256sum --quiet --check SHA256SUMS && ls | grep -vx SHA256SUMS | wc -l | grep -qx "$(wc -l <SHA256SUMS)"); }
check "SHA256SUMS has every file" sums
tar xf "$release/badged-$version.tar.xz" -C "$work"
source=$work/badged-$version
check "the source archive knows its version without git" test "$(cd / && env GIT_DIR=/nonexistent "$source/packaging/version")" = "$version"
check "and its time" test "$(env -u SOURCE_DATE_EPOCH "$source/packaging/version" --time)" = "$(packaging/version --time)"
check "it has the sources" test -s "$source/Package.swift" -a -s "$source/Sources/Base/Host/Version.swift"
rm "$source/VERSION"
check "without that file the version is that of CHANGELOG.md" sh -c "'$source/packaging/version' 2>/dev/null | grep -xE '[0-9.]+(~dev)?'"
for program in "$bin/badged" "$bin/badged-network" "$bin/badged-remote" "$bin/badged-nfc" "$bin/badged-mqtt" "$bin/badged-osdp" "$bin/badged-activation"; do
    readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u >"$work/needed"
for soname in $(cat "$work/needed"); do
    path=$(ldconfig -p | sed -n "s|^\s*$soname .*=> ||p" | head -n 1)
    [ ! "$path" ] || dpkg-query --search "$path" "$(realpath "$path")" "/usr$(realpath "$path")" 2>/dev/null | sed 's/:.*//'
done | sort -u >"$work/owners"
# What the schema of SPDX 2.3 requires: https://github.com/spdx/spdx-spec/blob/v2.3/schemas/spdx-schema.json
check "the bill of materials has what SPDX 2.3 requires, and every library" python3 - "$release/badged-$version.spdx.json" "$work/owners" "$version" <<'END'
import json, re, sys
document = json.load(open(sys.argv[1]))
owners = open(sys.argv[2]).read().split()
def needs(value, *names):
    for name in names:
        assert value.get(name), (name, value)
needs(document, "SPDXID", "creationInfo", "dataLicense", "name", "spdxVersion", "documentNamespace")
assert (document["spdxVersion"], document["dataLicense"], document["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
needs(document["creationInfo"], "created", "creators")
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
texts = set()
for text in document["hasExtractedLicensingInfos"]:
    needs(text, "licenseId", "extractedText")
    texts.add(text["licenseId"])
identifiers = {"SPDXRef-DOCUMENT"}
for package in document["packages"]:
    needs(package, "SPDXID", "downloadLocation", "name", "versionInfo", "licenseDeclared")
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]) and package["SPDXID"] not in identifiers
    identifiers.add(package["SPDXID"])
    for word in package["licenseDeclared"].split():
        assert not word.startswith("LicenseRef-") or word in texts, word
for relation in document["relationships"]:
    needs(relation, "spdxElementId", "relatedSpdxElement", "relationshipType")
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= identifiers, relation
names = {package["name"]: package for package in document["packages"]}
assert len(owners) > 8 and set(owners) <= set(names), set(owners) - set(names)
for name in ["badged", "badged-activation", "badged-mqtt", "badged-osdp", "badged-virtual-card", "badged-desktop", "python3-badged"]:
    assert names[name]["versionInfo"] == sys.argv[3], names[name]
assert "swift" in names
secp256k1 = names["libsecp256k1"]
assert secp256k1["licenseDeclared"] and secp256k1["versionInfo"][0].isdigit(), secp256k1
linked = [r["spdxElementId"] for r in document["relationships"]
          if (r["relationshipType"], r["relatedSpdxElement"]) == ("STATIC_LINK", secp256k1["SPDXID"])]
assert linked == ["SPDXRef-badged", "SPDXRef-badged-virtual-card"], linked
END
finish

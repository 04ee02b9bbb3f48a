package source

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/holdfast/holdfast/source/unpack"
)

// SniffLen is how much of a payload Sniff should see: the first block of what is compressed,
// without which nothing of it can be told, may be this long. What is not compressed shows within 4
// KiB.
const SniffLen = 1 << 20

// Sniff tells by a payload's first bytes, up to SniffLen of them or the whole of a shorter one,
// which container it is; "" for anything else: single files that are compressed, and documents that
// are zips inside (docx, epub, jar, odt), among them. It never fails: what is damaged or cut too
// short to tell is not called a container.
func Sniff(head []byte) unpack.Format {
	format := unpack.Detect(head)
	if format == unpack.Zip && zippedDocument(head) {
		return ""
	}
	return format
}

// zippedDocument reports whether a zip is a document to its depositor. mimetype looks for telling
// names anywhere near the beginning; where such a name may also be that of a depositor's folder, or
// lie in a zip within the zip, more is asked for, since a container taken for a file would not be
// unpacked.
func zippedDocument(head []byte) bool {
	switch kind := mimetype.Detect(head).String(); {
	case kind == "application/zip":
		return false
	case strings.HasPrefix(kind, "application/vnd.openxmlformats"), strings.HasPrefix(kind, "application/vnd.ms-visio"):
		return bytes.Contains(head, []byte("[Content_Types].xml")) // ECMA-376 part 2, 6.2.3
	case kind == "application/vnd.google-earth.kmz":
		return firstZipName(head) == "doc.kml"
	case kind == "application/vnd.android.package-archive":
		name := firstZipName(head)
		return name == "" || name == "AndroidManifest.xml" || name == "classes.dex" || strings.HasPrefix(name, "META-INF/")
	default: // EPUB, ODF and JAR are told by their first entry
		return true
	}
}

// firstZipName returns the name in the header that a zip begins with (APPNOTE 4.3.7).
func firstZipName(head []byte) string {
	const nameLengthAt, nameAt = 26, 30
	if len(head) < nameAt {
		return ""
	}
	length := int(binary.LittleEndian.Uint16(head[nameLengthAt:]))
	return string(head[nameAt:min(nameAt+length, len(head))])
}

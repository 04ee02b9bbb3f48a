package source

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/holdfast/holdfast/source/unpack"
)

// SniffLen is how many bytes of a payload Sniff should see. The first block of compressed data may
// be this long, and nothing can be recognized without it. Uncompressed formats show within 4 KiB.
const SniffLen = 1 << 20

// Sniff returns the container format of a payload from its first bytes: SniffLen of them, or the
// whole of a shorter payload. It returns "" for anything else, including single compressed files
// and documents that are zips inside (docx, epub, jar, odt). It also returns "" for data that is
// damaged or too short.
func Sniff(head []byte) unpack.Format {
	format := unpack.Detect(head)
	if format == unpack.Zip && zippedDocument(head) {
		return ""
	}
	return format
}

// zippedDocument reports whether a zip is a document. mimetype looks for typical names anywhere
// near the beginning. Such a name may also be a depositor's folder, or lie in a nested zip. In
// these cases zippedDocument checks more, because a container taken for a document would not be
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
	default: // mimetype recognizes EPUB, ODF and JAR by their first entry
		return true
	}
}

// firstZipName returns the name in the first header of a zip (APPNOTE 4.3.7).
func firstZipName(head []byte) string {
	const nameLengthAt, nameAt = 26, 30
	if len(head) < nameAt {
		return ""
	}
	length := int(binary.LittleEndian.Uint16(head[nameLengthAt:]))
	return string(head[nameAt:min(nameAt+length, len(head))])
}

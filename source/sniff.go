package source

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/holdfast/holdfast/source/unpack"
)

// Kind is the format of a payload, as far as it matters whether it is a container.
type Kind string

// The kinds.
const (
	KindZip   Kind = "zip"
	KindTar   Kind = "tar"
	KindTarGz Kind = "tar.gz"
	KindTarBz Kind = "tar.bz2"
	KindGzip  Kind = "gzip"  // one compressed file, or not known to hold a tar
	KindOther Kind = "other" // anything else, documents that are zips inside (docx, epub, jar, odt) among them
)

// SniffLen is how much of a payload Sniff should see: a bzip2 block, without which nothing of it can be decompressed,
// may be this long. All other kinds show within 4 KiB.
const SniffLen = 1 << 20

// Container reports whether unpack.Walk opens payloads of this kind.
func (k Kind) Container() bool {
	switch k {
	case KindZip, KindTar, KindTarGz, KindTarBz:
		return true
	default:
		return false
	}
}

// Sniff tells a payload's kind by its first bytes, up to SniffLen of them or the whole of a shorter one. It never fails:
// what is damaged or cut too short to tell is not called a container.
func Sniff(head []byte) Kind {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		if zippedDocument(head) {
			return KindOther
		}
		return KindZip
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(bytes.NewReader(head))
		if err == nil && holdsTar(r) {
			return KindTarGz
		}
		return KindGzip
	case bytes.HasPrefix(head, []byte("BZh")):
		if holdsTar(bzip2.NewReader(bytes.NewReader(head))) {
			return KindTarBz
		}
		return KindOther
	case unpack.IsTar(head):
		return KindTar
	default:
		return KindOther
	}
}

// holdsTar looks at the first block. That r breaks off after it, since only its head is here, does not matter.
func holdsTar(r io.Reader) bool {
	block := make([]byte, 512)
	n, _ := io.ReadFull(r, block) // a short block is no tar
	return unpack.IsTar(block[:n])
}

// zippedDocument reports whether a zip is a document to its depositor. mimetype looks for telling names anywhere near the
// beginning; where such a name may also be that of a depositor's folder, or lie in a zip within the zip, more is asked
// for, since a container taken for a file would not be unpacked.
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

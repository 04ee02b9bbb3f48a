package unpack

import (
	"bytes"
	"io"
	"sync"
)

// Format is a format of containers.
type Format string

// The formats that Walk opens.
const (
	Zip      Format = "zip"
	Tar      Format = "tar"
	TarGzip  Format = "tar.gz"
	TarBzip2 Format = "tar.bz2"
	TarXz    Format = "tar.xz"
	TarZstd  Format = "tar.zst"
)

// Magic numbers of zips.
var (
	zipMagic      = []byte("PK\x03\x04")
	emptyZipMagic = []byte("PK\x05\x06")
)

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, zipMagic) || bytes.HasPrefix(head, emptyZipMagic)
}

// detecting keeps it at one decoder's memory however many payloads are looked at in the same
// moment.
var detecting sync.Mutex

// Detect tells a container's format by its first bytes, as many as there are; "" when it is none,
// or is cut too short to tell. Of what is compressed only a tar is a container. It never fails:
// what is wrong with a container, Walk says.
func Detect(head []byte) Format {
	if isZip(head) {
		return Zip
	}
	c, ok := compressionOf(head)
	if !ok {
		if isTar(head) {
			return Tar
		}
		return ""
	}
	detecting.Lock()
	defer detecting.Unlock()
	r, err := c.open(struct{ io.Reader }{bytes.NewReader(head)}, DefaultWindow)
	if err != nil {
		return ""
	}
	defer r.Close()
	block := make([]byte, tarBlock)
	n, _ := io.ReadFull(r, block) // that it breaks off after the block does not matter; a short one is no tar
	if !isTar(block[:n]) {
		return ""
	}
	return c.format
}

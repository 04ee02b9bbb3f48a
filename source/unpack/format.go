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

// detecting limits the memory to that of one decoder, however many payloads are checked at the same
// time.
var detecting sync.Mutex

// Detect returns a container's format by its first bytes, or "" if it is none or too few bytes are
// given. Of compressed data, only a tar is a container. It does not look for faults; Walk does.
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
	n, _ := io.ReadFull(r, block) // an error after the block does not matter; a short block is not a tar
	if !isTar(block[:n]) {
		return ""
	}
	return c.format
}

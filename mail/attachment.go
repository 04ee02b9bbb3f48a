package mail

import (
	"bytes"
	"compress/gzip"
	"io"
)

// Limits on attachments. Many servers refuse messages above 10 MiB or 25 MiB, and encoding makes an
// attachment a third larger.
const (
	MostAttached = 6 << 20   // all attachments of a message, in bytes
	mostPlain    = 512 << 10 // largest uncompressed attachment, in bytes; larger ones are compressed
)

// Attachment is a file attached to a message.
type Attachment struct {
	Name string
	Type string // its media type
	Data []byte
}

func (a Attachment) reader() io.ReadSeeker { return bytes.NewReader(a.Data) }

// List is an attachment that is written piece by piece. A small one is attached as it is, a larger
// one compressed by gzip, and one that is still too large is left out. It never uses more memory
// than the limit on attachments.
type List struct {
	name, media string
	plain       bytes.Buffer
	packed      bytes.Buffer
	packer      *gzip.Writer
	size        int64
	full        bool // too large even if compressed
}

// NewList returns an empty List with a file name and a media type.
func NewList(name, media string) *List {
	l := &List{name: name, media: media}
	l.packer = gzip.NewWriter(&l.packed)
	return l
}

// Write implements io.Writer. It never fails.
func (l *List) Write(p []byte) (int, error) {
	l.size += int64(len(p))
	if l.size <= mostPlain {
		l.plain.Write(p)
	} else {
		l.plain = bytes.Buffer{}
	}
	if l.full {
		return len(p), nil
	}
	if _, err := l.packer.Write(p); err != nil { // a buffer never fails
		return 0, err
	}
	if l.packed.Len() > MostAttached {
		l.full, l.packed = true, bytes.Buffer{}
	}
	return len(p), nil
}

// Name returns the file name.
func (l *List) Name() string { return l.name }

// Attachment completes the file. It returns ok = false if the file does not fit into the bytes that
// are left.
func (l *List) Attachment(left int) (a Attachment, ok bool) {
	if l.size <= mostPlain && l.size <= int64(left) {
		return Attachment{Name: l.name, Type: l.media, Data: l.plain.Bytes()}, true
	}
	if l.full || l.packer.Close() != nil || l.packed.Len() > left {
		return Attachment{}, false
	}
	return Attachment{Name: l.name + ".gz", Type: "application/gzip", Data: l.packed.Bytes()}, true
}

package mail

import (
	"bytes"
	"compress/gzip"
	"io"
)

// What attachments may weigh. Many servers refuse messages above 10 MiB or 25 MiB, and on its way
// an attachment grows by a third.
const (
	MostAttached = 6 << 20   // bytes of all attachments of a message
	mostPlain    = 512 << 10 // bytes of one that is attached as it is; a larger one is packed
)

// Attachment is a file that goes with a message.
type Attachment struct {
	Name string
	Type string // its media type
	Data []byte
}

func (a Attachment) reader() io.ReadSeeker { return bytes.NewReader(a.Data) }

// List is a file to be attached that is written piece by piece: as it is when it is small, packed
// by gzip when it is not, and not at all when even that is too much. Whatever is written, it takes
// no more memory than may be attached.
type List struct {
	name, media string
	plain       bytes.Buffer
	packed      bytes.Buffer
	packer      *gzip.Writer
	size        int64
	full        bool // too much even when it is packed
}

// NewList begins a file of a name and a media type.
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
	if _, err := l.packer.Write(p); err != nil { // which a buffer never gives
		return 0, err
	}
	if l.packed.Len() > MostAttached {
		l.full, l.packed = true, bytes.Buffer{}
	}
	return len(p), nil
}

// Name is that of the file.
func (l *List) Name() string { return l.name }

// Attachment ends the file and returns it when it fits into what is left; ok is false when it does
// not.
func (l *List) Attachment(left int) (a Attachment, ok bool) {
	if l.size <= mostPlain && l.size <= int64(left) {
		return Attachment{Name: l.name, Type: l.media, Data: l.plain.Bytes()}, true
	}
	if l.full || l.packer.Close() != nil || l.packed.Len() > left {
		return Attachment{}, false
	}
	return Attachment{Name: l.name + ".gz", Type: "application/gzip", Data: l.packed.Bytes()}, true
}

package bagit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// gunzip reads the members of a gzip file one after the other. Unlike gzip.Reader it takes anything
// after the last member for padding, as gzip(1) does, and sets padded.
type gunzip struct {
	src    *bufio.Reader
	member *gzip.Reader
	padded bool
}

func isGzip(src *bufio.Reader) bool {
	head, _ := src.Peek(2) // an error shows again in the next read
	return bytes.Equal(head, []byte{0x1f, 0x8b})
}

func newGunzip(src *bufio.Reader) (*gunzip, error) {
	member, err := gzip.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("read gzip: %w", hideEOF(err))
	}
	member.Multistream(false)
	return &gunzip{src: src, member: member}, nil
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.member.Read(p)
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	if !isGzip(g.src) {
		g.padded = g.src.Buffered() > 0
		return n, io.EOF
	}
	if err := g.member.Reset(g.src); err != nil {
		return n, fmt.Errorf("read gzip: %w", hideEOF(err))
	}
	g.member.Multistream(false)
	return n, nil
}

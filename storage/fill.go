package storage

import "io"

// Fill reads until buf is full. Unlike io.ReadFull it returns the reader's own error, also at the
// end, and n bytes with it.
func Fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

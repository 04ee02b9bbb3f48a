package ocfl

import (
	"encoding/binary"
	"hash"
	"math/bits"
)

// blake2b is BLAKE2b without a key (RFC 7693), which the specification wants every client to support and Go's standard
// library does not have.
type blake2b struct {
	h      [8]uint64
	count  uint64 // bytes compressed; objects stay far below 2^64
	block  [blake2bBlock]byte
	filled int
	size   int
}

const blake2bBlock = 128

// blake2bIV returns the initial state, the same as that of SHA-512 (RFC 7693, 2.6).
func blake2bIV() [8]uint64 {
	return [8]uint64{
		0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
		0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
	}
}

// blake2bSigma returns the order of message words in round r of 12 (RFC 7693, 2.7); the last two repeat the first.
func blake2bSigma(r int) *[16]byte {
	switch r % 10 {
	case 0:
		return &[16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	case 1:
		return &[16]byte{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}
	case 2:
		return &[16]byte{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}
	case 3:
		return &[16]byte{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8}
	case 4:
		return &[16]byte{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}
	case 5:
		return &[16]byte{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9}
	case 6:
		return &[16]byte{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}
	case 7:
		return &[16]byte{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10}
	case 8:
		return &[16]byte{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}
	default:
		return &[16]byte{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}
	}
}

// newBlake2b returns a hash of size bytes, 1 to 64.
func newBlake2b(size int) hash.Hash {
	b := &blake2b{size: size}
	b.Reset()
	return b
}

// Reset implements hash.Hash.
func (b *blake2b) Reset() {
	b.h = blake2bIV()
	b.h[0] ^= 0x01010000 ^ uint64(b.size)
	b.count, b.filled = 0, 0
}

// Size implements hash.Hash.
func (b *blake2b) Size() int { return b.size }

// BlockSize implements hash.Hash.
func (b *blake2b) BlockSize() int { return blake2bBlock }

// Write implements io.Writer. A full block waits until more comes, since the last one is compressed differently.
func (b *blake2b) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if b.filled == blake2bBlock {
			b.count += blake2bBlock
			b.compress(false)
			b.filled = 0
		}
		k := copy(b.block[b.filled:], p)
		b.filled += k
		p = p[k:]
	}
	return n, nil
}

// Sum implements hash.Hash.
func (b *blake2b) Sum(in []byte) []byte {
	last := *b
	clear(last.block[last.filled:])
	last.count += uint64(last.filled)
	last.compress(true)
	var out [64]byte
	for i, word := range last.h {
		binary.LittleEndian.PutUint64(out[8*i:], word)
	}
	return append(in, out[:b.size]...)
}

// compress is the function F of RFC 7693, 3.2.
func (b *blake2b) compress(final bool) {
	var m, v [16]uint64
	for i := range m {
		m[i] = binary.LittleEndian.Uint64(b.block[8*i:])
	}
	iv := blake2bIV()
	copy(v[:8], b.h[:])
	copy(v[8:], iv[:])
	v[12] ^= b.count
	if final {
		v[14] = ^v[14]
	}
	mix := func(a, bb, c, d int, x, y uint64) {
		v[a] += v[bb] + x
		v[d] = bits.RotateLeft64(v[d]^v[a], -32)
		v[c] += v[d]
		v[bb] = bits.RotateLeft64(v[bb]^v[c], -24)
		v[a] += v[bb] + y
		v[d] = bits.RotateLeft64(v[d]^v[a], -16)
		v[c] += v[d]
		v[bb] = bits.RotateLeft64(v[bb]^v[c], -63)
	}
	for r := range 12 {
		s := blake2bSigma(r)
		for i := range 4 {
			mix(i, i+4, i+8, i+12, m[s[2*i]], m[s[2*i+1]])
		}
		for i := range 4 {
			mix(i, (i+1)%4+4, (i+2)%4+8, (i+3)%4+12, m[s[8+2*i]], m[s[8+2*i+1]])
		}
	}
	for i := range b.h {
		b.h[i] ^= v[i] ^ v[i+8]
	}
}

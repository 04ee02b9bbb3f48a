package fixity

import (
	"errors"
	"hash"
)

// md2 is the slow digest of RFC 1319. It is here for old deposits; new ones should not use it.
type md2 struct {
	state    [3 * md2Block]byte // only the first block carries over
	checksum [md2Block]byte
	block    [md2Block]byte
	n        int // bytes in block
}

const md2Block = 16

// md2Table is the permutation of RFC 1319, 3.2, made from the digits of pi.
var md2Table = [256]byte{
	41, 46, 67, 201, 162, 216, 124, 1, 61, 54, 84, 161, 236, 240, 6, 19,
	98, 167, 5, 243, 192, 199, 115, 140, 152, 147, 43, 217, 188, 76, 130, 202,
	30, 155, 87, 60, 253, 212, 224, 22, 103, 66, 111, 24, 138, 23, 229, 18,
	190, 78, 196, 214, 218, 158, 222, 73, 160, 251, 245, 142, 187, 47, 238, 122,
	169, 104, 121, 145, 21, 178, 7, 63, 148, 194, 16, 137, 11, 34, 95, 33,
	128, 127, 93, 154, 90, 144, 50, 39, 53, 62, 204, 231, 191, 247, 151, 3,
	255, 25, 48, 179, 72, 165, 181, 209, 215, 94, 146, 42, 172, 86, 170, 198,
	79, 184, 56, 210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4, 241,
	69, 157, 112, 89, 100, 113, 135, 32, 134, 91, 207, 101, 230, 45, 168, 2,
	27, 96, 37, 173, 174, 176, 185, 246, 28, 70, 97, 105, 52, 64, 126, 15,
	85, 71, 163, 35, 221, 81, 175, 58, 195, 92, 249, 206, 186, 197, 234, 38,
	44, 83, 13, 110, 133, 40, 132, 9, 211, 223, 205, 244, 65, 129, 77, 82,
	106, 220, 55, 200, 108, 193, 171, 250, 36, 225, 123, 8, 12, 189, 177, 74,
	120, 136, 149, 139, 227, 99, 232, 109, 233, 203, 213, 254, 59, 0, 29, 57,
	242, 239, 183, 14, 102, 88, 208, 228, 166, 119, 114, 248, 235, 117, 75, 10,
	49, 68, 80, 180, 143, 237, 31, 26, 219, 153, 141, 51, 159, 17, 131, 20,
}

func newMD2() hash.Hash { return &md2{} }

// Size implements hash.Hash.
func (d *md2) Size() int { return md2Block }

// BlockSize implements hash.Hash.
func (d *md2) BlockSize() int { return md2Block }

// Reset implements hash.Hash.
func (d *md2) Reset() { *d = md2{} }

// Write implements io.Writer. It never fails.
func (d *md2) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := copy(d.block[d.n:], p)
		d.n, p = d.n+n, p[n:]
		if d.n == md2Block {
			d.fold(d.block)
			d.n = 0
		}
	}
	return total, nil
}

// fold processes one block (RFC 1319, 3.2 and 3.4).
func (d *md2) fold(block [md2Block]byte) {
	last := d.checksum[md2Block-1]
	for i, b := range block {
		d.checksum[i] ^= md2Table[b^last]
		last = d.checksum[i]
		d.state[md2Block+i] = b
		d.state[2*md2Block+i] = b ^ d.state[i]
	}
	t := byte(0)
	for round := range 18 {
		for i := range d.state {
			d.state[i] ^= md2Table[t]
			t = d.state[i]
		}
		t += byte(round)
	}
}

// Sum implements hash.Hash.
func (d *md2) Sum(in []byte) []byte {
	end := *d
	pad := byte(md2Block - end.n)
	for i := end.n; i < md2Block; i++ {
		end.block[i] = pad
	}
	end.fold(end.block)
	end.fold(end.checksum)
	return append(in, end.state[:md2Block]...)
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (d *md2) MarshalBinary() ([]byte, error) {
	out := append([]byte{byte(d.n)}, d.state[:md2Block]...)
	out = append(out, d.checksum[:]...)
	return append(out, d.block[:]...), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (d *md2) UnmarshalBinary(raw []byte) error {
	if len(raw) != 1+3*md2Block || raw[0] >= md2Block {
		return errors.New("not a state of md2")
	}
	*d = md2{n: int(raw[0])}
	copy(d.state[:md2Block], raw[1:])
	copy(d.checksum[:], raw[1+md2Block:])
	copy(d.block[:], raw[1+2*md2Block:])
	return nil
}

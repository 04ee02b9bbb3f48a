package base

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// notary seals interim entries, and opens those that it can trust. The store of interim data is not
// trusted: whoever can write to it could else have a step preserve other bytes than those that it
// was given. An entry is bound to its item by the item's key, which the Registry gives with the
// claim, and to the name it was kept under and the attempt that kept it. An entry that is not
// authentic is as one that is lost.
//
// What it cannot tell is that an authentic entry is not the last one of its name: callers take an
// old one for what it is, work that is done again.
type notary struct {
	key     []byte
	attempt int64 // that it seals for
	after   int64 // entries of attempts up to this one are not opened: an admin had the item checked anew
}

// noteFormat is the first byte of a sealed entry: then come the attempt that kept it, in 8 bytes,
// the code, and what was kept.
const noteFormat = 1

const noteHead = 1 + 8 + sha256.Size

// newNotary makes one for an attempt. A Registry of the version before gives no key: then the
// attempt trusts what it has kept itself, and nothing else, which costs time.
func newNotary(key []byte, attempt int64) notary {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // which never fails
	}
	return notary{key: key, attempt: attempt}
}

// seal returns what is kept under a name for a value.
func (n notary) seal(name string, value []byte) []byte {
	return slices.Concat([]byte{noteFormat}, binary.BigEndian.AppendUint64(nil, uint64(n.attempt)), n.code(name, n.attempt, value), value)
}

// open returns the value of what was kept under a name; ok is false when it is not authentic.
func (n notary) open(name string, kept []byte) (value []byte, ok bool) {
	if len(kept) < noteHead || kept[0] != noteFormat {
		return nil, false
	}
	by, value := int64(binary.BigEndian.Uint64(kept[1:9])), kept[noteHead:]
	if by <= n.after || by > n.attempt || !hmac.Equal(kept[9:noteHead], n.code(name, by, value)) {
		return nil, false
	}
	return value, true
}

func (n notary) code(name string, attempt int64, value []byte) []byte {
	h := hmac.New(sha256.New, n.key)
	head := binary.BigEndian.AppendUint64([]byte{noteFormat}, uint64(attempt))
	h.Write(binary.BigEndian.AppendUint64(head, uint64(len(name))))
	h.Write([]byte(name))
	h.Write(value)
	return h.Sum(nil)
}

package base

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// notary authenticates interim entries. The store of interim data is not trusted: an intruder there
// could make a step preserve other bytes than those submitted. An entry is bound to its name, to
// the attempt that wrote it, and to its item by a key that comes with the claim. An entry that is
// not authentic counts as lost. A notary cannot detect an authentic entry that is out of date;
// callers then repeat work.
type notary struct {
	key     []byte
	attempt int64 // the attempt that writes
	after   int64 // entries of attempts up to this one are refused: an admin requeued the item to be checked again
}

// noteFormat is the first byte of a sealed entry. Then follow the number of the attempt that wrote
// it (8 bytes), the HMAC, and the value.
const noteFormat = 1

const noteHead = 1 + 8 + sha256.Size

// newNotary returns the notary of an attempt. A Registry of the version before sends no key. The
// attempt then trusts only its own entries, which costs time.
func newNotary(key []byte, attempt int64) notary {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // rand.Read never fails
	}
	return notary{key: key, attempt: attempt}
}

// seal returns the entry to store under a name for a value.
func (n notary) seal(name string, value []byte) []byte {
	return slices.Concat([]byte{noteFormat}, binary.BigEndian.AppendUint64(nil, uint64(n.attempt)), n.code(name, n.attempt, value), value)
}

// open returns the value of an entry that was stored under a name. ok is false if it is not
// authentic.
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

package premis

import (
	"crypto/sha1" // UUID version 5 is defined over SHA-1; nothing is secured by it
	"encoding/binary"
	"encoding/hex"
)

// UUIDType is the identifier type of EventID's results.
const UUIDType = "UUID"

// EventID returns the identifier of an event: a version 5 UUID (RFC 9562) of the work item, the
// event's name, and further parts such as a replica or a version. So a step that runs again records
// the same event, not a second one. The same arguments always give the same id, and ("a", "bc")
// gives another one than ("ab", "c").
func EventID(item, event string, parts ...string) Identifier {
	// Holdfast's own namespace. A change would duplicate every recorded event.
	namespace := [16]byte{0x5b, 0x1f, 0x0c, 0x5e, 0x9d, 0x3a, 0x4e, 0x0b, 0x8a, 0x71, 0x2d, 0x64, 0xc6, 0x0e, 0x97, 0xf3}
	h := sha1.New()
	h.Write(namespace[:])
	for _, s := range append([]string{item, event}, parts...) {
		// Lengths separate the parts, whatever they contain.
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x50 // version 5
	u[8] = u[8]&0x3f | 0x80 // the variant of RFC 9562
	x := hex.EncodeToString(u)
	return Identifier{Type: UUIDType, Value: x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]}
}

package unpack

import "math"

// Limits bound what one container may unpack to, and say how its names are read. A zero field takes
// its default.
type Limits struct {
	// Entries is the greatest number of entries, folders included. Default 1,000,000.
	Entries int64
	// Bytes is the greatest sum of the files' sizes; a compressed tar's headers count, too.
	// Default 4 TiB.
	Bytes int64
	// Ratio is how many times its own size a container may unpack to, once that is more than 1 GiB.
	// Default 200: real collections stay under 20, a bomb made with deflate reaches 1032.
	Ratio int64
	// NameLength is the greatest length of a name in bytes. Default 1024, the most that object
	// stores keep.
	NameLength int
	// Window is the greatest number of bytes that decompressing may keep in memory: an xz
	// dictionary, a Zstandard window. Default 64 MiB: what `xz -9` asks for, and eight times what
	// `zstd -19` does.
	Window int64
	// NameEncoding is how names are read that are not UTF-8, as names.ParseEncoding takes it. By
	// default they are refused.
	NameEncoding string
}

// The defaults of Limits.
const (
	DefaultEntries    = 1_000_000
	DefaultBytes      = 4 << 40
	DefaultRatio      = 200
	DefaultNameLength = 1024
	DefaultWindow     = 64 << 20

	// MaxDecoded bounds the bytes of names in one container that are not UTF-8: each of them is an
	// event.
	MaxDecoded = 1 << 20
)

// ratioFloor is what any container may unpack to: small ones of blank pages or zeros are common and
// do no harm.
const ratioFloor = 1 << 30

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = DefaultEntries
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Ratio <= 0 {
		l.Ratio = DefaultRatio
	}
	if l.NameLength <= 0 {
		l.NameLength = DefaultNameLength
	}
	if l.Window <= 0 {
		l.Window = DefaultWindow
	}
	return l
}

// ceiling is the number of bytes that a container of the given size may unpack to. It goes by the
// size of the whole container, not by what was read so far, so that the order of its files does not
// matter.
func (l Limits) ceiling(size int64) int64 {
	byRatio := int64(math.MaxInt64)
	if size <= math.MaxInt64/l.Ratio {
		byRatio = size * l.Ratio
	}
	return min(l.Bytes, max(byRatio, ratioFloor))
}

// buffers is what a walk holds beside a window: read-ahead, names, a portion of a zip's directory.
const buffers = 32 << 20

// Memory is the greatest number of bytes that a walk through a container holds that begins with
// head.
func (l Limits) Memory(head []byte) int64 {
	return buffers + l.WindowOf(head)
}

// WindowOf is the most that is held to undo the compression of a container that begins with head.
// It is 0 for compressions whose windows are small.
func (l Limits) WindowOf(head []byte) int64 {
	if c, ok := compressionOf(head); ok && c.windowed {
		return l.withDefaults().Window
	}
	return 0
}

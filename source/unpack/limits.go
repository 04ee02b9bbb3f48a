package unpack

import "math"

// Limits bound what a container may unpack to, and say how its names are decoded. Zero fields take
// their defaults.
type Limits struct {
	// Entries is the greatest number of entries, including folders. Default 1,000,000.
	Entries int64
	// Bytes is the greatest sum of the files' sizes, including the headers of a compressed tar.
	// Default 4 TiB.
	Bytes int64
	// Ratio is how many times its own size a container may unpack to, beyond 1 GiB. Default 200:
	// real collections stay below 20, a deflate bomb reaches 1032.
	Ratio int64
	// NameLength is the greatest length of a name in bytes. Default 1024, the limit of object
	// stores.
	NameLength int
	// Window is the greatest number of bytes that decompression may keep in memory: the dictionary
	// of xz, the window of Zstandard. Default 64 MiB: what `xz -9` needs, and eight times what
	// `zstd -19` needs.
	Window int64
	// NameEncoding is the encoding of names that are not UTF-8, as pathset.ParseEncoding reads it.
	// By default such names are refused.
	NameEncoding string
}

// The defaults of Limits.
const (
	DefaultEntries    = 1_000_000
	DefaultBytes      = 4 << 40
	DefaultRatio      = 200
	DefaultNameLength = 1024
	DefaultWindow     = 64 << 20

	// MaxDecoded bounds the total bytes of names in one container that are not UTF-8, because each
	// such name is an event.
	MaxDecoded = 1 << 20
)

// ratioFloor is what any container may unpack to, because small ones of blank pages or zeros are
// common and harmless.
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

// ceiling returns the number of bytes that a container of the given size may unpack to. It depends
// on the size of the whole container, not on what was read so far, so the order of the files does
// not matter.
func (l Limits) ceiling(size int64) int64 {
	byRatio := int64(math.MaxInt64)
	if size <= math.MaxInt64/l.Ratio {
		byRatio = size * l.Ratio
	}
	return min(l.Bytes, max(byRatio, ratioFloor))
}

// buffers is the memory of a walk beside a window: read-ahead, names, a portion of a zip's
// directory.
const buffers = 32 << 20

// Memory returns the greatest number of bytes of memory for walking a container that begins with
// head.
func (l Limits) Memory(head []byte) int64 {
	return buffers + l.WindowOf(head)
}

// WindowOf returns the greatest number of bytes for decompressing a container that begins with
// head. It returns 0 for compressions with small windows.
func (l Limits) WindowOf(head []byte) int64 {
	if c, ok := compressionOf(head); ok && c.windowed {
		return l.withDefaults().Window
	}
	return 0
}

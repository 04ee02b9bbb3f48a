package storage

import "context"

// Linker is implemented by a Copier whose copies may share their bytes on the medium with what they
// were made of, so that what damages the one damages the other.
type Linker interface {
	// Links says so.
	Links() bool
}

// CopyApart is Copy, but that the two objects share nothing: each is a replica of its own.
func CopyApart(ctx context.Context, dst Store, dstKey string, src Store, srcKey string) (Info, error) {
	if l, ok := dst.(Linker); ok && l.Links() {
		return copyBytes(ctx, dst, dstKey, src, srcKey)
	}
	return Copy(ctx, dst, dstKey, src, srcKey)
}

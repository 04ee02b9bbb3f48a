package storage

import "context"

// Linker is implemented by a Copier whose copies may share their bytes on disk with the source, so
// that damage to one damages both.
type Linker interface {
	// Links reports whether copies may share bytes with their source.
	Links() bool
}

// CopyApart is Copy for replicas: the copy never shares bytes with its source.
func CopyApart(ctx context.Context, dst Store, dstKey string, src Store, srcKey string) (Info, error) {
	if l, ok := dst.(Linker); ok && l.Links() {
		return copyBytes(ctx, dst.Create, dstKey, src, srcKey)
	}
	return Copy(ctx, dst, dstKey, src, srcKey)
}

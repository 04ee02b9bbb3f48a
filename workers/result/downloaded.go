package result

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// NameDownload is the durable result with the list of downloaded files: Process opens only names in
// that list (R3).
const NameDownload = "download"

// Downloaded describes a job's downloaded files.
type Downloaded struct {
	staging.List        // of the staged files, in the order of the submission
	Files        int64  `json:"files"`
	Bytes        int64  `json:"bytes"`
	Checked      int64  `json:"checked"` // files with a digest stated by the depositor
	upload       string // key of the item's upload; "" if it has none
}

// DownloadOf returns the description of an item's downloaded files.
func DownloadOf(item *base.Item) (Downloaded, error) {
	d, err := Of[Downloaded](item, NameDownload, "no download is recorded; requeue the item at download")
	d.upload = UploadKey(item)
	return d, err
}

// UploadKey returns the key of the upload that is an item's payload; "" if it is none. The upload
// stays until no item needs it any more. Steps read it where it is, and must not delete it.
func UploadKey(item *base.Item) string {
	if id, ok := registry.UploadID(item.Spec().URL); ok {
		return source.UploadKey(id)
	}
	return ""
}

// Contents returns the list of the downloaded files.
func (d Downloaded) Contents(kind registry.PayloadType) Contents {
	return Contents{From: d.Key, List: d.List, Kind: kind, upload: d.upload}
}

// Contents is a list of the producer's files.
type Contents struct {
	staging.List                      // of the staged files
	From         string               `json:"from"`             // key of the list of downloaded files
	Kind         registry.PayloadType `json:"kind"`             // never auto
	Folder       string               `json:"folder,omitempty"` // folder of the files that describe the object; "" for the top
	upload       string               // key of the item's upload; "" if it has none
}

// All yields the files of the list. A list of an earlier program, which recorded no digest, counts
// as damaged.
func (c Contents) All(ctx context.Context, s storage.Store) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		if c.Digest == "" {
			yield(staging.File{}, fmt.Errorf("list %s has no digest, as an earlier program wrote it: %w", c.Key, staging.ErrDamaged))
			return
		}
		for f, err := range staging.ReadList[staging.File](ctx, s, c.List) {
			if err == nil && !c.owns(f.Key) {
				yield(f, fmt.Errorf("list %s names %s, which is not the item's: %w", c.Key, f.Key, staging.ErrDamaged))
				return
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// Staged returns storage.ErrNotFound if the list, or a file of a short list, is gone from staging.
func (c Contents) Staged(ctx context.Context, s storage.Store) error {
	if c.Inline == "" {
		_, err := s.Stat(ctx, c.Key)
		return err
	}
	for f, err := range c.All(ctx, s) {
		if err == nil {
			_, err = s.Stat(ctx, f.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owns reports whether a key belongs to the item of the list.
func (c Contents) owns(key string) bool {
	id, _, _ := strings.Cut(strings.TrimPrefix(c.Key, staging.ItemsPrefix), "/")
	return staging.Owned(id, key) || key != "" && key == c.upload
}

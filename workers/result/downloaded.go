package result

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// NameDownload is the name of the durable result that says what was downloaded: the only names that
// Process opens (R3).
const NameDownload = "download"

// Downloaded is what a job's files came to.
type Downloaded struct {
	List    string `json:"list"`             // key of the list of staged files, in the order of the submission
	Digest  string `json:"digest,omitempty"` // of that list; "" where a program of before has written it
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	Checked int64  `json:"checked"` // files that have a digest which the depositor gave
}

// DownloadOf returns what was downloaded for an item.
func DownloadOf(item *base.Item) (Downloaded, error) {
	return Of[Downloaded](item, NameDownload, "nothing is noted as downloaded; requeue the item at download")
}

// Contents are the files as they were downloaded.
func (d Downloaded) Contents(kind registry.PayloadType) Contents {
	return Contents{From: d.List, List: d.List, Digest: d.Digest, Kind: kind}
}

// Contents is a list of the producer's files.
type Contents struct {
	From   string               `json:"from"`             // key of the list of what was downloaded
	List   string               `json:"list"`             // key of the list of staged files
	Digest string               `json:"digest,omitempty"` // of that list
	Kind   registry.PayloadType `json:"kind"`             // never auto
	Folder string               `json:"folder,omitempty"` // where the files lie that describe it; "" for the top
}

// All yields the files of the list that was written. One of a program of before, which noted no
// digest of it, is as one that is damaged.
func (c Contents) All(ctx context.Context, s storage.Store) iter.Seq2[staging.File, error] {
	return func(yield func(staging.File, error) bool) {
		if c.Digest == "" {
			yield(staging.File{}, fmt.Errorf("list %s has no digest, as an earlier program wrote it: %w", c.List, staging.ErrDamaged))
			return
		}
		for f, err := range staging.ReadList[staging.File](ctx, s, c.List, c.Digest) {
			if err == nil && !c.owns(f.Key) {
				yield(f, fmt.Errorf("list %s names %s, which is not the item's: %w", c.List, f.Key, staging.ErrDamaged))
				return
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// owns says whether a key is of the item whose list it is.
func (c Contents) owns(key string) bool {
	id, _, _ := strings.Cut(strings.TrimPrefix(c.List, staging.ItemsPrefix), "/")
	return staging.Owned(id, key)
}

package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
)

// fetchedFolder is the folder of the files that a bag's fetch.txt names.
const fetchedFolder = "fetched"

// fetchMissing fetches the files that a bag omits and names in fetch.txt (RFC 8493, 2.2.3), and
// returns the contents with them. It does not fetch for a bag that lacks anything else: that bag is
// refused with all its faults.
func (w *Opener) fetchMissing(ctx context.Context, item *base.Item, room *staging.Room, c result.Contents, o bagit.Options) (result.Contents, error) {
	has := false
	for f, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return c, err
		}
		has = has || path.Base(f.Name) == bagit.FetchFile
	}
	if !has {
		return c, nil
	}
	o.CompletenessOnly = true
	report, err := w.judgeBag(ctx, item, c, o)
	if err != nil || !report.Holey() {
		return c, err
	}
	if err := intake.FetchRefusal(report); err != nil {
		return c, errors.Join(err, payload.NoteRefusal(item, "bag-refused", err))
	}
	f, err := w.Payloads.Fetcher(ctx, item, fetchedFolder, room)
	if err != nil {
		return c, err
	}
	// The measures of the transfer belong to the download.
	f.BytesDone, f.FilesDone = item.Progress("bytes of the bag fetched", "bytes").Kept(), item.Progress("files of the bag fetched", "files").Kept()
	for _, a := range report.Algorithms {
		if slices.Contains(fixity.Algorithms(), a) { // the others are computed when the bag is judged
			f.Algorithms = append(f.Algorithms, a)
		}
	}
	err = f.All(ctx, func(fn func(payload.Member) error) error { return w.eachMissing(report, fn) })
	if err != nil {
		return c, fmt.Errorf("fetch the files named in %s: %w", bagit.FetchFile, err)
	}
	return w.listWithFetched(ctx, item, c, report, f)
}

// eachMissing calls fn for each file that a bag omits.
func (w *Opener) eachMissing(report *bagit.Report, fn func(payload.Member) error) error {
	for i, e := range report.Fetch {
		if e.Present {
			continue
		}
		// The length in fetch.txt is unreliable; the manifests decide.
		m := payload.Member{Seq: int64(i) + 1, Name: pathInBag(report, e.File), Wanted: staging.Wanted{URL: e.URL, SizeBytes: -1}}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

// listWithFetched writes the list of the bag's files including the fetched ones.
func (w *Opener) listWithFetched(ctx context.Context, item *base.Item, c result.Contents, report *bagit.Report, f *payload.Fetcher) (result.Contents, error) {
	key := staging.Key(item.Lease(), unpackedFolder+"/filled.jsonl")
	list, err := staging.CreateList[staging.File](ctx, w.Payloads.Staging, key)
	if err != nil {
		return c, err
	}
	defer list.Abort() //nolint:errcheck // an aborted list leaves nothing that matters
	seq := int64(0)
	for file, err := range c.All(ctx, w.Payloads.Staging) {
		if err != nil {
			return c, err
		}
		seq = file.Seq
		if err := list.Add(file); err != nil {
			return c, err
		}
	}
	err = w.eachMissing(report, func(m payload.Member) error {
		file, ok, err := f.Noted(ctx, m)
		if err != nil {
			return err
		}
		if !ok {
			return payload.NoteLost(m.Name)
		}
		file.Seq = seq + m.Seq
		return list.Add(file)
	})
	if err != nil {
		return c, err
	}
	err = list.Commit(ctx)
	c.List = list.List()
	return c, err
}

package registrybench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// Archive says how much of everything SeedArchive makes.
type Archive struct {
	Items   int // in batches of a hundred jobs
	Batch   int // jobs of one more batch, all with ArchiveTitle in their names
	Objects int // of ten files
	Files   int // of one more object, ArchiveObject
}

const (
	// ArchiveTitle is the title of all jobs of the large batch.
	ArchiveTitle = "Harbour"
	// ArchiveObject is the large object. Its first version has ten files, its second all of them anew.
	ArchiveObject = "ark:/99999/fk4archive"
)

// SeedArchive fills an empty database as Seed does, and adds a large batch, objects and a large
// object, as a library has them whose pages are measured.
func SeedArchive(ctx context.Context, address string, key *receipt.Key, a Archive) error {
	if err := seedCollections(ctx, address, 1); err != nil {
		return fmt.Errorf("seed collections: %w", err)
	}
	if err := seedObjects(ctx, address, key, a); err != nil {
		return fmt.Errorf("seed objects: %w", err)
	}
	for _, o := range []Seeding{
		{Items: a.Batch + 1, Jobs: a.Batch, Seed: 2, Title: ArchiveTitle},
		{Items: a.Items, Jobs: 100, Seed: 1},
	} {
		o.Collections, o.History = 24, true
		if err := Seed(ctx, address, o); err != nil {
			return err
		}
	}
	return nil
}

func seedObjects(ctx context.Context, address string, key *receipt.Key, a Archive) (err error) {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: address, ReceiptKey: key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const callers = 64
	if _, err := Preserve(ctx, s, seedCollection(0), a.Objects, callers); err != nil {
		return err
	}
	const first = 10
	for i, n := range []int{first, a.Files} {
		batch, err := submitJobs(ctx, s, seedCollection(0), 1)
		if err != nil {
			return err
		}
		w := worker{Works: s, batch: batch, took: map[string]*times{}}
		w.object = func(ctx context.Context, c registry.Claim) error { return preserveLarge(ctx, s, c, i+1, n) }
		for _, stage := range stages() {
			if err := w.run(ctx, stage, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// preserveLarge makes a version of ArchiveObject with the first n files, all of them new.
func preserveLarge(ctx context.Context, s registry.Preserving, c registry.Claim, version, n int) error {
	r := registry.IdentifyRequest{Owner: Owner, LocalIDs: []string{"large"}, Proposed: ArchiveObject}
	if _, err := s.Identify(ctx, c.Lease, r); err != nil {
		return err
	}
	if _, err := s.Intend(ctx, c.Lease, registry.Intent{ObjectID: ArchiveObject, Version: version, Plan: []byte(`{}`)}); err != nil {
		return err
	}
	if err := recordLarge(ctx, s, c.Lease, version, n); err != nil {
		return err
	}
	return s.RecordVersion(ctx, c.Lease, registry.VersionRecord{
		ObjectID: ArchiveObject, Version: version, Collection: c.Item.Collection, Owner: Owner,
		Title: "Newspapers, all pages", Creator: "Somebody", Files: int64(n), SizeBytes: int64(n) << 10, CreatedAt: time.Now(),
		Replicas: []registry.Replica{{Storage: registry.DefaultStorage, VerifiedAt: time.Now()}},
	})
}

// recordLarge enters the first n files of a version.
func recordLarge(ctx context.Context, s registry.Preserving, l registry.Lease, version, n int) error {
	const most = 500 // rows a call
	var rows []registry.File
	for i := range n {
		path := fmt.Sprintf("producer/folder-%03d/file-%06d.tif", i/1000, i)
		rows = append(rows, registry.File{
			Path: path, Version: version, ContentPath: fmt.Sprintf("v%d/content/%s", version, path), SizeBytes: 1 << 10, MIMEType: "image/tiff",
			Digests: map[string]string{"sha512": fmt.Sprintf("%0127x%d", i, version)},
		})
		if len(rows) < most && i < n-1 {
			continue
		}
		if err := s.RecordFiles(ctx, l, ArchiveObject, version, rows); err != nil {
			return err
		}
		rows = rows[:0]
	}
	return nil
}

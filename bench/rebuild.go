package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/open"
)

// rebuilds makes a storage root of many objects, and measures `holdfast rebuild` and `holdfast reconcile`
// on it. With -adopt another program has made the objects, and `holdfast adopt` is measured first.
func rebuilds(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var binary, where, address, database string
	var objects int
	var foreign bool
	f := flag.NewFlagSet("bench rebuild", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&objects, "objects", 100_000, "number of objects of the storage")
	f.BoolVar(&foreign, "adopt", false, "the objects are those of another program, and are adopted into a database that is removed")
	f.StringVar(&binary, "bin", "bin/holdfast", "the holdfast binary to measure")
	f.StringVar(&where, "dir", os.TempDir(), "an existing folder on the disk to use; files created in it are removed")
	f.StringVar(&address, "storage", "", "an empty storage, file:///... or s3://..., in which the objects stay (default one in a folder that is removed)")
	f.StringVar(&database, "database", "", "an empty database, postgres://... (default an SQLite file that is removed)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || objects < 1 {
		return errors.New("unexpected arguments, or no objects; see -help")
	}
	folder, err := os.MkdirTemp(where, "holdfast-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if address == "" {
		own := filepath.Join(folder, "storage")
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		address = (&url.URL{Scheme: "file", Path: own}).String()
	}
	if database == "" {
		database = "sqlite:" + filepath.Join(folder, "registry.db")
	}
	begun := time.Now()
	if err := makeRoot(ctx, address, objects, foreign); err != nil {
		return fmt.Errorf("make the storage: %w", err)
	}
	_, _ = fmt.Fprintf(stderr, "%d objects made in %s\n", objects, time.Since(begun).Round(time.Second))
	columns := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	defer func() { err = errors.Join(err, columns.Flush()) }()
	_, _ = fmt.Fprintln(columns, "COMMAND\tOBJECTS\tTIME\tOBJECTS A SECOND\tCPU EACH\tPEAK MEMORY") // Flush returns errors
	measure := func(database, command string, more ...string) error {
		args := append([]string{command, "--database", database, "--storage", registry.DefaultStorage + "=" + address}, more...)
		cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // what is measured
		cmd.Env, cmd.Stderr = append(environment(), "HOLDFAST_RECEIPT_KEY="+receiptKey), stderr
		begun := time.Now()
		if out, err := cmd.Output(); err != nil {
			return fmt.Errorf("holdfast %s: %w\n%.2000s", command, err, out)
		}
		spent, state := time.Since(begun), cmd.ProcessState
		peak := "unknown"
		if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
			peak = fmt.Sprintf("%d MiB", usage.Maxrss<<10/mib)
		}
		cpu := (state.UserTime() + state.SystemTime()) / time.Duration(objects)
		_, _ = fmt.Fprintf(columns, "%s\t%d\t%s\t%.0f\t%s\t%s\n", command, objects, spent.Round(100*time.Millisecond), float64(objects)/spent.Seconds(),
			ms(cpu), peak)
		return nil
	}
	if foreign {
		adopting := "sqlite:" + filepath.Join(folder, "adopting.db")
		if err := makeCollection(ctx, adopting); err != nil {
			return fmt.Errorf("make the collection: %w", err)
		}
		if err := measure(adopting, "adopt", "--collection", "bench", registry.DefaultStorage); err != nil {
			return err
		}
	}
	return errors.Join(measure(database, "rebuild"), measure(database, "reconcile"))
}

// makeCollection makes a database with the collection of adopted objects.
func makeCollection(ctx context.Context, database string) error {
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: database})
	if err != nil {
		return err
	}
	c := registry.Collection{Mnemonic: "bench", Profile: registry.Profile{Owner: registrybench.Owner, Collections: []string{"ark:/99999/bench"}}}
	return errors.Join(s.PutCollection(ctx, c, "bench"), s.Close())
}

// makeRoot makes a storage root with objects of one deposited file each, as ingest leaves them, or with foreign
// ones of as many files.
func makeRoot(ctx context.Context, address string, objects int, foreign bool) (err error) {
	key, err := receipt.ParseKey(receiptKey)
	if err != nil {
		return err
	}
	store, err := open.URL(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	root, err := ocfl.OpenRoot(ctx, store, "", nil)
	if err != nil {
		return err
	}
	put := func(ctx context.Context, name string, text []byte) error {
		_, err := storage.Put(ctx, store, name, text)
		return err
	}
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" { // without a sync for each file
		put = func(_ context.Context, name string, text []byte) error {
			path := filepath.Join(u.Path, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, text, 0o600)
		}
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(8)
	for n := range objects {
		all.Go(func() error {
			files, err := storedObject(root, key, n, foreign) //nolint:contextcheck // it plans in memory
			if err != nil {
				return err
			}
			for name, text := range files {
				if err := put(ctx, name, text); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// storedObject returns the files of an object of one version. A foreign one has no ARK, no receipt, and none of
// our folders.
func storedObject(root *ocfl.Root, key *receipt.Key, n int, foreign bool) (map[string][]byte, error) {
	ark, local := fmt.Sprintf("ark:/99999/fk4%08d", n), fmt.Sprintf("plate %08d", n)
	item := fmt.Sprintf("01a2224f-31ed-7435-9e70-%012d", n)
	created := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	content := map[string]string{
		"producer/plate.txt":        fmt.Sprintf("The harbour, seen from the tower, plate %d\n", n),
		"system/mrt-erc.txt":        fmt.Sprintf("erc:\nwho: Lindqvist, Ada\nwhat: Glass plate %d\nwhen: 1890\nwhere: %s\nwhere: %s\n", n, ark, local),
		"system/mrt-dc.xml":         fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DublinCore xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n  <dc:title>Glass plate %d</dc:title>\n  <dc:identifier>%s</dc:identifier>\n</DublinCore>\n", n, ark),
		"system/mrt-ingest.txt":     fmt.Sprintf("ingest:\tHoldfast\njob:\t%s\nprofile:\tbench\ncollection:\tark:/99999/bench\nassignedIdentifier:\t%s\nlocalIdentifier:\t%s\n", item, ark, local),
		"system/mrt-manifest.txt":   fmt.Sprintf("#%%checkm_0.7\n# a list of the files of %s\n#%%eof\n", ark),
		"system/mrt-membership.txt": "ark:/99999/bench",
		"system/mrt-mom.txt":        fmt.Sprintf("primaryIdentifier: %s\ntype: MRT-curatorial\nrole: MRT-content\nlocalIdentifier: %s\n", ark, local),
		"system/mrt-owner.txt":      registrybench.Owner + "\n", // nothing is twice in an object
	}
	if foreign {
		ark = fmt.Sprintf("urn:plates:%08d", n)
		others := make(map[string]string, len(content))
		for name, text := range content {
			others[path.Base(name)] = text
		}
		content = others
	}
	inv, err := ocfl.New(ark, ocfl.SHA256)
	if err != nil {
		return nil, err
	}
	var state []ocfl.File
	var manifest receipt.Manifest
	var lines bytes.Buffer
	folder, err := root.ObjectKey(ark)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{folder + "/0=ocfl_object_1.1": []byte("ocfl_object_1.1\n")}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		text := []byte(content[name])
		digest := hexSHA256(text)
		state = append(state, ocfl.File{Path: name, Digest: digest})
		files[folder+"/v1/content/"+name] = text
		lines.Write(manifest.Add(receipt.File{
			Path: name, Size: int64(len(text)), Digests: map[string]string{ocfl.SHA256: digest}, Modified: created, MIMEType: "text/plain; charset=utf-8",
			Since: 1, Content: "v1/content/" + name,
		}))
	}
	inv, _, err = ocfl.NewVersion(inv, ocfl.Change{Files: ocfl.Files(state), Message: "add by Holdfast job " + item, Created: created})
	if err != nil {
		return nil, err
	}
	var inventory bytes.Buffer
	if err := inv.Encode(&inventory); err != nil {
		return nil, err
	}
	digest := hexSHA256(inventory.Bytes())
	for _, at := range []string{folder, folder + "/v1"} {
		files[at+"/inventory.json"] = inventory.Bytes()
		files[at+"/inventory.json.sha256"] = []byte(digest + " inventory.json\n")
	}
	if foreign {
		return files, nil
	}
	h := receipt.Header{
		Object: ark, Version: 1, Owner: registrybench.Owner, LocalIDs: []string{local}, Title: fmt.Sprint("Glass plate ", n), Creator: "Lindqvist, Ada", Date: "1890",
		Collection: "bench", Item: item, ProfileVersion: 1, Named: created, Created: created, Recorded: created,
		Files: manifest.Files, Bytes: manifest.Bytes, Manifest: manifest.Digest(), Events: receipt.Span{First: 1, Before: receipt.Zero, After: receipt.Zero},
		Replicas: []receipt.Replica{{Storage: registry.DefaultStorage, Verified: created, Inventory: ocfl.SHA256 + ":" + digest}},
	}
	for i, kind := range []string{"identifier assignment", "message digest calculation", "format identification", "ingestion"} {
		e := receipt.Event{
			Seq: int64(i + 1), Object: ark, ID: fmt.Sprintf("01a21f02-0000-5000-8000-%04d%08d", i, n), Version: 1, Type: kind, At: created,
			Agent: "Holdfast v0.9.0", Outcome: "success", Detail: "version 1, every new file read back and verified by sha256",
		}
		h.Events.Count, h.Events.After = e.Seq, e.Hash(h.Events.After)
		lines.Write(e.Line(h.Events.After))
	}
	place, err := evidence.In(root, ark, registry.Place{})
	if err != nil {
		return nil, err
	}
	files[place.Key(evidence.File{Version: 1})] = append(receipt.Head(key.Sign(h)), lines.Bytes()...)
	return files, nil
}

func hexSHA256(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

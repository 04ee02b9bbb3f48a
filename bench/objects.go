package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// measureObjects fills a database with objects by the Registry's own calls. At a tenth of them, and
// at all, it measures the calls that make the next objects, and lists and searches of objects.
func measureObjects(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var address string
	var objects, next, runs, callers int
	f := registryFlags("objects", stderr, &address)
	f.IntVar(&objects, "objects", 100_000, "number of objects")
	f.IntVar(&next, "next", 200, "objects to make one after another, and to measure; part of them")
	f.IntVar(&runs, "runs", 20, "how often each list is asked for")
	f.IntVar(&callers, "callers", 64, "how many make the other objects at once")
	if err := parseRegistry(f, args, &address); err != nil {
		return err
	}
	if next < 1 || objects/10 <= next || runs < 1 || callers < 1 {
		return errors.New("a tenth of the objects must be more than -next, and all flags above 0")
	}
	if _, _, err := sqldb.Migrate(ctx, address); err != nil {
		return err
	}
	key, err := receipt.ParseKey(receiptKey)
	if err != nil {
		return err
	}
	s, err := sqlstore.Open(ctx, sqlstore.Options{URL: address, ReceiptKey: key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const collection = "bench"
	c := registry.Collection{Mnemonic: collection, Profile: registry.Profile{Name: "Bench", Owner: registrybench.Owner}}
	if err := s.PutCollection(ctx, c, "bench"); err != nil {
		return err
	}
	columns := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	defer func() { err = errors.Join(err, columns.Flush()) }()
	_, _ = fmt.Fprintln(columns, "OBJECTS\tCALL OR LIST\tROWS\tP50\tP95\tMAX\tCPU") // Flush returns errors
	made := 0
	for _, n := range []int{objects / 10, objects} {
		begun, many := time.Now(), n-next-made
		if _, err := registrybench.Preserve(ctx, s, collection, many, callers); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(stderr, "%d objects in %s\n", many, time.Since(begun).Round(time.Second))
		calls, err := registrybench.Preserve(ctx, s, collection, next, 1)
		if err != nil {
			return err
		}
		lists, err := registrybench.Objects(ctx, s, runs)
		if err != nil {
			return err
		}
		made = n
		for _, g := range append(calls, lists...) {
			what := g.Name
			if g.Query != "" {
				what = "list: " + g.Query
			}
			_, _ = fmt.Fprintf(columns, "%d\t%s\t%d\t%s\t%s\t%s\t%s\n", n, what, g.Rows, ms(g.P50), ms(g.P95), ms(g.Max), ms(g.CPU))
		}
	}
	return nil
}

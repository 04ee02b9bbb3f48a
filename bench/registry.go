package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// registryFlags returns the flags of a command that works on its own database.
func registryFlags(name string, stderr io.Writer, address *string) *flag.FlagSet {
	f := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(address, "database", "", "sqlite:PATH or postgres://... of a database that nothing else uses")
	return f
}

func parseRegistry(f *flag.FlagSet, args []string, address *string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if *address == "" || f.NArg() > 0 {
		return fmt.Errorf("%s needs -database and no arguments; see -help", f.Name())
	}
	return nil
}

// openRegistry opens the database to measure. It creates or migrates it first.
func openRegistry(ctx context.Context, address string) (*sqlstore.Store, error) {
	if _, _, err := sqldb.Migrate(ctx, address); err != nil {
		return nil, err
	}
	return sqlstore.Open(ctx, sqlstore.Options{URL: address})
}

// seed fills a database with items like those of years of work. The database is of no other use
// afterwards.
func seed(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var address string
	o := registrybench.Seeding{Seed: 1}
	f := registryFlags("seed", stderr, &address)
	f.IntVar(&o.Items, "items", 1_000_000, "number of items")
	f.IntVar(&o.Collections, "collections", 24, "number of collections")
	f.IntVar(&o.Jobs, "jobs", 100, "jobs per batch")
	f.BoolVar(&o.History, "history", true, "add an event and an attempt for each item")
	f.BoolVar(&o.Settled, "settled", false, "let no item wait")
	if err := parseRegistry(f, args, &address); err != nil {
		return err
	}
	if _, _, err := sqldb.Migrate(ctx, address); err != nil {
		return err
	}
	begun, printed := time.Now(), 0
	o.Progress = func(n int) {
		if n-printed >= 100_000 {
			printed = n
			_, _ = fmt.Fprintf(stderr, "%d items, %s\n", n, time.Since(begun).Round(time.Second))
		}
	}
	if err := registrybench.Seed(ctx, address, o); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%d items in %s\n", o.Items, time.Since(begun).Round(time.Second))
	return err
}

// measureRegistry measures lists, filters, searches and counts. It also measures claims and
// settles, and compares them with an empty database.
func measureRegistry(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var address, empty string
	var runs, jobs int
	var asJSON bool
	f := registryFlags("registry", stderr, &address)
	f.StringVar(&empty, "empty", "", "the address of an empty database for comparing claims and settles (default a new sqlite one)")
	f.IntVar(&runs, "runs", 40, "how often each query is run")
	f.IntVar(&jobs, "jobs", 200, "jobs to run through all stages on each database; 0 for none")
	f.BoolVar(&asJSON, "json", false, "print JSON, one figure per line")
	if err := parseRegistry(f, args, &address); err != nil {
		return err
	}
	s, err := openRegistry(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	columns := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	defer func() { err = errors.Join(err, columns.Flush()) }()
	emit := func(g registrybench.Figure) error { return json.NewEncoder(stdout).Encode(g) }
	if !asJSON {
		_, _ = fmt.Fprintln(columns, "WHAT\tQUERY\tROWS\tP50\tP95\tMAX\tCPU") // Flush returns errors
		emit = func(g registrybench.Figure) error {
			_, err := fmt.Fprintf(columns, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", g.Name, g.Query, g.Rows, ms(g.P50), ms(g.P95), ms(g.Max), ms(g.CPU))
			return err
		}
	}
	show := func(name string, figures ...registrybench.Figure) error {
		for _, g := range figures {
			g.Name = name
			if err := emit(g); err != nil {
				return err
			}
		}
		return nil
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context, registrybench.Lists, int) ([]registrybench.Figure, error)
	}{{"list", registrybench.Queries}, {"later page", registrybench.Pages}, {"glance", registrybench.Glances}, {"count", registrybench.Counts}, {"failures", registrybench.Failures}} {
		figures, err := part.measure(ctx, s, runs)
		if err != nil {
			return err
		}
		if err := show(part.name, figures...); err != nil {
			return err
		}
	}
	if jobs == 0 {
		return nil
	}
	return measureWork(ctx, s, empty, jobs, show)
}

// measureWork runs jobs through their stages on both databases in turns, so that both meet the same
// conditions.
func measureWork(ctx context.Context, full *sqlstore.Store, beside string, jobs int, show func(string, ...registrybench.Figure) error) (err error) {
	if beside == "" {
		dir, err := os.MkdirTemp("", "holdfast-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		beside = "sqlite:" + filepath.Join(dir, "registry.db")
	}
	empty, err := openRegistry(ctx, beside)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	for round := range 3 {
		for _, s := range []struct {
			name string
			*sqlstore.Store
		}{{"full", full}, {"empty", empty}} {
			c := registry.Collection{Mnemonic: "bench", Profile: registry.Profile{Name: "Bench", Owner: registrybench.Owner}}
			if err := s.PutCollection(ctx, c, "bench"); err != nil {
				return err
			}
			claims, settles, err := registrybench.Work(ctx, s, "bench", jobs)
			if err != nil {
				return err
			}
			if err := show(fmt.Sprintf("claim, %s, round %d", s.name, round+1), claims); err != nil {
				return err
			}
			if err := show(fmt.Sprintf("settle, %s, round %d", s.name, round+1), settles); err != nil {
				return err
			}
		}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

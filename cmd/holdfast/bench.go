package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrybench"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// benchCommand holds what measures a Registry; it is for those who work on Holdfast and is not shown.
func (a *app) benchCommand() *cobra.Command {
	g := group("bench", "Fill a database and measure the Registry on it", a.benchSeedCommand(), a.benchRegistryCommand())
	g.Hidden = true
	return g
}

// openBench opens a database to be measured, which is made, or brought up to date, first. Without an address it is the
// configured one.
func (a *app) openBench(ctx context.Context, address string) (*sqlstore.Store, error) {
	if address == "" {
		c, err := config.Load(config.Default())
		if err != nil {
			return nil, err
		}
		address = c.DatabaseURL
	}
	if address == "" {
		return nil, usage("no database: give --database or HOLDFAST_DATABASE_URL")
	}
	if _, _, err := sqlstore.Migrate(ctx, address); err != nil {
		return nil, err
	}
	return sqlstore.Open(ctx, sqlstore.Options{URL: address})
}

func benchFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "database", "", "sqlite:PATH or postgres://... that nothing else uses (default HOLDFAST_DATABASE_URL)")
}

func (a *app) benchSeedCommand() *cobra.Command {
	var address string
	o := sqlstore.Seeding{Seed: 1}
	cmd := &cobra.Command{
		Use: "seed", Short: "Fill a database with items like those of years of work; use it for nothing else afterwards", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s, err := a.openBench(cmd.Context(), address)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			begun, told := time.Now(), 0
			o.Told = func(n int) {
				if n-told >= 100_000 {
					told = n
					a.note("%d items, %s", n, time.Since(begun).Round(time.Second))
				}
			}
			if err := s.Seed(cmd.Context(), o); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%d items in %s\n", o.Items, time.Since(begun).Round(time.Second))
			return err
		},
	}
	benchFlag(cmd, &address)
	cmd.Flags().IntVar(&o.Items, "items", 1_000_000, "how many items")
	cmd.Flags().IntVar(&o.Collections, "collections", 24, "in how many collections")
	cmd.Flags().IntVar(&o.Jobs, "jobs", 100, "jobs of each batch")
	cmd.Flags().BoolVar(&o.History, "history", true, "with an event and an attempt for each item")
	return cmd
}

func (a *app) benchRegistryCommand() *cobra.Command {
	var address, empty string
	var runs, jobs int
	cmd := &cobra.Command{
		Use: "registry", Short: "Measure lists, filters, searches and counts, and claims and settles beside those on an empty database", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.benchRegistry(cmd.Context(), address, empty, runs, jobs)
		},
	}
	benchFlag(cmd, &address)
	cmd.Flags().StringVar(&empty, "empty", "", "the address of an empty database to compare claims and settles with (default a new sqlite one)")
	cmd.Flags().IntVar(&runs, "runs", 40, "how often each query is asked")
	cmd.Flags().IntVar(&jobs, "jobs", 200, "jobs that are brought through all stages on each database; 0 for none")
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, one figure a line")
	return cmd
}

func (a *app) benchRegistry(ctx context.Context, address, empty string, runs, jobs int) (err error) {
	s, err := a.openBench(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	t := newTable(a.out, 0, column{name: "what"}, column{name: "query"}, column{name: "rows", right: true},
		column{name: "p50", right: true}, column{name: "p95", right: true}, column{name: "max", right: true}, column{name: "cpu", right: true})
	print := func(name string, figures ...registrybench.Figure) error {
		for _, f := range figures {
			f.Name = name
			if a.json {
				err = a.printJSON(f)
			} else {
				err = t.row(f.Name, f.Query, fmt.Sprint(f.Rows), ms(f.P50), ms(f.P95), ms(f.Max), ms(f.CPU))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context, registry.Store, int) ([]registrybench.Figure, error)
	}{{"list", registrybench.Queries}, {"later page", registrybench.Pages}, {"glance", registrybench.Glances}, {"count", registrybench.Counts}, {"failures", registrybench.Failures}} {
		figures, err := part.measure(ctx, s, runs)
		if err != nil {
			return err
		}
		if err := print(part.name, figures...); err != nil {
			return err
		}
	}
	if jobs > 0 {
		if err := a.benchWork(ctx, s, empty, jobs, print); err != nil {
			return err
		}
	}
	return t.end()
}

// benchWork brings jobs through their stages on both databases in turns, so that both meet the same machine.
func (a *app) benchWork(ctx context.Context, full *sqlstore.Store, beside string, jobs int, print func(string, ...registrybench.Figure) error) (err error) {
	if beside == "" {
		dir, err := os.MkdirTemp("", "holdfast-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		beside = "sqlite:" + filepath.Join(dir, "registry.db")
	}
	empty, err := a.openBench(ctx, beside)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	for round := range 3 {
		for _, s := range []struct {
			name string
			*sqlstore.Store
		}{{"full", full}, {"empty", empty}} {
			c := registry.Collection{Mnemonic: "bench", Profile: registry.Profile{Name: "Bench", Owner: "ark:/99999/bench"}}
			if err := s.PutCollection(ctx, c, "bench"); err != nil {
				return err
			}
			claims, settles, err := registrybench.Work(ctx, s, "bench", jobs)
			if err != nil {
				return err
			}
			if err := print(fmt.Sprintf("claim, %s, round %d", s.name, round+1), claims); err != nil {
				return err
			}
			if err := print(fmt.Sprintf("settle, %s, round %d", s.name, round+1), settles); err != nil {
				return err
			}
		}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

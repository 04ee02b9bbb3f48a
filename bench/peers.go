package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
)

// besidePeers measures six durable stages beside River and Asynq, whose jobs form chains of six.
// Their program is a module of its own, bench/peers.
func (b *bench) besidePeers(ctx context.Context) error {
	if b.peers == "" || b.postgres == "" || b.redis == "" {
		return errors.New("peers needs -peers, -postgres and -redis: run make bench-peers")
	}
	program, err := filepath.Abs(b.peers)
	if err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	named := func(peer, module string) string {
		for _, d := range built.Deps {
			if d.Path == module {
				return peer + " " + strings.TrimPrefix(d.Version, "v")
			}
		}
		return peer
	}
	river, asynq := named("River", "github.com/riverqueue/river"), named("Asynq", "github.com/hibiken/asynq")
	n, few := b.scaled(1000), (&base.Worker{}).Concurrency()
	b.say("%d chains of six jobs without work", n)
	subjects := []subject{
		b.stages(fmt.Sprintf("holdfast, SQLite FULL, %d slots a stage (the default)", few), few, n, sqliteIn),
		b.stages(fmt.Sprintf("holdfast, SQLite FULL, %d slots a stage", b.slots), b.slots, n, sqliteIn),
		b.stages(fmt.Sprintf("holdfast, PostgreSQL, %d slots a stage (the default)", few), few, n, schemaOf(b.postgres)),
		b.stages(fmt.Sprintf("holdfast, PostgreSQL, %d slots a stage", b.slots), b.slots, n, schemaOf(b.postgres)),
		peer(program, river+": completed in batches", n, "-postgres", b.postgres),
		peer(program, river+": completed with the next job's insertion", n, "-postgres", b.postgres, "-transactional"),
		peer(program, asynq+": Redis syncs every second", n, "-redis", b.redis),
		peer(program, asynq+": Redis syncs always", n, "-redis", b.redis, "-always"),
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	targets := map[string]string{
		subjects[0].name: sqliteTarget, subjects[1].name: sqliteTarget, subjects[2].name: postgresTarget, subjects[3].name: postgresTarget,
	}
	b.part("six durable stages beside other queues", float64(n), "items/s", taken, [2]string{subjects[4].name, subjects[6].name}, targets, subjects...)
	return nil
}

// peer runs n chains of jobs in the program of bench/peers.
func peer(program, name string, n int64, args ...string) subject {
	return subject{name, func(ctx context.Context) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, program, append(args, "-items", strconv.FormatInt(n, 10))...) //nolint:gosec // what is measured
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, said.Bytes())
		}
		return time.ParseDuration(strings.TrimSpace(string(out)))
	}}
}

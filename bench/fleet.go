package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// fleetStages are the stages of a batch of jobs. Each has a process of its own in a fleet.
var fleetStages = []registry.Stage{
	registry.Expand, registry.Report, registry.Estimate, registry.Provision, registry.Download, registry.Process, registry.Record, registry.Notify,
}

// receiptKey signs the receipts of what is measured.
const receiptKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// fleet starts Holdfast with roles apart: one Registry on a schema of -postgres, the broker, and one
// worker process for each stage, with interim data in -redis.
func (b *bench) fleet(ctx context.Context, folder string, settings ...string) (_ *service, err error) {
	for _, name := range []string{"staging", "storage"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			return nil, err
		}
	}
	database, remove, err := schemaOf(b.postgres)(ctx, folder)
	if err != nil {
		return nil, err
	}
	s := &service{remove: remove}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	var free [3]string
	for i := range free {
		if free[i], err = freeAddress(ctx); err != nil {
			return nil, err
		}
	}
	nsq, lookup, api := free[0], free[1], free[2]
	settings = append(settings,
		"HOLDFAST_STAGING_URL=file://"+filepath.Join(folder, "staging"), "HOLDFAST_STORAGE_URL=file://"+filepath.Join(folder, "storage"),
		"HOLDFAST_NSQLOOKUPD_ADDRS="+lookup, "AWS_EC2_METADATA_DISABLED=true")
	add := func(name string, more []string, args ...string) error {
		p, err := b.start(ctx, folder, name, append(more, settings...), args...)
		if err == nil {
			s.procs = append(s.procs, p)
		}
		return err
	}
	if err := add("broker", nil, "broker", "--tcp-address", nsq, "--http-address", lookup); err != nil {
		return nil, err
	}
	admin, err := b.token(ctx, "--database="+database, "--name", "bench", "--role", "admin")
	if err != nil {
		return nil, err
	}
	worker, err := b.token(ctx, "--database="+database, "--name", "workers", "--role", "worker", "--stage", "all")
	if err != nil {
		return nil, err
	}
	if err := add("registry", []string{"HOLDFAST_DATABASE_URL=" + database, "HOLDFAST_LISTEN=" + api, "HOLDFAST_RECEIPT_KEY=" + receiptKey}, "registry"); err != nil {
		return nil, err
	}
	s.procs[len(s.procs)-1].metrics = api
	s.client, s.token = client.New("http://"+api, admin, client.Options{}), admin
	workers, begun := make([]*process, len(fleetStages)), errgroup.Group{}
	env := append([]string{"HOLDFAST_URL=http://" + api, "HOLDFAST_TOKEN=" + worker, "HOLDFAST_REDIS_URL=" + b.redis}, settings...)
	for i, stage := range fleetStages {
		begun.Go(func() error {
			health, err := freeAddress(ctx)
			if err != nil {
				return err
			}
			workers[i], err = b.start(ctx, folder, string(stage), slices.Concat(env, []string{"HOLDFAST_LISTEN=" + health}), "worker", string(stage))
			if err == nil {
				workers[i].metrics = health
			}
			return err
		})
	}
	err = begun.Wait()
	for _, p := range workers {
		if p != nil {
			s.procs = append(s.procs, p)
		}
	}
	return s, err
}

// token makes a token and returns its secret.
func (b *bench) token(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.binary, append([]string{"token", "create"}, args...)...) //nolint:gosec // what is measured
	var faults bytes.Buffer
	cmd.Env, cmd.Stderr = environment(), &faults
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make a token: %w: %s", err, faults.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// freeAddress returns an address of 127.0.0.1 that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

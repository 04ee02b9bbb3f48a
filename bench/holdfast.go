package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/client"
)

// service is a running Holdfast: one `up`, or one process for each role.
type service struct {
	client *client.Client
	token  string       // of a fleet's admin
	procs  []*process   // in the order of their start
	remove func() error // what remains outside the folder, nil if nothing does
}

// up starts Holdfast in one process on a new folder, with additional settings.
func (b *bench) up(ctx context.Context, folder string, settings ...string) (*service, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	p, err := b.start(ctx, folder, "up", settings, "up", "--dir", data, "--listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{procs: []*process{p}}
	if s.client, err = connect(data); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// connect reads the connection data that `up` writes for clients in its folder.
func connect(data string) (*client.Client, error) {
	raw, err := os.ReadFile(filepath.Join(data, node.ClientFile))
	if err != nil {
		return nil, err
	}
	var at node.Client
	if err := json.Unmarshal(raw, &at); err != nil {
		return nil, err
	}
	return client.New(at.URL, at.Token, client.Options{}), nil
}

// environment returns this process's environment without HOLDFAST_* variables. It allows the source
// on loopback, and disables the limits on disk space, so that a full disk does not delay the run.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HOLDFAST_") {
			env = append(env, v)
		}
	}
	return append(env, "HOLDFAST_NET_ALLOW=127.0.0.1", "HOLDFAST_STAGING_FULL=100", "HOLDFAST_STAGING_RESERVE=0",
		"HOLDFAST_STAGING_FULL_UNESTIMATED=100", "HOLDFAST_LOG_LEVEL=warn")
}

// stop ends all processes, the last one started first.
func (s *service) stop() (err error) {
	if s.client != nil {
		s.client.Close()
	}
	for _, p := range slices.Backward(s.procs) {
		err = errors.Join(err, p.stop())
	}
	if s.remove != nil {
		err = errors.Join(err, s.remove())
	}
	return err
}

// memory adds up a figure of all processes; see process.memory.
func (s *service) memory(field string) (bytes int64) {
	for _, p := range s.procs {
		bytes += p.memory(field)
	}
	return bytes
}

// cost returns what all processes used since their start.
func (s *service) cost() (total cost) {
	for _, p := range s.procs {
		one := costOf(p.cmd.Process.Pid)
		total.cpu += one.cpu
		total.written += one.written
	}
	return total
}

// minus returns what was used since before.
func (c cost) minus(before cost) cost {
	return cost{cpu: c.cpu - before.cpu, written: c.written - before.written}
}

// Package role has the commands that run Holdfast, or work on its database and storages without
// a service: up, the roles registry, worker and broker, and migrate, storage and health.
//
// A process that is stopped saves its progress and ends with code 0. Package cmd/node assembles it;
// this package makes cmd/node's options from the environment (cmd/config) and the flags.
package role

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/node"
)

//go:embed help/*.txt
var helpTexts embed.FS

// attend waits until ctx ends or a part of the process fails, and closes the process.
func attend(ctx context.Context, a *cli.App, n *node.Node) error {
	var failed error
	select {
	case <-ctx.Done():
	case <-n.Leaving():
	case failed = <-n.Failed():
	}
	if failed == nil {
		a.Note("stopping: running steps save their progress; a second signal stops at once")
	}
	return errors.Join(failed, n.Close()) //nolint:contextcheck // it drains although ctx is over, within its own grace period
}

// common returns the options of all processes.
func common(a *cli.App, c config.Config) node.Common {
	return node.Common{
		Listen: c.Listen, Version: a.Version, Grace: time.Duration(c.Grace), TracesURL: c.TracesURL,
		Log: slog.New(slog.NewJSONHandler(a.Err, &slog.HandlerOptions{Level: c.LogLevel})),
	}
}

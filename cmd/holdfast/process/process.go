// Package process has the commands that run Holdfast, or work on its database and storages without
// a service: up, the roles registry, worker and broker, and migrate, storage and health.
//
// A process that is told to stop puts down what is under way and ends with code 0. Package cmd/node
// assembles it; this package turns the environment (cmd/config) and the flags into cmd/node's
// options.
package process

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

// attend waits until the process is told to stop, or a part of it ends by itself, and closes it.
func attend(ctx context.Context, a *cli.App, n *node.Node) error {
	var failed error
	select {
	case <-ctx.Done():
	case <-n.Leaving():
	case failed = <-n.Failed():
	}
	if failed == nil {
		a.Note("stopping: work under way is put down where it can be taken up again; a second signal stops at once")
	}
	return errors.Join(failed, n.Close()) //nolint:contextcheck // it drains although ctx is over, within its own grace period
}

// common makes the options of all processes.
func common(a *cli.App, c config.Config) node.Common {
	return node.Common{
		Listen: c.Listen, Version: a.Version, Grace: time.Duration(c.Grace),
		Log: slog.New(slog.NewJSONHandler(a.Err, &slog.HandlerOptions{Level: c.LogLevel})),
	}
}

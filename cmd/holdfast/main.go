// Command holdfast is the whole of Holdfast in one binary: the service, its production roles, and
// the commands that talk to it. docs/commands.md is the reference.
//
// Standard output has data, standard error everything else. Every error ends in an exit code with
// one meaning. Only packages below cmd read the environment or end the process.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/account"
	"github.com/holdfast/holdfast/cmd/holdfast/backup"
	"github.com/holdfast/holdfast/cmd/holdfast/batch"
	"github.com/holdfast/holdfast/cmd/holdfast/bench"
	"github.com/holdfast/holdfast/cmd/holdfast/check"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/collection"
	"github.com/holdfast/holdfast/cmd/holdfast/deposit"
	"github.com/holdfast/holdfast/cmd/holdfast/doctor"
	"github.com/holdfast/holdfast/cmd/holdfast/events"
	"github.com/holdfast/holdfast/cmd/holdfast/evidencereport"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/feed"
	"github.com/holdfast/holdfast/cmd/holdfast/hold"
	"github.com/holdfast/holdfast/cmd/holdfast/item"
	"github.com/holdfast/holdfast/cmd/holdfast/manual"
	"github.com/holdfast/holdfast/cmd/holdfast/object"
	"github.com/holdfast/holdfast/cmd/holdfast/process"
	"github.com/holdfast/holdfast/cmd/holdfast/progress"
	"github.com/holdfast/holdfast/cmd/holdfast/queue"
	"github.com/holdfast/holdfast/cmd/holdfast/role"
	"github.com/holdfast/holdfast/cmd/holdfast/setup"
	"github.com/holdfast/holdfast/cmd/holdfast/storages"
	"github.com/holdfast/holdfast/cmd/holdfast/task"
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process at once
	os.Exit(int(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
}

// execute runs the program with args and returns the exit code. It reads its configuration from the
// environment.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) exit.Code {
	a := cli.New(version, stdin, stdout, stderr)
	return a.Run(ctx, root(a), args) //nolint:contextcheck // cobra hands the context to each command
}

// root assembles the commands in the order in which docs/commands.md lists them.
func root(a *cli.App) *cobra.Command {
	return a.Root(
		role.UpCommand(a), role.RegistryCommand(a), role.WorkerCommand(a), role.BrokerCommand(a), deposit.SubmitCommand(a), check.Command(a), object.ReceiptKeysCommand(a), progress.WatchCommand(a),
		batch.Command(a), item.Command(a), item.ViewCommand(a), object.Command(a), collection.Command(a), hold.Command(a), queue.Command(a), queue.TopCommand(a), feed.Command(a),
		deposit.GraphCommand(a), task.Command(a), task.ScheduleCommand(a), process.Command(a), events.Command(a), events.AuditCommand(a), evidencereport.Command(a), account.TokenCommand(a), deposit.UploadCommand(a), account.LoginCommand(a), account.SessionCommand(a),
		role.ConfigCommand(a), doctor.Command(a), role.HealthCommand(a), role.MigrateCommand(a), setup.Command(a), role.StorageCommand(a, storages.Commands(a)...), role.RebuildCommand(a), role.ReconcileCommand(a), role.AdoptCommand(a), backup.Command(a), manual.Command(a), bench.Command(a), versionCommand(a), cli.Basics(),
	)
}

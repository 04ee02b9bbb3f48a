// Command holdfast is Holdfast in one binary: the service, its production roles, and the commands
// that talk to it. docs/commands.md is its reference.
//
// Standard output is data; standard error is everything else. Every error ends in an exit code with
// one meaning. Nothing outside cmd reads the environment or ends the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal is not caught: it ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

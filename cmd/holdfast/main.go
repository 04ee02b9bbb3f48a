// Command holdfast is Holdfast in one binary: the service, its production roles, and the commands that speak to it.
// docs/cli.md is its reference.
//
// It keeps true that standard output is data and standard error is everything else, that every error ends in an exit
// code with one meaning, and that nothing outside cmd reads the environment or ends the process.
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

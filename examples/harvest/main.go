package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/web/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "harvest:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// run serves the function until ctx ends.
func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("harvest", flag.ContinueOnError)
	url, token := flags.String("url", "", "address of the Registry"), flags.String("token", "", "worker's token of stage run:harvest")
	depositor := flags.String("depositor", "", "depositor's token of the collections")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" || *token == "" || *depositor == "" {
		return errors.New("give -url, -token and -depositor")
	}
	r := remote.Open(*url, *token) //nolint:contextcheck // it does not connect yet
	defer func() { err = errors.Join(err, r.Close()) }()
	archive := client.New(*url, *depositor, client.Options{})
	defer archive.Close()
	var m task.Mux
	Register(&m, archive)
	return task.Serve(ctx, r, &m, task.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
}

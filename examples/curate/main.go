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
	"time"

	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/web/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "curate:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// run serves the processes until ctx ends. The log has the reminders.
func run(ctx context.Context, args []string, log *slog.Logger) (err error) {
	flags := flag.NewFlagSet("curate", flag.ContinueOnError)
	url := flags.String("url", "", "address of the Registry")
	token, submit := flags.String("token", "", "token of the program, for step:curation"), flags.String("submit-token", "", "token that may submit")
	every := flags.Duration("remind", 7*24*time.Hour, "time between two reminders")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *url == "" || *token == "" || *submit == "" || flags.NArg() > 0 {
		return errors.New("give -url, -token and -submit-token, and nothing else")
	}
	c := client.New(*url, *submit, client.Options{})
	defer c.Close()
	p := &Program{Submit: c, Every: *every, Remind: func(ctx context.Context, curator, ark string) error {
		log.InfoContext(ctx, "reminder", "curator", curator, "object", ark)
		return nil
	}}
	var m task.Mux
	p.Register(&m)
	r := remote.Open(*url, *token) //nolint:contextcheck // it does not connect yet
	return errors.Join(task.Serve(ctx, r, &m, task.Options{Log: log}), r.Close())
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "can:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// run is the program. It prints to out what it has submitted.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("can", flag.ContinueOnError)
	url, token := flags.String("url", "", "address of the Registry"), flags.String("token", "", "token")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var m task.Mux
	f := Register(&m)
	r := remote.Open(*url, *token) //nolint:contextcheck // it does not connect yet
	defer func() { err = errors.Join(err, r.Close()) }()
	switch args := flags.Args(); {
	case *url == "" || *token == "":
		return errors.New("give -url and -token")
	case len(args) == 1 && args[0] == "serve":
		return task.Serve(ctx, r, &m, task.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	case len(args) == 4 && args[0] == "submit":
		return submit(ctx, r, f, args[1:], out)
	}
	return errors.New("the command is serve, or submit FROM WORK ARCHIVE")
}

func submit(ctx context.Context, r task.Preparing, f Functions, folders []string, out io.Writer) error {
	for i, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		folders[i] = path
	}
	p, err := f.Graph(folders[0], folders[1], folders[2]).Submit(ctx, r, "", "")
	if err != nil {
		return err
	}
	keys := make([]string, 0, len(p.Items))
	for key := range p.Items {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	text := "graph " + p.GraphID + "\n"
	for _, key := range keys {
		text += fmt.Sprintf("%-15s %s\n", key, p.Items[key])
	}
	_, err = io.WriteString(out, text)
	return err
}

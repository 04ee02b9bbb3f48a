package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// serve serves a folder over HTTP, like the standard library's file server, as the source of all
// downloads. It runs in a separate process, so that its CPU time counts for no subject. It ends
// with its standard input, which the parent holds, so it cannot be left behind.
func serve(ctx context.Context, folder string, stdin io.Reader, stdout io.Writer) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(folder)), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	_, err = io.Copy(io.Discard, stdin)
	err = errors.Join(err, server.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// source starts a server for a folder and returns its address.
func source(ctx context.Context, folder string) (address string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve", folder) //nolint:gosec // this very program
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the source: %w", err)
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("start the source: %w", err), stop())
	}
	return strings.TrimSpace(line), stop, nil
}

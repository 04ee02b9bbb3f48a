// Command demo shows Holdfast's main job from end to end on a machine that has only Go. It serves a
// small sample, starts `holdfast up` in a temporary folder, submits the sample, and checks all
// results. It exits with 0 only if all are right.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo PATH-OF-HOLDFAST")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo failed:", err)
		os.Exit(1)
	}
	fmt.Println("\nEverything came out as expected.")
}

// demo is one run.
type demo struct {
	holdfast string
	folder   string // removed at the end
	source   string // the sample's address
}

func run(ctx context.Context, holdfast string) error {
	holdfast, err := filepath.Abs(holdfast)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	sample, err := makeSample()
	if err != nil {
		return fmt.Errorf("make the sample: %w", err)
	}
	server := httptest.NewServer(sample)
	defer server.Close()
	sample.address = server.URL
	d := &demo{holdfast: holdfast, folder: folder, source: server.URL}
	say("A web server with a small sample runs at %s.", d.source)
	stop, err := d.up(ctx)
	if err != nil {
		return err
	}
	return errors.Join(d.job(ctx, sample), stop())
}

// job does the work of a depositor and an archivist.
func (d *demo) job(ctx context.Context, s *sample) error {
	say("Submit a batch of two object manifests, one of which lies about a digest, a zip container and a single file:")
	code, err := d.show(ctx, "submit", d.source+"/batch.checkm", d.source+"/letters.zip", d.source+"/portrait.svg",
		"--submitter", "demo", "--wait")
	if err != nil {
		return err
	}
	if code != exitPartly {
		return fmt.Errorf("submit ended with %d, want %d: some jobs completed and some failed", code, exitPartly)
	}
	var batches []struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		State string `json:"state"`
	}
	if err := d.read(ctx, &batches, "batch", "list", "--json"); err != nil {
		return err
	}
	for _, b := range batches {
		if b.Name == "batch.checkm" {
			say("The batch's report:")
			if _, err := d.show(ctx, "batch", "report", b.ID); err != nil {
				return err
			}
			if b.State != "Failed" {
				return fmt.Errorf("the batch is %s, want Failed: one of its jobs cannot complete", b.State)
			}
		}
	}
	say("The preserved objects:")
	if _, err := d.show(ctx, "object", "list"); err != nil {
		return err
	}
	say("Read every byte of them back:")
	if code, err := d.show(ctx, "object", "verify", "--all"); err != nil || code != 0 {
		return errors.Join(err, fmt.Errorf("verify ended with %d", code))
	}
	return d.compare(ctx, s)
}

// compare exports every object and compares each byte with the sample.
func (d *demo) compare(ctx context.Context, s *sample) error {
	var objects []struct {
		ID    string `json:"object_id"`
		Title string `json:"title"`
	}
	if err := d.read(ctx, &objects, "object", "list", "--json"); err != nil {
		return err
	}
	if len(objects) != len(s.objects) {
		return fmt.Errorf("%d objects were stored, want %d", len(objects), len(s.objects))
	}
	found := 0
	for i, o := range objects {
		out := filepath.Join(d.folder, fmt.Sprint("export-", i))
		if code, err := d.quiet(ctx, "object", "export", o.ID, "--out", out); err != nil || code != 0 {
			return errors.Join(err, fmt.Errorf("export of %s ended with %d", o.ID, code))
		}
		n, err := s.compare(out)
		if err != nil {
			return fmt.Errorf("export of %s: %w", o.ID, err)
		}
		found += n
	}
	say("All %d files of %d objects were exported and are byte for byte what was submitted.", found, len(objects))
	return nil
}

const exitPartly = 3

// up starts Holdfast and waits until it is ready. stop ends it like Ctrl-C.
func (d *demo) up(ctx context.Context) (stop func() error, err error) {
	data := filepath.Join(d.folder, "data")
	cmd := exec.CommandContext(ctx, d.holdfast, "up", "--dir", data, "--listen", "127.0.0.1:0") //nolint:gosec // the program under demonstration
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	// The sample's server is on loopback, which sources must be allowed. A full disk should not
	// delay the demo.
	cmd.Env = append(os.Environ(), "HOLDFAST_NET_ALLOW=127.0.0.1", "HOLDFAST_STAGING_FULL=100", "HOLDFAST_STAGING_RESERVE=0",
		"HOLDFAST_STAGING_FULL_UNESTIMATED=100", "HOLDFAST_LOG_LEVEL=warn")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start holdfast: %w", err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("holdfast up did not start: %s", log.String()), cmd.Wait())
	}
	say("%s (up in %d ms)", strings.TrimSpace(first), time.Since(begun).Milliseconds())
	go io.Copy(io.Discard, out) //nolint:errcheck // what else it prints is for people
	return func() error {
		err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		if err != nil {
			return fmt.Errorf("holdfast up did not end cleanly: %w: %s", err, log.String())
		}
		say("Holdfast was stopped.")
		return nil
	}, nil
}

// command returns a client command of the running Holdfast.
func (d *demo) command(ctx context.Context, args []string) *exec.Cmd {
	args = append(args, "--dir", filepath.Join(d.folder, "data"))
	return exec.CommandContext(ctx, d.holdfast, args...) //nolint:gosec // the program under demonstration
}

// show runs a command with its output visible, and returns its exit code.
func (d *demo) show(ctx context.Context, args ...string) (int, error) {
	fmt.Printf("$ holdfast %s\n", strings.Join(args, " "))
	cmd := d.command(ctx, args)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return exitCode(cmd.Run())
}

func (d *demo) quiet(ctx context.Context, args ...string) (int, error) {
	cmd := d.command(ctx, args)
	cmd.Stderr = os.Stderr
	return exitCode(cmd.Run())
}

// read runs a command and decodes its JSON lines into a list.
func (d *demo) read(ctx context.Context, list any, args ...string) error {
	cmd := d.command(ctx, args)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("holdfast %s: %w", strings.Join(args, " "), err)
	}
	lines := bytes.Join(bytes.Split(bytes.TrimSpace(out), []byte("\n")), []byte(","))
	return json.Unmarshal(append(append([]byte("["), lines...), ']'), list)
}

func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func say(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }

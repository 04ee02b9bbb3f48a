// Command deposit deposits one file, waits, and prints the object that it became. Needs HOLDFAST_URL
// and HOLDFAST_TOKEN. docs/integrating.md explains it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func main() {
	if err := deposit(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "deposit:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func deposit(ctx context.Context, path string, out io.Writer) error {
	c := client.New(os.Getenv("HOLDFAST_URL"), os.Getenv("HOLDFAST_TOKEN"), client.Options{})
	defer c.Close()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	upload, err := c.SendFile(ctx, client.File{Name: info.Name(), Size: info.Size(), Open: open(path)})
	if err != nil {
		return err
	}
	// The key makes a repeat safe: it answers with the same batch.
	batch, err := c.Submit(ctx, wire.SubmitRequest{UploadID: upload.ID, Title: info.Name()}, "deposit-"+upload.ID)
	if err != nil {
		return err
	}
	for {
		p, err := c.BatchProgress(ctx, batch.BatchID)
		switch {
		case err != nil:
			return err
		case p.Failed > 0 || p.Error != "":
			return errors.New("the deposit failed: holdfast batch failures " + batch.BatchID)
		case p.Settled:
			jobs, err := c.BatchJobs(ctx, batch.BatchID, "", 100)
			for _, j := range jobs.Rows {
				if _, err := fmt.Fprintln(out, j.State, j.ARK); err != nil {
					return err
				}
			}
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// open returns a function that opens the file at an offset, where a broken upload goes on.
func open(path string) func(context.Context, int64) (io.ReadCloser, error) {
	return func(_ context.Context, offset int64) (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		_, err = f.Seek(offset, io.SeekStart)
		return f, err
	}
}

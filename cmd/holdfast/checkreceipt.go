package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast/holdfast/receipt"
	"github.com/holdfast/holdfast/registry"
)

// receiptVerdict is what `check RECEIPT --json` prints.
type receiptVerdict struct {
	Path     string          `json:"path"`
	Type     string          `json:"type"` // receipt
	Valid    bool            `json:"valid"`
	Trusted  bool            `json:"trusted"` // signed by a key that was given
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Files    int64           `json:"files"`
	Bytes    int64           `json:"bytes"`
	Events   int64           `json:"events"`
	Key      string          `json:"key"`
	Against  string          `json:"against,omitempty"`
	Compared int64           `json:"compared,omitempty"` // files of the folder
	LeftOut  int64           `json:"left_out,omitempty"` // files of the receipt, Holdfast's own, that an export may be without
	Errors   int64           `json:"errors"`
	Faults   []receipt.Fault `json:"faults"`
	ExitCode int             `json:"exit_code"`
}

// receiptType is the --type of receipts: what a damaged one that no longer begins as one has to be called.
const receiptType registry.PayloadType = "receipt"

// isReceipt says whether a file begins as receipts do, of whatever format.
func isReceipt(path string) (_ bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	begin, err := io.ReadAll(io.LimitReader(file, int64(len(receipt.Magic))))
	return string(begin) == receipt.Magic, err
}

// trustedKeys reads the keys of a command line.
func trustedKeys(args []string) ([]receipt.PublicKey, error) {
	var keys []receipt.PublicKey
	for _, arg := range args {
		if key, err := receipt.ParsePublicKey(arg); err == nil {
			keys = append(keys, key)
			continue
		}
		text, err := os.ReadFile(arg)
		if err != nil {
			return nil, fmt.Errorf("--key %s: it is neither a public key in hex (64 digits) nor a file that can be read: %w", arg, cause(err))
		}
		more, err := receipt.ParsePublicKeys(text)
		if err != nil {
			return nil, fix(&usageError{fmt.Errorf("--key %s: %w", arg, err)}, "give what `holdfast receipt-keys --pem` prints")
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// checkReceipt verifies a receipt, against a folder unless that is "".
func (a *app) checkReceipt(ctx context.Context, path, against string, keys []receipt.PublicKey) (_ outcome, err error) {
	file, err := os.Open(path)
	if err != nil {
		return exitFailed, cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	o := receipt.Options{Keys: keys}
	var c *comparison
	if against != "" {
		if c, err = compareWith(against); err != nil {
			return exitFailed, err
		}
		defer func() { err = errors.Join(err, c.root.Close()) }()
		o.File = c.file
	}
	r, err := receipt.Verify(bufio.NewReader(file), o)
	if err != nil {
		return exitFailed, err
	}
	v := receiptVerdict{Path: path, Type: string(receiptType), Against: against, Faults: r.Faults}
	if c != nil {
		if err := c.finish(ctx, r); err != nil {
			return exitFailed, err
		}
		v.Compared, v.LeftOut, v.Faults = c.compared, c.leftOut, r.Faults
	}
	h := r.Header
	v.Valid, v.Trusted, v.Errors = r.Valid(), r.Trusted, r.Total
	v.ObjectID, v.Version, v.Files, v.Bytes, v.Events, v.Key = h.Object, h.Version, h.Files, h.Bytes, h.Events.Count, h.Key
	code := exitOK
	if !v.Valid {
		code = exitContent
	}
	v.ExitCode = int(code)
	if v.Faults == nil {
		v.Faults = []receipt.Fault{}
	}
	if a.json {
		return code, a.printJSON(v)
	}
	return code, a.printReceipt(v, h)
}

func (a *app) printReceipt(v receiptVerdict, h receipt.Header) error {
	words := "valid"
	if !v.Valid {
		words = "INVALID"
	}
	lines := []string{fmt.Sprintf("%s: %s receipt", clean(v.Path), words)}
	if h.Object != "" {
		lines[0] += fmt.Sprintf(" of %s, version %d, %s, %s, %s", clean(h.Object), h.Version, plural(h.Files, "file", "files"),
			exactSize(h.Bytes), plural(h.Events.Count, "event", "events"))
		lines = append(lines, "  recorded "+h.Recorded.UTC().Format("2006-01-02 15:04:05 UTC")+", signed by key "+clean(h.Key))
	}
	if v.Compared > 0 {
		lines = append(lines, fmt.Sprintf("  %s in %s read and compared", plural(v.Compared, "file", "files"), clean(v.Against)))
	}
	if v.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("  %s not in it: an export may be without Holdfast's own (--system)", plural(v.LeftOut, "file is", "files are")))
	}
	switch {
	case v.Trusted && v.Valid:
		lines = append(lines, "  the key is one of those given")
	case v.Valid:
		lines = append(lines, "  note: whose key that is was not verified: the receipt is whole and unchanged since somebody signed it; give the service's",
			"        public key by --key, from a source that you trust (holdfast receipt-keys --pem)")
	}
	for _, f := range v.Faults {
		lines = append(lines, "  error: "+clean(f.Error()))
	}
	if more := v.Errors - int64(len(v.Faults)); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	_, err := fmt.Fprintln(a.out, strings.Join(lines, "\n"))
	return err
}

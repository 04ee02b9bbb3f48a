package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/wire"
)

var errReceipt = errors.New("the service's inventory differs from the signed one")

func receiptCommand(a *cli.App) *cobra.Command {
	var version int
	var out string
	cmd := &cobra.Command{
		Use: "receipt ID", Short: "Fetch the signed deposit receipt of an object's version",
		Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fetchReceipt(cmd.Context(), a, args[0], version, out)
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "which version (default the newest)")
	cmd.Flags().StringVar(&out, "out", "", "write it to the new `FILE` (default standard output, or -)")
	return a.ClientFlags(cmd)
}

// receiptLine is the output of `object receipt --out FILE --json`.
type receiptLine struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	Out      string `json:"out"`
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
	Events   int64  `json:"events"`
	Key      string `json:"key"`
}

func fetchReceipt(ctx context.Context, a *cli.App, id string, version int, out string) error {
	if version < 0 {
		return exit.Usagef("--version must be 1 or more")
	}
	if out == "-" {
		out = ""
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	body, err := c.DepositReceipt(ctx, id, version)
	if err != nil {
		return err
	}
	defer body.Close()
	var r *receipt.Result
	err = writeWhole(a, out, func(w io.Writer) error {
		var err error
		r, err = receipt.Verify(io.TeeReader(body, w), receipt.Options{})
		switch {
		case !r.Valid():
			return exit.Fix(fmt.Errorf("receipt of %s: %w: %w", id, errReceipt, r.Faults[0]), "ask an operator to run `holdfast object verify "+id+"`")
		case err != nil:
			return fmt.Errorf("read the receipt of %s: %w", id, err)
		}
		return nil
	})
	if err != nil || out == "" {
		return err
	}
	h := r.Header
	if a.JSON {
		return a.PrintJSON(receiptLine{
			ObjectID: h.Object, Version: h.Version, Out: out, Files: h.Files, Bytes: h.Bytes, Events: h.Events.Count, Key: h.Key,
		})
	}
	_, err = fmt.Fprintf(a.Out, "%s v%d: receipt of %s, %s, signed by key %s, written to %s\n",
		h.Object, h.Version, terminal.Plural(h.Files, "file", "files"), terminal.ExactSize(h.Bytes), h.Key, out)
	return err
}

// writeWhole calls write with standard output, or with the new file out. It removes the file if
// anything fails.
func writeWhole(a *cli.App, out string, write func(io.Writer) error) (err error) {
	if out == "" {
		return write(a.Out)
	}
	file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return exit.Usagef("--out %s: the file exists already and is kept; give another name", out)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", out, exit.Cause(err))
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

// ReceiptKeysCommand returns the command `holdfast receipt-keys`.
func ReceiptKeysCommand(a *cli.App) *cobra.Command {
	var pem bool
	cmd := &cobra.Command{
		Use: "receipt-keys", Short: "List the public keys that verify receipts, oldest first",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			keys, err := c.ReceiptKeys(cmd.Context())
			if err != nil {
				return err
			}
			if pem {
				for _, k := range keys {
					if _, err := fmt.Fprint(a.Out, k.PEM); err != nil {
						return err
					}
				}
				return nil
			}
			l := cli.Lister[wire.ReceiptKey]{None: "no receipt has been signed yet", Columns: []terminal.Column{
				{Name: "first used"}, {Name: "public key"}, {Name: "id"},
			}, Row: func(k wire.ReceiptKey) []string { return []string{terminal.TimeText(k.FirstUsedAt), k.PublicKey, k.ID} }}
			return l.Print(a, cli.Whole(keys))
		},
	}
	cmd.Flags().BoolVar(&pem, "pem", false, "print the keys in PEM")
	return cli.WithHelp(helpTexts, a.ClientFlags(cmd))
}

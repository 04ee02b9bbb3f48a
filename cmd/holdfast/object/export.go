package object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func exportCommand(a *cli.App) *cobra.Command {
	var x exporter
	cmd := &cobra.Command{
		Use: "export ID --out PATH", Short: "Write an object's files into a folder, a bag or a tar",
		Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.id = args[0]
			return exportObject(cmd.Context(), a, x)
		},
	}
	cmd.Flags().StringVar(&x.out, "out", "", "a new or empty folder; with --tar a new file, or - for standard output")
	cmd.Flags().BoolVar(&x.system, "system", false, "also write Holdfast's own files, below system/")
	cmd.Flags().BoolVar(&x.bag, "bag", false, "write a BagIt 1.0 bag")
	cmd.Flags().BoolVar(&x.tar, "tar", false, "write one tar file")
	cmd.Flags().IntVar(&x.version, "version", 0, "which version (default the newest)")
	return a.ClientFlags(cmd)
}

// exporter is one export: its options, and the number of files written.
type exporter struct {
	id      string
	version int
	out     string
	system  bool
	bag     bool
	tar     bool
	agent   string // the program, for the note

	elsewhere func(path, storage string, because error) // called for a file that was read from storage because others have it damaged

	files int64 // files in the output
	bytes int64 // their size
	found int64 // files that an earlier run wrote
}

// exportLine is the output of `object export --json`.
type exportLine struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	Out      string `json:"out"`
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
}

var (
	errNoVersion = errors.New("no such version")
	errOccupied  = exit.Coded(exit.Refused, "the place is occupied", "")
	errChangedIt = exit.Coded(exit.Refused, "it differs from the record: it was changed after it was written, or another export wrote it", "")
	errNameTaken = exit.Coded(exit.Failed, "two files of the object would have this name here", "export with --tar")
	errExporting = exit.Coded(exit.Temporary, "another export is writing there", "wait for its end, or give another place by --out")
)

func exportObject(ctx context.Context, a *cli.App, x exporter) error {
	switch {
	case x.out == "":
		return exit.Usagef("--out PATH is missing")
	case x.out == "-" && !x.tar:
		return exit.Usagef("only a tar can be written to standard output: add --tar")
	case x.out == "-" && a.JSON:
		return exit.Usagef("--json and --out - would both write to standard output")
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	o, err := c.Object(ctx, x.id)
	if err != nil {
		return err
	}
	x.id, x.agent = o.ID, "Holdfast "+a.Version
	x.elsewhere = func(path, storage string, because error) {
		a.Note("%s: read from storage %q instead: %v", path, storage, because)
	}
	if x.version < 0 || x.version > o.Head {
		return exit.Fix(fmt.Errorf("object %s version %d: %w: %w", o.ID, x.version, errNoVersion, registry.ErrNotFound),
			fmt.Sprintf("it has versions 1 to %d", o.Head))
	}
	switch {
	case x.out == "-":
		err = x.toStream(ctx, c, o, a.Out)
	case x.tar:
		err = x.toTar(ctx, c, o)
	default:
		err = x.toFolder(ctx, c, o)
	}
	if err != nil {
		if code := exit.Of(err); x.out != "-" && (code == exit.Interrupted || code == exit.Temporary || code == exit.NoSpace) {
			a.Note("the written files are kept. To resume: %s", a.Again)
		}
		return explained(fmt.Errorf("export %s: %w", x.id, err), x.id)
	}
	if x.found > 0 {
		a.Note("%s of an earlier run kept", terminal.Plural(x.found, "file", "files"))
	}
	said := fmt.Sprintf("%s v%d: %s, %s, written to %s", x.id, x.version, terminal.Plural(x.files, "file", "files"), terminal.ExactSize(x.bytes), x.out)
	switch {
	case a.JSON:
		return a.PrintJSON(exportLine{ObjectID: x.id, Version: x.version, Out: x.out, Files: x.files, Bytes: x.bytes})
	case x.out == "-":
		a.Note("%s", said)
		return nil
	}
	_, err = fmt.Fprintln(a.Out, said)
	return err
}

// refused reports whether the service refused a request for good: a second run would end the same way.
func refused(err error) bool {
	code := exit.Of(err)
	return exit.As[*client.Problem](err) && (code == exit.Refused || code == exit.NotFound)
}

// explained adds advice to the error of a damaged file.
func explained(err error, id string) error {
	if errors.Is(err, replica.ErrDamaged) {
		return exit.Fix(err, "ask an operator to run `holdfast object verify "+id+"`")
	}
	return err
}

// parcel returns the export that the note describes.
func (x *exporter) parcel(ctx context.Context, c *client.Client, o registry.Object, n exportNote) (*export.Package, error) {
	from := &remote{c: c, object: o, version: n.Version, export: n.ID}
	reader := &replica.Reader{Source: from, Elsewhere: x.elsewhere}
	if x.out == "-" {
		reader.Ahead = ahead
	}
	return export.New(ctx, o, n.Version, from.files, reader, export.Options{Bag: n.Bag, System: n.System, At: n.At, Agent: n.Agent})
}

// ahead is the largest file that is compared before its first byte goes to a stream, which cannot
// be taken back.
const ahead = 32 << 20

// toStream writes the tar to w. An interrupted tar has no end marker, so readers notice.
func (x *exporter) toStream(ctx context.Context, c *client.Client, o registry.Object, w io.Writer) error {
	n := x.note(o)
	p, err := x.parcel(ctx, c, o, n)
	if err != nil {
		return err
	}
	x.version = n.Version
	if err := x.count(ctx, p); err != nil {
		return err
	}
	err = p.WriteTar(ctx, w, 0, nil)
	if from := (&remote{object: o, version: n.Version}); exit.As[*export.RewriteError](err) && len(from.storages()) > 1 {
		return exit.Fix(err, "use a file for --out: a file that is damaged in one storage is then written again from another")
	}
	return err
}

// count counts the files and bytes of the output.
func (x *exporter) count(ctx context.Context, p *export.Package) error {
	x.files, x.bytes = 0, 0
	for e, err := range p.Entries(ctx) {
		if err != nil {
			return err
		}
		x.counted(e)
	}
	return nil
}

// counted counts a file of the object.
func (x *exporter) counted(e export.Entry) {
	if e.Path != "" {
		x.files++
		x.bytes += e.Size
	}
}

// note returns the note of a new export. It names the version, so that a version recorded meanwhile
// does not mix in.
func (x *exporter) note(o registry.Object) exportNote {
	n := exportNote{ID: rand.Text(), ObjectID: o.ID, Version: x.version, Bag: x.bag, Tar: x.tar, System: x.system, At: time.Now().UTC().Truncate(time.Second), Agent: x.agent}
	if n.Version == 0 {
		n.Version = o.Head
	}
	return n
}

// remote is a version of an object, read through the service.
type remote struct {
	c       *client.Client
	object  registry.Object
	version int
	export  string // its id
}

// files implements export.List.
func (r *remote) files(ctx context.Context, after string) ([]registry.File, error) {
	return r.c.Files(ctx, r.object.ID, r.version, after, cli.MostRows)
}

// Open implements replica.Source. The service chooses the storage that is read first.
func (r *remote) Open(ctx context.Context, f registry.File, offset int64, not []string) (io.ReadCloser, string, error) {
	from := ""
	if len(not) > 0 {
		storages := r.storages()
		i := slices.IndexFunc(storages, func(s string) bool { return !slices.Contains(not, s) })
		if i < 0 {
			return nil, "", replica.ErrNowhere
		}
		from = storages[i]
	}
	body, err := r.c.ExportedContent(ctx, r.export, r.object.ID, r.version, f.Path, from, offset)
	if problem := new(client.Problem); errors.As(err, &problem) && (problem.Code == wire.CodeDamaged || problem.Status == http.StatusNotFound) {
		err = fmt.Errorf("%w: %w", replica.ErrDamaged, err)
	}
	if err != nil {
		return nil, from, err
	}
	return judgedLater{body}, body.Storage, nil
}

// storages returns the storages that have the version.
func (r *remote) storages() (names []string) {
	for _, v := range r.object.Versions {
		for _, replica := range v.Replicas {
			if v.Version >= r.version && !slices.Contains(names, replica.Storage) {
				names = append(names, replica.Storage)
			}
		}
	}
	return names
}

// judgedLater hides the client's digest errors: package export compares digests itself, and names
// the stored file.
type judgedLater struct{ *client.Content }

// Read implements io.Reader.
func (r judgedLater) Read(p []byte) (int, error) {
	n, err := r.Content.Read(p)
	if exit.As[*client.DigestError](err) {
		err = io.EOF
	}
	return n, err
}

// publish gives a finished draft its name. It returns fs.ErrExist if the name is taken.
func publish(root *os.Root, draft, name string) error {
	err := root.Link(draft, name)
	switch {
	case err == nil:
		return root.Remove(draft)
	case errors.Is(err, os.ErrExist):
		return err
	}
	// The file system has no hard links.
	if _, err := root.Lstat(name); err == nil {
		return &os.LinkError{Op: "rename", Old: draft, New: name, Err: os.ErrExist}
	}
	return root.Rename(draft, name)
}

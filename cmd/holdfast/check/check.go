// Package check has the command `holdfast check`, which validates files, folders and buckets by the
// rules of a submission, and verifies receipts and evidence reports.
//
// It needs no running Holdfast and writes nothing. The rules are in packages intake and receipt.
package check

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/payload"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/noid"
	filenames "github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/safefs"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage/open"
)

//go:embed help/*.txt
var helpTexts embed.FS

// check has the flags of the command.
type check struct {
	typ     string
	profile string
	names   string
	noid    string
	remote  bool
	keys    []string
	against string
	large   bool
}

// Command returns the command `holdfast check`.
func Command(a *cli.App) *cobra.Command {
	var c check
	cmd := &cobra.Command{
		Use: "check PATH...", Short: "Validate files, folders and OCFL storage, and verify receipts and other signed files, offline",
		Example: "  holdfast check batch.checkm --remote\n  holdfast check bag.zip --json\n  holdfast check receipt.jsonl --key keys.pem --against exported/",
		Args:    cli.Needs("PATH..."),
		RunE:    func(cmd *cobra.Command, args []string) error { return checkPaths(cmd.Context(), a, args, c) },
	}
	cmd.Flags().StringVar(&c.typ, "type", string(registry.AutoType), "validate it as `TYPE`: auto, file, container, bag, object-manifest, batch-manifest, container-batch-manifest, single-file-batch-manifest, ocfl-object, ocfl-root, receipt")
	cmd.Flags().StringVar(&c.profile, "profile", "", "also validate bags against the BagIt profile in `FILE`")
	cmd.Flags().StringVar(&c.names, "name-encoding", "", "the `ENCODING` of names in containers that are not UTF-8, like name_encoding of a collection")
	cmd.Flags().StringVar(&c.noid, "noid", "", "refuse rows whose ARK is a mistyped name of this NOID `TEMPLATE`, such as 99999/fk4{.reeeeeeeek}")
	cmd.Flags().BoolVar(&c.remote, "remote", false, "also send a HEAD request for every file that a manifest or a bag's fetch.txt names")
	cmd.Flags().StringArrayVar(&c.keys, "key", nil, "a trusted public key for receipts and other signed files: in hex, or a `FILE` of keys in PEM; repeatable")
	cmd.Flags().StringVar(&c.against, "against", "", "compare every file of a receipt with an export, a bag or an OCFL object in `FOLDER`")
	cmd.Flags().BoolVar(&c.large, "large", false, "also validate OCFL objects of more than about 80,000 files, with about 1 KiB of memory per file")
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one result a line")
	return cli.WithHelp(helpTexts, cmd)
}

// checkLine is a line of `check --json`.
type checkLine struct {
	Path string `json:"path"`
	intake.Report
	ExitCode int `json:"exit_code"`
}

func checkPaths(ctx context.Context, a *cli.App, paths []string, c check) error {
	t := registry.PayloadType(c.typ)
	if t != intake.OCFLObject && t != intake.OCFLRoot && t != receiptType {
		var err error
		if t, err = payload.ParseType(c.typ); err != nil {
			return err
		}
	}
	var o intake.Options
	if _, err := filenames.ParseEncoding(c.names); err != nil {
		return exit.Usagef("--name-encoding: %w", err)
	}
	o.Limits.NameEncoding, o.Large = c.names, c.large
	if c.noid != "" {
		template, err := noid.ParseTemplate(c.noid)
		if err == nil && template.NAAN == "" {
			err = errors.New("it has no NAAN, as in 99999/fk4{.reeeeeeeek}")
		}
		if err != nil {
			return exit.Usagef("--noid: %w", err)
		}
		o.Row = intake.ARKs{Template: template}.Row(ctx, registry.Profile{})
	}
	if c.profile != "" {
		var err error
		if o.BagProfile, err = readBagProfile(c.profile); err != nil {
			return err
		}
	}
	if c.remote {
		// Users may reach every address that their machine reaches. The service's operator decides
		// about the service's.
		everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		web := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: everywhere}, UserAgent: "Holdfast/" + a.Version})
		defer web.Close()
		o.Remote = source.NewMux(map[string]source.Fetcher{"http": web, "https": web})
	}
	keys, err := trustedKeys(c.keys)
	if err != nil {
		return err
	}
	var codes []exit.Code
	for _, path := range paths {
		if code, found, err := checkReport(a, path, keys); found {
			if err != nil {
				code = exit.Of(err)
				a.Complain(fmt.Errorf("check %s: %w", path, err))
			}
			codes = append(codes, code)
			continue
		}
		if found, err := typeOf(path); t == receiptType || err == nil && (found != "" || c.against != "" || len(keys) > 0) {
			code, err := checkReceipt(ctx, a, path, c.against, keys)
			if err != nil {
				code = exit.Of(err)
				a.Complain(fmt.Errorf("check %s: %w", path, err))
			}
			codes = append(codes, code)
			continue
		}
		o.Object = func(folder string, v intake.Report) error { return printVerdict(a, path+" "+folder, v) }
		v, err := judgePath(ctx, path, t, o)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			codes = append(codes, exit.Of(err))
			a.Complain(fmt.Errorf("check %w", err))
			continue
		}
		codes = append(codes, verdictCode(v))
		if err := printVerdict(a, path, v); err != nil {
			return err
		}
	}
	if slices.Contains(codes, exit.Content) { // takes precedence: a producer must act
		return exit.Content
	}
	return exit.Together(codes).Err()
}

// readBagProfile reads a BagIt profile from a file.
func readBagProfile(path string) (_ *bagit.Profile, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--profile %s: %w", path, exit.Cause(err))
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p, err := bagit.ParseProfile(file)
	switch {
	case errors.Is(err, bagit.ErrProfile):
		return nil, exit.Fix(exit.Usagef("--profile %s: %w", path, err), "correct the profile")
	case err != nil:
		return nil, fmt.Errorf("--profile %s: %w", path, err)
	}
	return p, nil
}

// judgePath judges a file or folder.
func judgePath(ctx context.Context, path string, t registry.PayloadType, o intake.Options) (v intake.Report, err error) {
	if strings.HasPrefix(path, "s3://") {
		if v, err = judgeBucket(ctx, path, t, o); err != nil {
			return v, fmt.Errorf("%s: %w", path, err)
		}
		return v, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, exit.Cause(err))
	}
	switch {
	case info.IsDir():
		v, err = judgeFolder(ctx, path, t, o)
	case t == intake.OCFLObject, t == intake.OCFLRoot:
		err = exit.Fix(exit.Usagef("an OCFL object or storage root must be a folder"), "name its folder")
	case info.Mode().IsRegular():
		v, err = judgeFile(ctx, path, info.Size(), t, o)
	default:
		err = exit.Fix(payload.ErrNotAFile, "name a file or a folder")
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// judgeBucket judges an OCFL object or storage root in a bucket, with AWS's default credentials. It
// reads the bucket as other programs do, with no name translated.
func judgeBucket(ctx context.Context, address string, t registry.PayloadType, o intake.Options) (v intake.Report, err error) {
	s, err := open.AsFound(ctx, address)
	if err != nil {
		return v, exit.Fix(exit.Usagef("%w", err), "name the bucket as s3://BUCKET/PREFIX?region=NAME, and for services other than AWS add endpoint=URL and path_style=true")
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	v, err = intake.Preserved(ctx, s, t, o)
	if errors.Is(err, intake.ErrNoJudge) {
		err = exit.Fix(exit.Usagef("it is neither an OCFL object nor a storage root"), "name the prefix that contains the file 0=ocfl_..., or add --type")
	}
	return v, err
}

func judgeFile(ctx context.Context, path string, size int64, t registry.PayloadType, o intake.Options) (v intake.Report, err error) {
	file, err := os.Open(path)
	if err != nil {
		return v, exit.Cause(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return intake.Judge(ctx, unpack.FromReaderAt(file, size), t, o)
}

// judgeFolder judges a folder as an OCFL object or a bag, or else as the container that submit
// would send.
func judgeFolder(ctx context.Context, path string, t registry.PayloadType, o intake.Options) (v intake.Report, err error) {
	root, err := safefs.Open(path)
	if err != nil {
		return v, exit.Cause(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	v, err = intake.Folder(ctx, root, t, o)
	if !errors.Is(err, intake.ErrNoJudge) {
		return v, err
	}
	if err := payload.CheckFolderType(t); err != nil {
		return v, err
	}
	folder, err := payload.OpenFolder(path)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	return intake.Files(root, folder.Files, folder.Bytes, o)
}

// verdictCode returns 6 if the producer must correct something, and 5 if the only faults are
// sources that did not answer.
func verdictCode(v intake.Report) exit.Code {
	switch {
	case v.Valid:
		return exit.OK
	case v.Errors == v.Unreachable:
		return exit.Temporary
	default:
		return exit.Content
	}
}

func printVerdict(a *cli.App, path string, v intake.Report) error {
	if a.JSON {
		return a.PrintJSON(checkLine{Path: path, Report: v, ExitCode: int(verdictCode(v))})
	}
	if _, err := fmt.Fprintf(a.Out, "%s: %s\n", terminal.Clean(path), verdictText(v)); err != nil {
		return err
	}
	for _, f := range v.Faults {
		if _, err := fmt.Fprintf(a.Out, "  %s: %s\n", f.Severity, terminal.Clean(f.Error())); err != nil {
			return err
		}
	}
	if more := v.Errors + v.Warnings - int64(len(v.Faults)); more > 0 {
		if _, err := fmt.Fprintf(a.Out, "  and %s more\n", registry.CountText(more)); err != nil {
			return err
		}
	}
	return nil
}

// verdictText returns a verdict as one line, such as "INVALID object-manifest, 3 files, 1.2 MiB, 1
// error".
func verdictText(v intake.Report) string {
	words := "valid "
	if !v.Valid {
		words = "INVALID "
	}
	words += v.Type
	if v.Version != "" {
		words += " " + v.Version
	}
	parts := []string{words}
	if v.Objects > 0 {
		parts = append(parts, terminal.Plural(v.Objects, "object", "objects"))
	}
	if v.Rows > 0 && v.Files == 0 {
		parts = append(parts, terminal.Plural(v.Rows, "row", "rows"))
	} else if v.Files > 0 {
		parts = append(parts, terminal.Plural(v.Files, "file", "files"))
	}
	if v.Bytes > 0 {
		parts = append(parts, terminal.SizeText(v.Bytes))
	}
	if v.Errors > 0 {
		parts = append(parts, terminal.Plural(v.Errors, "error", "errors"))
	}
	if v.Warnings > 0 {
		parts = append(parts, terminal.Plural(v.Warnings, "warning", "warnings"))
	}
	if v.Accepted && !v.Valid {
		parts = append(parts, fmt.Sprintf("would be accepted without %s", terminal.Plural(v.RowsRefused, "row", "rows")))
	}
	return strings.Join(parts, ", ")
}
